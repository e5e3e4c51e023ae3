//! Operations on the contents of open files: the storage servers' half.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Duration;

use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fallocate, fdatasync, fstat, fsync, seek};
use rustix::io::{Errno, Result, dup, pread, pwrite};

use super::nodes::{Node, Nodes};

/// What of the flags of open(2) is passed on.
const PASSED: OFlags = OFlags::ACCMODE
    .union(OFlags::APPEND)
    .union(OFlags::TRUNC)
    .union(OFlags::EXCL);

/// At most, from the last close(2) of a file until the kernel has told of it.
const CLOSING: Duration = Duration::from_millis(500);

/// An open file.
pub struct Open {
    /// The file in the exported directory.
    pub file: OwnedFd,
    /// Opened with O_DIRECT: the client holds nothing back.
    pub direct: bool,
    /// Whether it may have been written.
    pub changes: bool,
    /// Written and not yet committed: when it is on the servers.
    pub stored_s: Mutex<Option<f64>>,
}

/// Those of the flags of open(2) that mean something to the exported file system.
pub fn passed(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned()) & PASSED
}

impl Open {
    /// Opened with the flags of open(2).
    pub fn new(file: OwnedFd, flags: i32) -> Self {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        Self {
            file,
            direct: flags.contains(OFlags::DIRECT),
            changes: flags.intersects(OFlags::ACCMODE | OFlags::TRUNC),
            stored_s: Mutex::new(None),
        }
    }

    /// pread(2).
    pub fn read(&self, size: usize, offset: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; size];
        let mut count = 0;
        while count < size {
            match pread(&self.file, &mut bytes[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        bytes.truncate(count);
        Ok(bytes)
    }

    /// pwrite(2). The kernel tells of a last close when close(2) is over, so the space of a file
    /// that was closed and removed before may come free only now.
    pub fn write(&self, nodes: &Nodes, bytes: &[u8], offset: u64) -> Result<usize> {
        loop {
            match pwrite(&self.file, bytes, offset) {
                Err(Errno::NOSPC) if nodes.unlinked_within(CLOSING) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                done => return done,
            }
        }
    }

    /// close(2) of one of several descriptors tells of a quota, or a server, of the exported system.
    pub fn flush(&self) -> Result<()> {
        let copy = dup(&self.file)?;
        // SAFETY: `copy` is ours and is not used after this.
        unsafe { rustix::io::try_close(std::os::fd::IntoRawFd::into_raw_fd(copy)) }
    }

    /// fsync(2), fdatasync(2).
    pub fn sync(&self, data_only: bool) -> Result<()> {
        if data_only {
            fdatasync(&self.file)
        } else {
            fsync(&self.file)
        }
    }

    /// fallocate(2), punching holes included.
    pub fn allocate(&self, mode: i32, offset: u64, size: u64) -> Result<()> {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        fallocate(&self.file, mode, offset, size)
    }

    /// lseek(2) with SEEK_DATA and SEEK_HOLE: the kernel does the rest itself.
    pub fn seek(&self, offset: i64, whence: i32) -> Result<i64> {
        let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let from = match whence {
            3 => SeekFrom::Data(offset),
            4 => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        seek(&self.file, from).map(u64::cast_signed)
    }

    /// The last close(2): what the kernel knows of the file is what this descriptor made of it.
    pub fn release(&self, node: &Node) {
        if self.changes
            && let Ok(found) = fstat(&self.file)
        {
            node.tell(&found);
        }
    }
}
