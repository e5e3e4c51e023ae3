//! The file system of a mounted data set: names and attributes from its list, contents from the
//! engine.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};

use super::super::bytes::Bytes;
use super::super::engine::Engine;
use super::super::schedule::{Sample, UNKNOWN};
use super::super::source::ReadError;
use super::super::statistics::Statistics;
use super::super::stream::TakeError;
use super::tree::{Entry, Tree};

/// A data set does not change: the kernel may keep what it was told.
const FOR_EVER: Duration = Duration::from_secs(1 << 24);
/// Inodes of directories begin at 1, those of files here.
const FILES: u64 = 1 << 32;

/// What the kernel asks, answered from the engine.
pub struct Served {
    engine: Arc<Engine>,
    tree: Tree,
    large: usize,
    opened: Mutex<HashMap<u64, Arc<Opened>>>,
    handles: AtomicU64,
    mounted: SystemTime,
}

/// An open file.
enum Opened {
    Small(Sample, Mutex<Option<Held>>),
    Large(File),
}

/// A file's bytes, from its first read on, and how many have not been given yet.
struct Held {
    bytes: Arc<Bytes>,
    left: usize,
}

impl Served {
    /// Files of more than `large` bytes are read in place. Fails where the list of files makes no
    /// directory tree.
    pub fn new(engine: Arc<Engine>, large: usize) -> io::Result<Self> {
        Ok(Self {
            tree: Tree::new(engine.source())?,
            engine,
            large,
            opened: Mutex::new(HashMap::new()),
            handles: AtomicU64::new(0),
            mounted: SystemTime::now(),
        })
    }

    fn entry(&self, inode: INodeNo) -> Entry {
        match inode.0.checked_sub(FILES) {
            Some(sample) => Entry::File(sample as Sample),
            None => Entry::Directory((inode.0 - 1) as u32),
        }
    }

    fn attributes(&self, entry: Entry) -> Result<FileAttr, Errno> {
        let (inode, kind, perm, size) = match entry {
            Entry::Directory(number) => (u64::from(number) + 1, FileType::Directory, 0o555, 0),
            Entry::File(sample) => (
                FILES + u64::from(sample),
                FileType::RegularFile,
                0o444,
                self.size(sample)?,
            ),
        };
        Ok(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            crtime: self.mounted,
            kind,
            perm,
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn size(&self, sample: Sample) -> Result<u64, Errno> {
        let source = self.engine.source();
        match source.sizes().get(sample as usize) {
            None => Err(Errno::ENOENT),
            Some(&UNKNOWN) => Ok(std::fs::metadata(source.path(sample)).map_err(code)?.len()),
            Some(&size) => Ok(size),
        }
    }

    fn open(&self, sample: Sample) -> Result<Opened, Errno> {
        if self.size(sample)? <= self.large as u64 {
            return Ok(Opened::Small(sample, Mutex::new(None)));
        }
        let counters = self.engine.counters();
        Statistics::count(&counters.source_opens);
        let opened = self.engine.source().open(sample);
        let (file, _) = opened.map_err(|error| {
            Statistics::count(&counters.source_errors);
            told(&error)
        })?;
        Ok(Opened::Large(file))
    }

    fn opened(&self, handle: FileHandle) -> Option<Arc<Opened>> {
        self.opened
            .lock()
            .expect("no thread panics under this lock")
            .get(&handle.0)
            .cloned()
    }

    fn fetch(&self, sample: Sample) -> Result<Held, Errno> {
        let mut stream = self.engine.stream();
        stream.plan(&[sample]).map_err(|_| Errno::ENOENT)?;
        let taken = stream.take(1, || true).map_err(|error| match error {
            TakeError::Read(error) => told(&error),
            TakeError::Interrupted | TakeError::Closed => Errno::ESHUTDOWN,
        })?;
        let (_, bytes) = taken.into_iter().next().ok_or(Errno::EIO)?;
        let left = (*bytes).as_ref().len();
        Ok(Held { bytes, left })
    }

    /// What a read gets. A file's bytes are let go when all have been given, in whatever order: the
    /// kernel has them then.
    fn read_opened<R>(
        &self,
        opened: &Opened,
        offset: u64,
        size: usize,
        give: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Errno> {
        let (sample, held) = match opened {
            Opened::Small(sample, held) => (*sample, held),
            Opened::Large(file) => {
                let counters = self.engine.counters();
                let mut bytes = vec![0; size];
                let count = file.read_at(&mut bytes, offset).map_err(|error| {
                    Statistics::count(&counters.source_errors);
                    code(error)
                })?;
                Statistics::add(&counters.source_bytes, count);
                return Ok(give(&bytes[..count]));
            }
        };
        let mut held = held.lock().expect("no thread panics under this lock");
        let mut here = match held.take() {
            Some(here) => here,
            None => self.fetch(sample)?,
        };
        let bytes = (*here.bytes).as_ref();
        let begin = bytes
            .len()
            .min(usize::try_from(offset).unwrap_or(usize::MAX));
        let end = bytes.len().min(begin.saturating_add(size));
        let given = give(&bytes[begin..end]);
        here.left = here.left.saturating_sub(end - begin);
        if here.left > 0 {
            *held = Some(here);
        }
        Ok(given)
    }
}

impl Filesystem for Served {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_readahead(1 << 20); // or what the kernel allows
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS); // or one name at a time
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let Entry::Directory(directory) = self.entry(parent) else {
            return reply.error(Errno::ENOTDIR);
        };
        let found = self
            .tree
            .find(self.engine.source(), directory, name)
            .ok_or(Errno::ENOENT);
        match found.and_then(|entry| self.attributes(entry)) {
            Ok(attributes) => reply.entry(&FOR_EVER, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(self.entry(inode)) {
            Ok(attributes) => reply.attr(&FOR_EVER, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        let Entry::File(sample) = self.entry(inode) else {
            return reply.error(Errno::EISDIR);
        };
        match Served::open(self, sample) {
            Ok(opened) => {
                let handle = self.handles.fetch_add(1, Relaxed);
                let mut all = self
                    .opened
                    .lock()
                    .expect("no thread panics under this lock");
                all.insert(handle, Arc::new(opened));
                reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(opened) = self.opened(handle) else {
            return reply.error(Errno::EBADF);
        };
        let mut reply = Some(reply);
        let mut give = |bytes: &[u8]| reply.take().map(|reply| reply.data(bytes));
        let given = self.read_opened(&opened, offset, size as usize, &mut give);
        if let (Err(errno), Some(reply)) = (given, reply) {
            reply.error(errno);
        }
    }

    fn release(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let closed = self
            .opened
            .lock()
            .expect("no thread panics under this lock")
            .remove(&handle.0);
        drop(closed);
        reply.ok();
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Entry::Directory(directory) = self.entry(inode) else {
            return reply.error(Errno::ENOTDIR);
        };
        let Some(entries) = self.tree.entries(directory) else {
            return reply.error(Errno::ENOENT);
        };
        let own = [(directory, "."), (self.tree.parent(directory), "..")]
            .map(|(number, name)| (Entry::Directory(number), OsStr::new(name)));
        let named = |entry: &Entry| (*entry, self.tree.name(self.engine.source(), *entry));
        let all = own.into_iter().chain(entries.iter().map(named));
        for (at, (entry, name)) in all.enumerate().skip(offset as usize) {
            let (inode, kind) = match entry {
                Entry::Directory(number) => (u64::from(number) + 1, FileType::Directory),
                Entry::File(sample) => (FILES + u64::from(sample), FileType::RegularFile),
            };
            if reply.add(INodeNo(inode), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let known = self
            .engine
            .source()
            .sizes()
            .iter()
            .filter(|size| **size != UNKNOWN);
        let blocks = known.sum::<u64>().div_ceil(4096);
        reply.statfs(
            blocks,
            0,
            0,
            self.engine.source().len() as u64,
            0,
            4096,
            255,
            4096,
        );
    }
}

fn code(error: io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(5))
}

fn told(error: &ReadError) -> Errno {
    Errno::from_i32(error.errno)
}
