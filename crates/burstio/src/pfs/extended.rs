//! Extended attributes (xattr(7)), access control lists included where the exported file system has
//! them.

use std::ffi::OsStr;

use rustix::fs::{
    XattrFlags, getxattr, lgetxattr, listxattr, llistxattr, lremovexattr, lsetxattr, removexattr,
    setxattr,
};
use rustix::io::{Errno, Result};

use super::nodes::Nodes;

/// The largest value, and list of names, that Linux knows (limits.h).
const MOST: usize = 65_536;

impl Nodes {
    /// getxattr(2).
    pub fn getxattr(&self, number: u64, name: &OsStr) -> Result<Vec<u8>> {
        let node = self.reading(number)?;
        let _names = self.names();
        let (path, follow) = node.place().path();
        read(|buffer| match follow {
            true => getxattr(&path, name, buffer),
            false => lgetxattr(&path, name, buffer),
        })
    }

    /// listxattr(2).
    pub fn listxattr(&self, number: u64) -> Result<Vec<u8>> {
        let node = self.reading(number)?;
        let _names = self.names();
        let (path, follow) = node.place().path();
        read(|buffer| match follow {
            true => listxattr(&path, buffer),
            false => llistxattr(&path, buffer),
        })
    }

    /// setxattr(2).
    pub fn setxattr(&self, number: u64, name: &OsStr, value: &[u8], flags: i32) -> Result<()> {
        let node = self.writing(number)?;
        let _names = self.names();
        let (path, follow) = node.place().path();
        let set = if follow { setxattr } else { lsetxattr };
        set(
            &path,
            name,
            value,
            XattrFlags::from_bits_retain(flags.cast_unsigned()),
        )
    }

    /// removexattr(2).
    pub fn removexattr(&self, number: u64, name: &OsStr) -> Result<()> {
        let node = self.writing(number)?;
        let _names = self.names();
        let (path, follow) = node.place().path();
        let remove = if follow { removexattr } else { lremovexattr };
        remove(&path, name)
    }
}

/// Free of cost: what the kernel asks for at every write (security.capability), and the access
/// control list, which a server sends along with the attributes.
pub fn is_free(name: &OsStr) -> bool {
    is_security(name) || name.as_encoded_bytes().starts_with(b"system.")
}

/// Not passed on.
pub fn is_security(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"security.")
}

fn read(get: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut value = vec![0; MOST];
    let count = get(&mut value)?;
    if count > MOST {
        return Err(Errno::RANGE);
    }
    value.truncate(count);
    Ok(value)
}
