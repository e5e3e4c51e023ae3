//! Operations on names and attributes: the metadata server's half.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use fuser::{FileAttr, RenameFlags, TimeOrNow};
use rustix::fs::{
    AtFlags, Dev, FileType, Gid, Mode, OFlags, Stat, StatVfs, Timestamps, Uid, chmodat, chownat,
    fstat, fsync, ftruncate, linkat, mkdirat, mknodat, openat, readlinkat, renameat, renameat_with,
    statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::{Errno, Result};

use super::attributes::{attributes, attributes_of_top, timespec};
use super::nodes::{Node, Nodes};
use super::open::Open;

const ITSELF: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

/// An open directory, and its entries as they were when it was read from its beginning.
pub struct Directory {
    node: Option<Arc<Node>>,
    entries: Mutex<Arc<Vec<OsString>>>,
}

/// Who an operation is done for.
#[derive(Clone, Copy)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

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
    /// A node to be looked at. ENOTSUP for the mount point itself.
    pub fn reading(&self, number: u64) -> Result<Arc<Node>> {
        self.find(number)?.ok_or(Errno::OPNOTSUPP)
    }

    /// A node to be changed. EROFS where that is not allowed.
    pub fn writing(&self, number: u64) -> Result<Arc<Node>> {
        self.find(number)?
            .filter(|node| !node.read_only)
            .ok_or(Errno::ROFS)
    }

    /// A directory in which a name comes or goes; the answer carries its new attributes (as in NFS,
    /// RFC 1813, wcc_data).
    pub fn entry(&self, number: u64) -> Result<Arc<Node>> {
        let directory = self.writing(number)?;
        directory.sent.store(true, Relaxed);
        Ok(directory)
    }

    /// stat(2) of a name in a directory.
    pub fn lookup(&self, parent: u64, name: &OsStr) -> Result<FileAttr> {
        let _names = self.names();
        match self.find(parent)? {
            Some(directory) => self.known(&directory, name),
            None => self
                .exports
                .iter()
                .find(|export| export.name.as_bytes() == name.as_bytes())
                .map_or(Err(Errno::NOENT), |export| self.told(&export.top)),
        }
    }

    fn known(&self, directory: &Node, name: &OsStr) -> Result<FileAttr> {
        let found = statat(directory.place().directory()?, name, ITSELF)?;
        let node = self.remember(directory, name, &found)?;
        node.tell(&found);
        Ok(attributes(node.number, &found))
    }

    fn told(&self, node: &Node) -> Result<FileAttr> {
        let found = node.place().stat()?;
        node.tell(&found);
        Ok(attributes(node.number, &found))
    }

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

    /// readlink(2).
    pub fn readlink(&self, number: u64) -> Result<CString> {
        let node = self.reading(number)?;
        let _names = self.names();
        match node.place() {
            super::nodes::Place::Held(itself) => readlinkat(itself, c"", Vec::new()),
            super::nodes::Place::Named(directory, name) => readlinkat(directory, name, Vec::new()),
        }
    }

    /// mknod(2).
    pub fn mknod(
        &self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        device: u32,
        caller: Caller,
    ) -> Result<FileAttr> {
        let kind = FileType::from_raw_mode(mode);
        self.made(parent, name, caller, |directory| {
            mknodat(
                directory,
                name,
                kind,
                Mode::from_raw_mode(mode & 0o7777),
                Dev::from(device),
            )
        })
    }

    /// mkdir(2).
    pub fn mkdir(&self, parent: u64, name: &OsStr, mode: u32, caller: Caller) -> Result<FileAttr> {
        self.made(parent, name, caller, |directory| {
            mkdirat(directory, name, Mode::from_raw_mode(mode & 0o7777))
        })
    }

    /// symlink(2).
    pub fn symlink(
        &self,
        parent: u64,
        name: &OsStr,
        text: &Path,
        caller: Caller,
    ) -> Result<FileAttr> {
        self.made(parent, name, caller, |directory| {
            symlinkat(text, directory, name)
        })
    }

    fn made(
        &self,
        parent: u64,
        name: &OsStr,
        caller: Caller,
        make: impl FnOnce(&OwnedFd) -> Result<()>,
    ) -> Result<FileAttr> {
        let directory = self.entry(parent)?;
        let _names = self.names();
        let held = directory.place().directory()?;
        make(&held)?;
        give(&held, name, caller)?;
        self.known(&directory, name)
    }

    /// link(2).
    pub fn link(&self, number: u64, parent: u64, name: &OsStr) -> Result<FileAttr> {
        let (old, directory) = (self.writing(number)?, self.entry(parent)?);
        if old.export != directory.export {
            return Err(Errno::XDEV);
        }
        let _names = self.names();
        let place = old.place();
        let (from, own, itself) = place.at();
        let follow = if itself.is_empty() {
            AtFlags::SYMLINK_FOLLOW
        } else {
            AtFlags::empty()
        };
        linkat(from, &own, directory.place().directory()?, name, follow)?;
        self.known(&directory, name)
    }

    /// unlink(2).
    pub fn unlink(&self, parent: u64, name: &OsStr) -> Result<()> {
        let directory = self.entry(parent)?;
        let _renaming = self.renaming();
        self.hold(&directory, name)?;
        unlinkat(directory.place().directory()?, name, AtFlags::empty())
    }

    /// rmdir(2).
    pub fn rmdir(&self, parent: u64, name: &OsStr) -> Result<()> {
        let directory = self.entry(parent)?;
        let _renaming = self.renaming();
        unlinkat(directory.place().directory()?, name, AtFlags::REMOVEDIR)
    }

    /// renameat2(2), its flags included.
    pub fn rename(
        &self,
        (old_parent, old): (u64, &OsStr),
        (new_parent, new): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<()> {
        let (from, to) = (self.entry(old_parent)?, self.entry(new_parent)?);
        if from.export != to.export {
            return Err(Errno::XDEV);
        }
        let _renaming = self.renaming();
        let (old_held, new_held) = (from.place().directory()?, to.place().directory()?);
        if flags.is_empty() {
            match self.hold(&to, new) {
                Err(Errno::NOENT) | Ok(()) => {}
                Err(errno) => return Err(errno),
            }
            renameat(old_held, old, new_held, new)?;
        } else {
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            renameat_with(old_held, old, new_held, new, flags)?;
        }
        self.moved(&to, new)?;
        match self.moved(&from, old) {
            Err(Errno::NOENT) => Ok(()),
            done => done,
        }
    }

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
                let same =
                    |export: &&super::nodes::Export| export.name.as_bytes() == name.as_bytes();
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

    /// statvfs(3); the mount point itself answers for the first export.
    pub fn statfs(&self, number: u64) -> Result<StatVfs> {
        let node = self
            .find(number)?
            .unwrap_or_else(|| self.exports[0].top.clone());
        let _names = self.names();
        let (path, _) = match node.place() {
            held @ super::nodes::Place::Held(_) => held.path(),
            super::nodes::Place::Named(directory, _) => super::nodes::Place::Held(directory).path(),
        };
        rustix::fs::statvfs(path)
    }

    /// open(2) with O_CREAT: the new file's attributes and descriptor.
    pub fn create(
        &self,
        parent: u64,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
        caller: Caller,
    ) -> Result<(FileAttr, OwnedFd)> {
        let directory = self.entry(parent)?;
        let _names = self.names();
        let held = directory.place().directory()?;
        let flags = flags | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&held, name, flags, Mode::from_raw_mode(mode & 0o7777))?;
        give(&held, name, caller)?;
        let found: Stat = fstat(&file)?;
        let node = self.remember(&directory, name, &found)?;
        let found = fstat(&file)?;
        node.tell(&found);
        Ok((attributes(node.number, &found), file))
    }
}

/// `.` and `..`, which the kernel does not take for lookups.
pub fn is_dot(name: &OsStr) -> bool {
    matches!(name.as_bytes(), b"." | b"..")
}

/// A server that runs as root made it; the client's user is to own it.
fn give(directory: &OwnedFd, name: &OsStr, caller: Caller) -> Result<()> {
    if !rustix::process::geteuid().is_root() || (caller.uid, caller.gid) == (0, 0) {
        return Ok(());
    }
    let inherits = fstat(directory)?.st_mode & 0o2000 != 0;
    let gid = (!inherits).then(|| Gid::from_raw(caller.gid));
    chownat(
        directory.as_fd(),
        name,
        Some(Uid::from_raw(caller.uid)),
        gid,
        ITSELF,
    )
}
