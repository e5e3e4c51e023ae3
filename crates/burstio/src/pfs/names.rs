//! Operations on names: the metadata server's half, with [`super::listing`] and [`super::status`].

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fuser::{FileAttr, RenameFlags};
use rustix::fs::{
    AtFlags, Dev, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fstat, linkat, mkdirat, mknodat,
    openat, readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::{Errno, Result};

use super::attributes::attributes;
use super::nodes::{Node, Nodes};

const ITSELF: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

/// Who an operation is done for.
#[derive(Clone, Copy)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
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

    pub(super) fn known(&self, directory: &Node, name: &OsStr) -> Result<FileAttr> {
        let found = statat(directory.place().directory()?, name, ITSELF)?;
        let node = self.remember(directory, name, &found)?;
        node.tell(&found);
        Ok(attributes(node.number, &found))
    }

    pub(super) fn told(&self, node: &Node) -> Result<FileAttr> {
        let found = node.place().stat()?;
        node.tell(&found);
        Ok(attributes(node.number, &found))
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
