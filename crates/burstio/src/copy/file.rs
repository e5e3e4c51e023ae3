//! One file, from the source to its name in the target.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, IntoRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::fs::{Advice, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::directories::Pair;
use super::order::SMALL_BYTES;
use super::peers::Children;
use super::{Entry, Fault};
use crate::checksum::Hasher;

/// Of a large file at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// The kernel is told to fetch a large file so far ahead: a stream over a network gets what is in
/// flight in each latency, and by itself readahead keeps a few hundred KiB in flight.
const AHEAD_BYTES: u64 = 8 << 20;

/// Larger files go past the page cache, where the target is a disk. Measured for 200 MB on ext4, to
/// the end of fsync, by turns: 533 to 970 MB/s past it, 87 to 869 MB/s through it.
const DIRECT_BYTES: u64 = 32 << 20;

/// What O_DIRECT wants of addresses, offsets and lengths.
const ALIGNMENT: usize = 4096;

/// What all copies of a staging share.
#[derive(Default)]
pub struct Shared {
    /// Set: stop at the next block.
    pub cancelled: AtomicBool,
    /// Set: the target can't share blocks with the source.
    pub no_reflink: AtomicBool,
    /// Bytes that are in the target.
    pub bytes: AtomicU64,
    /// The target is a local file system that O_DIRECT is worth trying on.
    pub on_disk: bool,
}

impl Shared {
    fn check_wanted(&self) -> Result<(), Fault> {
        match self.cancelled.load(Relaxed) {
            true => Err(Fault::Cancelled),
            false => Ok(()),
        }
    }
}

/// What had to be done for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Read from the source.
    Copied,
    /// There already, with its size and checksum.
    Present,
}

/// Have the file whole under its name, and send it to the `children`, to whom it is number `file`.
/// `buffer` is the worker's own, for any number of files.
pub fn stage(
    (file, entry): (usize, &Entry),
    pair: &Arc<Pair>,
    shared: &Shared,
    children: &Children,
    buffer: &mut Vec<u8>,
) -> Result<Outcome, Fault> {
    let present = is_present(entry, pair, shared, buffer)?;
    if present && !children.any() {
        return Ok(Outcome::Present);
    }
    let from = if present {
        Some(&pair.target)
    } else {
        pair.source.as_ref()
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let source = rustix::fs::openat(
        from.ok_or(Fault::Missing)?,
        entry.name(),
        flags,
        Mode::empty(),
    );
    let mut source = File::from(source.map_err(Fault::reading)?);
    if entry.size <= SMALL_BYTES {
        read_whole(entry, source, buffer)?;
        children.send(file, &buffer[..entry.size as usize])?;
        if !present {
            let mut partial = Partial::create(entry, pair)?;
            partial.write(&buffer[..entry.size as usize], shared)?;
            partial.finish()?;
        }
    } else if present {
        each_block(entry, &mut source, shared, buffer, |block| {
            children.send(file, block)
        })?;
    } else {
        let mut partial = Partial::create(entry, pair)?;
        if children.any() || !partial.reflink(&source, entry, shared, buffer)? {
            if shared.on_disk && entry.size >= DIRECT_BYTES {
                partial.pass_the_cache();
            }
            let hasher = each_block(entry, &mut source, shared, buffer, |block| {
                children.send(file, block)?;
                partial.write(block, shared)
            })?;
            check_content(entry, hasher)?;
        }
        partial.finish()?;
    }
    Ok(if present {
        Outcome::Present
    } else {
        Outcome::Copied
    })
}

/// Size and checksum are right, so nothing of a wrong file is ever written.
fn read_whole(entry: &Entry, mut source: File, buffer: &mut Vec<u8>) -> Result<(), Fault> {
    let size = entry.size as usize;
    if buffer.len() < size + 1 {
        buffer.resize(size + 1, 0);
    }
    let found = fill(&mut source, &mut buffer[..size + 1])?;
    check_size(entry, found as u64)?;
    let mut hasher = Hasher::default();
    hasher.update(&buffer[..size]);
    check_content(entry, hasher)
}

/// Read and hash all of a large file, which must have its size.
fn each_block(
    entry: &Entry,
    source: &mut File,
    shared: &Shared,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<Hasher, Fault> {
    if buffer.len() < BLOCK_BYTES + ALIGNMENT {
        buffer.resize(BLOCK_BYTES + ALIGNMENT, 0);
    }
    let start = buffer.as_ptr().align_offset(ALIGNMENT);
    let block = &mut buffer[start..start + BLOCK_BYTES];
    let (mut hasher, mut done, mut advised) = (Hasher::default(), 0, 0);
    loop {
        shared.check_wanted()?;
        if advised < entry.size && advised < done + AHEAD_BYTES / 2 {
            // Advice: what comes of it is seen when the blocks are read.
            let length = std::num::NonZeroU64::new(AHEAD_BYTES);
            let _ = rustix::fs::fadvise(source.as_fd(), advised, length, Advice::WillNeed);
            advised += AHEAD_BYTES;
        }
        let count = fill(source, block)?;
        done += count as u64;
        if done > entry.size {
            return Err(Fault::Longer {
                expected: entry.size,
            });
        }
        hasher.update(&block[..count]);
        if count > 0 {
            each(&block[..count])?;
        }
        if count < BLOCK_BYTES {
            check_size(entry, done)?;
            return Ok(hasher);
        }
    }
}

fn fill(source: &mut File, buffer: &mut [u8]) -> Result<usize, Fault> {
    let mut found = 0;
    while found < buffer.len() {
        match source.read(&mut buffer[found..]) {
            Ok(0) => break,
            Ok(count) => found += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::reading(errno(&error))),
        }
    }
    Ok(found)
}

fn check_size(entry: &Entry, found: u64) -> Result<(), Fault> {
    match found.cmp(&entry.size) {
        std::cmp::Ordering::Less => Err(Fault::Truncated {
            found,
            expected: entry.size,
        }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Fault::Longer {
            expected: entry.size,
        }),
    }
}

fn check_content(entry: &Entry, hasher: Hasher) -> Result<(), Fault> {
    match entry.checksum {
        Some(wanted) if wanted != hasher.finish() => Err(Fault::Changed),
        _ => Ok(()),
    }
}

/// Whether the target has it, with its checksum; counted if so.
fn is_present(
    entry: &Entry,
    pair: &Pair,
    shared: &Shared,
    buffer: &mut Vec<u8>,
) -> Result<bool, Fault> {
    if pair.fresh {
        return Ok(false);
    }
    let Ok(found) = rustix::fs::statat(&pair.target, entry.name(), AtFlags::SYMLINK_NOFOLLOW)
    else {
        return Ok(false);
    };
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !regular || found.st_size as u64 != entry.size || entry.checksum.is_none() {
        return Ok(false);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let Ok(found) = rustix::fs::openat(&pair.target, entry.name(), flags, Mode::empty()) else {
        return Ok(false);
    };
    let hashed = each_block(entry, &mut File::from(found), shared, buffer, |_| Ok(()));
    match hashed.and_then(|hasher| check_content(entry, hasher)) {
        Err(Fault::Cancelled) => Err(Fault::Cancelled),
        Err(_) => Ok(false),
        Ok(()) => {
            shared.bytes.fetch_add(entry.size, Relaxed);
            Ok(true)
        }
    }
}

/// The target's file under its partial name, which goes away unless it is finished.
struct Partial<'a> {
    name: String,
    entry: &'a Entry,
    pair: Arc<Pair>,
    file: Option<File>,
    direct: bool,
}

impl<'a> Partial<'a> {
    fn create(entry: &'a Entry, pair: &Arc<Pair>) -> Result<Self, Fault> {
        let name = format!(".{}.burstlab-partial", entry.name());
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666); // less the umask
        let file = rustix::fs::openat(&pair.target, &*name, flags, mode).map_err(Fault::writing)?;
        let file = Some(File::from(file));
        Ok(Partial {
            name,
            entry,
            pair: pair.clone(),
            file,
            direct: false,
        })
    }

    fn write(&mut self, block: &[u8], shared: &Shared) -> Result<(), Fault> {
        let file = self.file.as_mut().expect("not finished");
        if self.direct && !block.len().is_multiple_of(ALIGNMENT) {
            self.direct = set_direct(file, false).is_err(); // the last block
        }
        file.write_all(block)
            .map_err(|error| Fault::writing(errno(&error)))?;
        shared.bytes.fetch_add(block.len() as u64, Relaxed);
        Ok(())
    }

    /// Write with O_DIRECT, if the file system can.
    fn pass_the_cache(&mut self) {
        let file = self.file.as_ref().expect("not finished");
        self.direct = set_direct(file, true).is_ok();
    }

    /// Share the source's blocks, where both are on one file system that can.
    fn reflink(
        &mut self,
        source: &File,
        entry: &Entry,
        shared: &Shared,
        buffer: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let file = self.file.as_mut().expect("not finished");
        if shared.no_reflink.load(Relaxed) || rustix::fs::ioctl_ficlone(&*file, source).is_err() {
            shared.no_reflink.store(true, Relaxed);
            return Ok(false);
        }
        let hasher = each_block(entry, file, shared, buffer, |_| Ok(()))?;
        shared.bytes.fetch_add(entry.size, Relaxed);
        check_content(entry, hasher).map(|()| true)
    }

    /// Close it, which tells of writes that failed late, and give it its name.
    fn finish(mut self) -> Result<(), Fault> {
        close(self.file.take().expect("not finished")).map_err(Fault::writing)?;
        let directory = &self.pair.target;
        rustix::fs::renameat(directory, &*self.name, directory, self.entry.name())
            .map_err(Fault::writing)?;
        self.name.clear();
        Ok(())
    }
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // The reason of the failure is told; what can't be removed is overwritten next time.
            let _ = rustix::fs::unlinkat(&self.pair.target, &*self.name, AtFlags::empty());
        }
    }
}

/// A file that comes in blocks from another node.
pub struct Arriving<'a> {
    partial: Partial<'a>,
    hasher: Hasher,
    done: u64,
}

impl<'a> Arriving<'a> {
    /// Nothing of it has come yet; `None` when it is there already, and its blocks are not wanted.
    pub fn begin(
        entry: &'a Entry,
        pair: &Arc<Pair>,
        shared: &Shared,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Self>, Fault> {
        if is_present(entry, pair, shared, buffer)? {
            return Ok(None);
        }
        Ok(Some(Arriving {
            partial: Partial::create(entry, pair)?,
            hasher: Hasher::default(),
            done: 0,
        }))
    }

    /// The next block; `None` when that was the last one, and the file has its name.
    pub fn write(mut self, block: &[u8], shared: &Shared) -> Result<Option<Self>, Fault> {
        shared.check_wanted()?;
        let entry = self.partial.entry;
        self.hasher.update(block);
        self.done += block.len() as u64;
        self.partial.write(block, shared)?;
        if self.done < entry.size {
            return Ok(Some(self));
        }
        check_size(entry, self.done)?;
        check_content(entry, self.hasher)?;
        self.partial.finish()?;
        Ok(None)
    }
}

fn set_direct(file: &File, on: bool) -> Result<(), Errno> {
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, on);
    rustix::fs::fcntl_setfl(file, flags)
}

/// close(2) with its verdict, which a dropped descriptor would swallow.
fn close(file: File) -> Result<(), Errno> {
    // SAFETY: the descriptor was just given up by its only owner.
    unsafe { rustix::io::try_close(file.into_raw_fd()) }
}

/// The system's number of an error.
pub fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
