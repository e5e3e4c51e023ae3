//! Replies: how a result is told to the kernel.

use std::ffi::CString;
use std::time::Duration;

use fuser::{
    FileAttr, FileHandle, FopenFlags, Generation, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyXattr,
};
use rustix::fs::StatVfs;
use rustix::io::{Errno, Result};

/// What a client may go on believing without asking the server: acdirmin and acregmin of nfs(5).
pub const NAMES_VALID: Duration = Duration::from_secs(30);
const ATTRIBUTES_VALID: Duration = Duration::from_secs(3);

/// An error as the kernel is told it.
pub fn code(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

/// A name's node.
pub fn entry(reply: ReplyEntry) -> impl FnOnce(Result<FileAttr>) + Send {
    move |result| match result {
        Ok(found) => {
            reply.entry_with_ttls(&ATTRIBUTES_VALID, &NAMES_VALID, &found, Generation(0));
        }
        Err(errno) => reply.error(code(errno)),
    }
}

/// Attributes.
pub fn attr(reply: ReplyAttr) -> impl FnOnce(Result<FileAttr>) + Send {
    move |result| match result {
        Ok(found) => reply.attr(&ATTRIBUTES_VALID, &found),
        Err(errno) => reply.error(code(errno)),
    }
}

/// Nothing.
pub fn empty(reply: ReplyEmpty) -> impl FnOnce(Result<()>) + Send {
    move |result| match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(code(errno)),
    }
}

/// What a symbolic link says.
pub fn text(reply: ReplyData) -> impl FnOnce(Result<CString>) + Send {
    move |result| match result {
        Ok(text) => reply.data(text.as_bytes()),
        Err(errno) => reply.error(code(errno)),
    }
}

/// An opened file.
pub fn opened(reply: ReplyOpen) -> impl FnOnce(Result<(FileHandle, FopenFlags)>) + Send {
    move |result| match result {
        Ok((handle, flags)) => reply.opened(handle, flags),
        Err(errno) => reply.error(code(errno)),
    }
}

/// An opened file that is new.
pub fn created(
    reply: ReplyCreate,
) -> impl FnOnce(Result<(FileAttr, (FileHandle, FopenFlags))>) + Send {
    move |result| match result {
        Ok((found, (handle, flags))) => {
            reply.created(&NAMES_VALID, &found, Generation(0), handle, flags);
        }
        Err(errno) => reply.error(code(errno)),
    }
}

/// A place in a file.
pub fn place(reply: ReplyLseek) -> impl FnOnce(Result<i64>) + Send {
    move |result| match result {
        Ok(place) => reply.offset(place),
        Err(errno) => reply.error(code(errno)),
    }
}

/// How full a file system is.
pub fn filling(reply: ReplyStatfs) -> impl FnOnce(Result<StatVfs>) + Send {
    move |result| match result {
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
    }
}

/// A value of an extended attribute, or only its size where 0 bytes are wanted.
pub fn value(reply: ReplyXattr, size: u32) -> impl FnOnce(Result<Vec<u8>>) + Send {
    move |result| match result {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(code(Errno::RANGE)),
        Ok(value) => reply.data(&value),
        Err(errno) => reply.error(code(errno)),
    }
}
