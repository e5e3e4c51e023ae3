//! Open directories and what they list.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Arc, Mutex};

use fuser::FileAttr;
use rustix::fs::{OFlags, fsync};
use rustix::io::{Errno, Result};

use super::nodes::{Export, Node, Nodes};

/// An open directory, and its entries as they were when it was read from its beginning.
pub struct Directory {
    node: Option<Arc<Node>>,
    entries: Mutex<Arc<Vec<OsString>>>,
}

impl Nodes {
    /// opendir(3).
    pub fn opendir(&self, number: u64) -> Result<Directory> {
        Ok(Directory {
            node: self.find(number)?,
            entries: Mutex::default(),
        })
    }

    /// The entries of an open directory, read anew when they are wanted from the beginning.
    pub fn list(&self, directory: &Directory, anew: bool) -> Result<Arc<Vec<OsString>>> {
        if anew {
            let found = self.names_in(directory)?;
            *directory.entries.lock().expect("cloning does not panic") = Arc::new(found);
        }
        Ok(directory
            .entries
            .lock()
            .expect("cloning does not panic")
            .clone())
    }

    fn names_in(&self, directory: &Directory) -> Result<Vec<OsString>> {
        let Some(node) = &directory.node else {
            let names = self
                .exports
                .iter()
                .map(|export| export.name.as_bytes().to_vec());
            return Ok(names.map(OsString::from_vec).collect());
        };
        let opened = node.place().open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(opened)? {
            names.push(OsString::from_vec(entry?.file_name().to_bytes().to_vec()));
        }
        Ok(names)
    }

    /// An entry of a listing with its attributes; None where it went since. Counts as a lookup,
    /// but for `.` and `..`.
    pub fn listed(&self, directory: &Directory, name: &OsStr) -> Result<Option<FileAttr>> {
        let _names = self.names();
        let found = match (&directory.node, is_dot(name)) {
            (None, _) => {
                let same = |export: &&Export| export.name.as_bytes() == name.as_bytes();
                self.exports
                    .iter()
                    .find(same)
                    .map_or(Err(Errno::NOENT), |e| self.told(&e.top))
            }
            (Some(node), true) => self.told(node),
            (Some(node), false) => self.known(node, name),
        };
        match found {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }

    /// fsync(2) of a directory.
    pub fn fsyncdir(&self, directory: &Directory) -> Result<()> {
        match &directory.node {
            None => Ok(()),
            Some(node) => fsync(node.place().open(OFlags::RDONLY | OFlags::DIRECTORY)?),
        }
    }
}

/// `.` and `..`, which the kernel does not take for lookups.
pub fn is_dot(name: &OsStr) -> bool {
    matches!(name.as_bytes(), b"." | b"..")
}
