//! Operations on the attributes of nodes, and of the file systems that they lie on.

use fuser::{FileAttr, TimeOrNow};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, StatVfs, Timestamps, Uid, chmodat, chownat, fstat, ftruncate,
    statvfs, utimensat,
};
use rustix::io::Result;

use super::attributes::{attributes, attributes_of_top, timespec};
use super::nodes::{Nodes, Place};
use super::open::Open;

/// What setattr is to change: chmod(2), chown(2), truncate(2), utimensat(2) in one.
#[derive(Default)]
pub struct Changes {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<TimeOrNow>,
    pub mtime: Option<TimeOrNow>,
}

impl Nodes {
    /// stat(2), fstat(2).
    pub fn getattr(&self, number: u64, open: Option<&Open>) -> Result<FileAttr> {
        let Some(node) = self.find(number)? else {
            return Ok(attributes_of_top());
        };
        let Some(open) = open else {
            let _names = self.names();
            return self.told(&node);
        };
        let found = fstat(&open.file)?;
        node.tell(&found);
        Ok(attributes(number, &found))
    }

    /// Whether the attributes of this node have just been sent.
    pub fn attributes_came_along(&self, number: u64) -> bool {
        matches!(self.find(number), Ok(Some(node)) if node.attributes_came_along())
    }

    /// chmod(2), chown(2), truncate(2), utimensat(2).
    pub fn setattr(&self, number: u64, open: Option<&Open>, changes: &Changes) -> Result<FileAttr> {
        let node = self.writing(number)?;
        let _names = self.names();
        let place = node.place();
        let (directory, name, itself) = place.at();
        if let Some(mode) = changes.mode {
            let mode = Mode::from_raw_mode(mode & 0o7777);
            chmodat(directory, &name, mode, AtFlags::empty())?; // links have no mode
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (
                changes.uid.map(Uid::from_raw),
                changes.gid.map(Gid::from_raw),
            );
            chownat(directory, &name, uid, gid, itself)?;
        }
        if let Some(size) = changes.size {
            match open {
                Some(open) => ftruncate(&open.file, size)?,
                None => ftruncate(place.open(OFlags::WRONLY)?, size)?,
            }
        }
        if changes.atime.is_some() || changes.mtime.is_some() {
            let times = Timestamps {
                last_access: timespec(changes.atime),
                last_modification: timespec(changes.mtime),
            };
            utimensat(directory, &name, &times, itself)?;
        }
        match open {
            Some(_) => self.getattr(number, open),
            None => self.told(&node),
        }
    }

    /// statvfs(3); the mount point itself answers for the first export.
    pub fn statfs(&self, number: u64) -> Result<StatVfs> {
        let node = self
            .find(number)?
            .unwrap_or_else(|| self.exports[0].top.clone());
        let _names = self.names();
        let (path, _) = match node.place() {
            held @ Place::Held(_) => held.path(),
            Place::Named(directory, _) => Place::Held(directory).path(),
        };
        statvfs(path)
    }
}
