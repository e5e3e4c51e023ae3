//! The file system as the kernel asks for it: what each operation costs, and when it is answered.

mod data;
mod handles;
mod listing;
mod replies;
mod stall;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner,
    Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};

use super::attributes::STRIPE_BYTES;
use super::costs::{Costs, Emulation};
use super::extended::{is_free, is_security};
use super::later::Later;
use super::listing::Directory;
use super::names::Caller;
use super::nodes::Nodes;
use super::open::{Open, passed};
use super::status::Changes;
use handles::Handles;
use replies::{attr, code, created, empty, entry, filling, opened, place, text, value};
pub use stall::Stall;

/// Reads ahead that the kernel may have asked for at once; others wait there.
const BACKGROUND: u16 = 1024;
/// The end of an operation that costs nothing, in the seconds of [`Later`].
const AT_ONCE: f64 = 0.0;
const ALIVE: &str = "no thread panics under this lock";

/// The file system.
pub struct Served {
    nodes: Nodes,
    costs: Costs,
    later: Later,
    stall: Arc<Stall>,
    notifier: Arc<OnceLock<Notifier>>,
    open: Handles<Open>,
    directories: Handles<Directory>,
}

impl Served {
    /// With a place for what tells the kernel, once it is mounted.
    pub fn new(
        nodes: Nodes,
        emulation: Emulation,
        stall: Arc<Stall>,
    ) -> std::io::Result<(Self, Arc<OnceLock<Notifier>>)> {
        let notifier = Arc::new(OnceLock::new());
        let served = Self {
            nodes,
            costs: Costs::new(emulation),
            later: Later::new()?,
            stall,
            notifier: notifier.clone(),
            open: Handles::new(),
            directories: Handles::new(),
        };
        Ok((served, notifier))
    }

    /// An operation at the metadata server, which costs the same whether it succeeds or not.
    fn metadata<T: Send + 'static>(
        &self,
        operation: impl FnOnce() -> Result<T>,
        answer: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        self.stall.wait();
        let end = self.costs.metadata(self.later.now(), 1);
        let result = operation();
        self.later.at(end, move || answer(result));
    }

    fn known(&self, handle: Option<FileHandle>) -> Option<Arc<Open>> {
        handle.and_then(|handle| self.open.get(handle).ok())
    }
}

fn caller(request: &Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
    }
}

impl Filesystem for Served {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        for wanted in [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_PARALLEL_DIROPS,
        ] {
            let _ = config.add_capabilities(wanted); // or what the kernel knows
        }
        let _ = config.set_max_write(STRIPE_BYTES);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.metadata(|| self.nodes.lookup(parent.0, name), entry(reply));
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.nodes.forget(number.0, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let open = self.known(handle);
        let get = || self.nodes.getattr(number.0, open.as_deref());
        if self.nodes.attributes_came_along(number.0) {
            self.stall.wait();
            attr(reply)(get());
        } else {
            self.metadata(get, attr(reply));
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let open = self.known(handle);
        let changes = Changes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        };
        let set = || self.nodes.setattr(number.0, open.as_deref(), &changes);
        self.metadata(set, attr(reply));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        self.metadata(|| self.nodes.readlink(number.0), text(reply));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32, // the kernel has applied it
        device: u32,
        reply: ReplyEntry,
    ) {
        let make = || {
            self.nodes
                .mknod(parent.0, name, mode, device, caller(request))
        };
        self.metadata(make, entry(reply));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let make = || self.nodes.mkdir(parent.0, name, mode, caller(request));
        self.metadata(make, entry(reply));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        text: &Path,
        reply: ReplyEntry,
    ) {
        let make = || self.nodes.symlink(parent.0, name, text, caller(request));
        self.metadata(make, entry(reply));
    }

    fn link(&self, _: &Request, old: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.metadata(|| self.nodes.link(old.0, parent.0, name), entry(reply));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.metadata(|| self.nodes.unlink(parent.0, name), empty(reply));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.metadata(|| self.nodes.rmdir(parent.0, name), empty(reply));
    }

    fn rename(
        &self,
        _: &Request,
        old_parent: INodeNo,
        old: &OsStr,
        new_parent: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((old_parent.0, old), (new_parent.0, new));
        self.metadata(|| self.nodes.rename(from, to, flags), empty(reply));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let create = || {
            let who = caller(request);
            let (found, file) = self
                .nodes
                .create(parent.0, name, passed(flags), mode, who)?;
            self.opened(found.ino.0, file, flags)
                .map(|opened| (found, opened))
        };
        self.metadata(create, created(reply));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let open = || {
            let passed = passed(flags.0);
            let node = if passed.intersects(OFlags::ACCMODE | OFlags::TRUNC) {
                self.nodes.writing(number.0)?
            } else {
                self.nodes.reading(number.0)?
            };
            let names = self.nodes.names();
            let file = node.place().open(passed)?;
            drop(names);
            self.opened(number.0, file, flags.0)
        };
        self.metadata(open, opened(reply));
    }

    fn read(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.fetch(handle, offset, size as usize) {
            Ok((bytes, end)) => self.later.at(end, move || reply.data(&bytes)),
            Err(errno) => reply.error(code(errno)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.store(handle, offset, bytes) {
            Ok((count, end)) => self.later.at(end, move || reply.written(count as u32)),
            Err(errno) => reply.error(code(errno)),
        }
    }

    fn flush(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        match self.flushed(handle) {
            Ok(end) => self.later.at(end, move || reply.ok()),
            Err(errno) => reply.error(code(errno)),
        }
    }

    fn fsync(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        match self.synced(handle, data_only) {
            Ok(end) => self.later.at(end, move || reply.ok()),
            Err(errno) => reply.error(code(errno)),
        }
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let open = self.open.remove(handle);
        if let (Some(open), Ok(node)) = (&open, self.nodes.reading(number.0)) {
            open.release(&node);
        }
        drop(open);
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocate = || self.open.get(handle)?.allocate(mode, offset, length);
        self.metadata(allocate, empty(reply));
    }

    fn lseek(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.metadata(|| self.open.get(handle)?.seek(offset, whence), place(reply));
    }

    fn opendir(&self, _: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.stall.wait();
        match self.nodes.opendir(number.0) {
            Ok(directory) => reply.opened(self.directories.add(directory), FopenFlags::empty()),
            Err(errno) => reply.error(code(errno)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        match self.list(handle, offset, &mut reply) {
            Ok(end) => self.later.at(end, move || reply.ok()),
            Err(errno) => reply.error(code(errno)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.directories.remove(handle);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let sync = || self.nodes.fsyncdir(&*self.directories.get(handle)?);
        self.metadata(sync, empty(reply));
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        self.metadata(|| self.nodes.statfs(number.0), filling(reply));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let get = || {
            if is_security(name) {
                return Err(Errno::NODATA);
            }
            self.nodes.getxattr(number.0, name)
        };
        if is_free(name) {
            self.stall.wait();
            value(reply, size)(get());
        } else {
            self.metadata(get, value(reply, size));
        }
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        self.metadata(|| self.nodes.listxattr(number.0), value(reply, size));
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        bytes: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        self.metadata(
            || self.nodes.setxattr(number.0, name, bytes, flags),
            empty(reply),
        );
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.metadata(|| self.nodes.removexattr(number.0, name), empty(reply));
    }
}
