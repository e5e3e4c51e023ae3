//! The file system as the kernel asks for it: what each operation costs, and when it is answered.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{OFlags, fstat};
use rustix::io::{Errno, Result};

use super::attributes::STRIPE_BYTES;
use super::costs::{Costs, Emulation};
use super::extended::{is_free, is_security};
use super::later::Later;
use super::names::{Caller, Changes, Directory, is_dot};
use super::nodes::Nodes;
use super::open::{Open, passed};

/// What a client may go on believing without asking the server: acdirmin and acregmin of nfs(5).
const NAMES_VALID: Duration = Duration::from_secs(30);
const ATTRIBUTES_VALID: Duration = Duration::from_secs(3);
/// Directory entries with attributes in one reply of a server, of about 1 MiB.
const ENTRIES_PER_MESSAGE: u64 = 1024;
/// Reads ahead that the kernel may have asked for at once; others wait there.
const BACKGROUND: u16 = 1024;
const ALIVE: &str = "no thread panics under this lock";

/// Whether the servers answer.
#[derive(Default)]
pub struct Stall {
    stalled: Mutex<bool>,
    over: Condvar,
}

impl Stall {
    /// Begin or end it; returns whether it is now.
    pub fn toggle(&self) -> bool {
        let mut stalled = self.stalled.lock().expect(ALIVE);
        *stalled = !*stalled;
        self.over.notify_all();
        *stalled
    }

    /// As a client waits for dead servers: for ever.
    fn wait(&self) {
        let stalled = self.stalled.lock().expect(ALIVE);
        let _going_on = self
            .over
            .wait_while(stalled, |stalled| *stalled)
            .expect(ALIVE);
    }
}

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

struct Handles<T> {
    known: Mutex<HashMap<u64, Arc<T>>>,
    next: AtomicU64,
}

impl<T> Handles<T> {
    fn new() -> Self {
        Self {
            known: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    fn add(&self, opened: T) -> FileHandle {
        let number = self.next.fetch_add(1, Relaxed);
        self.known
            .lock()
            .expect(ALIVE)
            .insert(number, Arc::new(opened));
        FileHandle(number)
    }

    fn get(&self, handle: FileHandle) -> Result<Arc<T>> {
        let known = self.known.lock().expect(ALIVE);
        known.get(&handle.0).cloned().ok_or(Errno::BADF)
    }

    fn remove(&self, handle: FileHandle) -> Option<Arc<T>> {
        self.known.lock().expect(ALIVE).remove(&handle.0)
    }
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

    /// An opened file, and what the kernel is to do with it.
    fn opened(&self, number: u64, file: OwnedFd, flags: i32) -> Result<(FileHandle, FopenFlags)> {
        let open = Open::new(file, flags);
        let mut answer = FopenFlags::empty();
        if !open.changes {
            answer |= FopenFlags::FOPEN_NOFLUSH;
        }
        let node = self.nodes.reading(number)?;
        let found = fstat(&open.file)?;
        if !node.was_told_other(&found) {
            answer |= FopenFlags::FOPEN_KEEP_CACHE;
        } else if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(number), -1, 0); // attributes; or they expire
        }
        Ok((self.open.add(open), answer))
    }

    /// What was written must be on the servers; returns when it is.
    fn committed(&self, open: &Open, always: bool) -> Option<f64> {
        let stored = open.stored_s.lock().expect(ALIVE).take();
        let now = self.later.now();
        match stored {
            None if !always => None,
            stored => Some(self.costs.commit(now, stored.unwrap_or(now))),
        }
    }
}

fn code(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

fn caller(request: &Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
    }
}

fn entry(reply: ReplyEntry) -> impl FnOnce(Result<FileAttr>) + Send {
    move |result| match result {
        Ok(found) => {
            reply.entry_with_ttls(&ATTRIBUTES_VALID, &NAMES_VALID, &found, Generation(0));
        }
        Err(errno) => reply.error(code(errno)),
    }
}

fn attr(reply: ReplyAttr) -> impl FnOnce(Result<FileAttr>) + Send {
    move |result| match result {
        Ok(found) => reply.attr(&ATTRIBUTES_VALID, &found),
        Err(errno) => reply.error(code(errno)),
    }
}

fn empty(reply: ReplyEmpty) -> impl FnOnce(Result<()>) + Send {
    move |result| match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(code(errno)),
    }
}

/// A value of an extended attribute, or only its size where 0 bytes are wanted.
fn value(reply: ReplyXattr, size: u32) -> impl FnOnce(Result<Vec<u8>>) + Send {
    move |result| match result {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(code(Errno::RANGE)),
        Ok(value) => reply.data(&value),
        Err(errno) => reply.error(code(errno)),
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
        let answer = |result: Result<std::ffi::CString>| match result {
            Ok(text) => reply.data(text.as_bytes()),
            Err(errno) => reply.error(code(errno)),
        };
        self.metadata(|| self.nodes.readlink(number.0), answer);
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
        let answer = |result| match result {
            Ok((found, (handle, flags))) => {
                reply.created(&NAMES_VALID, &found, Generation(0), handle, flags);
            }
            Err(errno) => reply.error(code(errno)),
        };
        self.metadata(create, answer);
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
        let answer = |result| match result {
            Ok((handle, flags)) => reply.opened(handle, flags),
            Err(errno) => reply.error(code(errno)),
        };
        self.metadata(open, answer);
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
        self.stall.wait();
        let began = self.later.now();
        match self
            .open
            .get(handle)
            .and_then(|open| open.read(size as usize, offset))
        {
            Ok(bytes) => {
                let end = self.costs.transfer(began, bytes.len());
                self.later.at(end, move || reply.data(&bytes));
            }
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
        self.stall.wait();
        let began = self.later.now();
        let done = self.open.get(handle).and_then(|open| {
            let count = open.write(&self.nodes, bytes, offset)?;
            if open.direct {
                return Ok((count, self.costs.transfer(began, count)));
            }
            let (end, stored) = self.costs.write_behind(began, count);
            *open.stored_s.lock().expect(ALIVE) = Some(stored);
            Ok((count, end))
        });
        match done {
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
        self.stall.wait();
        let done = self.open.get(handle).and_then(|open| {
            let end = self.committed(&open, false);
            end.map(|end| open.flush().map(|()| end)).transpose()
        });
        match done {
            Ok(end) => self.later.at(end.unwrap_or(0.0), move || reply.ok()),
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
        self.stall.wait();
        let done = self.open.get(handle).and_then(|open| {
            open.sync(data_only)?;
            Ok(self.committed(&open, true))
        });
        match done {
            Ok(end) => self.later.at(end.unwrap_or(0.0), move || reply.ok()),
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
        let answer = |result| match result {
            Ok(place) => reply.offset(place),
            Err(errno) => reply.error(code(errno)),
        };
        self.metadata(|| self.open.get(handle)?.seek(offset, whence), answer);
    }

    fn opendir(&self, _: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.stall.wait();
        match self.nodes.opendir(number.0) {
            Ok(directory) => reply.opened(self.directories.add(directory), FopenFlags::empty()),
            Err(errno) => reply.error(code(errno)),
        }
    }

    /// Entries from number `offset` on, with their attributes, until the reply is full.
    ///
    /// The kernel asks a few KiB at a time; what is paid for are the batches a server sends.
    fn readdirplus(
        &self,
        _: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.stall.wait();
        let began = self.later.now();
        let listed = self.directories.get(handle).and_then(|directory| {
            let names = self.nodes.list(&directory, offset == 0)?;
            self.fill(&directory, &names, offset, &mut reply)
        });
        match listed {
            Ok(place) => {
                let batches = |entries: u64| entries.div_ceil(ENTRIES_PER_MESSAGE);
                let end = match batches(place) - batches(offset) {
                    0 => 0.0,
                    more => self.costs.metadata(began, more),
                };
                self.later.at(end, move || reply.ok());
            }
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
        let answer = |result: Result<rustix::fs::StatVfs>| match result {
            Ok(found) => reply.statfs(
                found.f_blocks,
                found.f_bfree,
                found.f_bavail,
                found.f_files,
                found.f_ffree,
                found.f_bsize as u32,
                found.f_namemax as u32,
                found.f_frsize as u32,
            ),
            Err(errno) => reply.error(code(errno)),
        };
        self.metadata(|| self.nodes.statfs(number.0), answer);
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

impl Served {
    /// Put entries from number `offset` on into a reply; returns the number of the next.
    fn fill(
        &self,
        directory: &Directory,
        names: &[OsString],
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<u64> {
        for (place, name) in (offset..).zip(names.iter().skip(offset as usize)) {
            let Some(found) = self.nodes.listed(directory, name)? else {
                continue; // it went since
            };
            let counted = !is_dot(name);
            let next = place + 1;
            if reply.add(found.ino, next, name, &NAMES_VALID, &found, Generation(0)) {
                if counted {
                    self.nodes.forget(found.ino.0, 1);
                }
                return Ok(place);
            }
        }
        Ok(names.len() as u64)
    }
}
