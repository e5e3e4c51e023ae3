//! Attributes, as stat(2) gives them and as the kernel's FUSE wants them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Stat, Timespec, UTIME_NOW, UTIME_OMIT};

/// st_blksize: what stdio buffers, what a request carries at most.
pub const STRIPE_BYTES: u32 = 1 << 20;

/// Of a file or directory of that number.
pub fn attributes(number: u64, found: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: found.st_size.cast_unsigned(),
        blocks: found.st_blocks.cast_unsigned(),
        atime: time(found.st_atime, found.st_atime_nsec),
        mtime: time(found.st_mtime, found.st_mtime_nsec),
        ctime: time(found.st_ctime, found.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(found.st_mode),
        perm: (found.st_mode & 0o7777) as u16,
        nlink: found.st_nlink as u32,
        uid: found.st_uid,
        gid: found.st_gid,
        rdev: device(found.st_rdev),
        blksize: STRIPE_BYTES,
        flags: 0,
    }
}

/// Of the mount point.
pub fn attributes_of_top() -> FileAttr {
    FileAttr {
        ino: INodeNo::ROOT,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::Directory,
        perm: 0o755,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: STRIPE_BYTES,
        flags: 0,
    }
}

/// An argument of utimensat(2).
pub fn timespec(given: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match given {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(at)) => match at.duration_since(UNIX_EPOCH) {
            Ok(since) => Timespec {
                tv_sec: since.as_secs().cast_signed(),
                tv_nsec: since.subsec_nanos().into(),
            },
            Err(before) => {
                let before = before.duration();
                let part = i64::from(before.subsec_nanos());
                Timespec {
                    tv_sec: -before.as_secs().cast_signed() - i64::from(part > 0),
                    tv_nsec: (1_000_000_000 - part) % 1_000_000_000,
                }
            }
        },
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds);
    match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds) + part,
        Err(_) => UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()) + part,
    }
}

fn kind(mode: u32) -> FileType {
    match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        rustix::fs::FileType::Fifo => FileType::NamedPipe,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice => FileType::CharDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

/// The kernel's own 32 bits for a device (new_encode_dev).
fn device(number: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}
