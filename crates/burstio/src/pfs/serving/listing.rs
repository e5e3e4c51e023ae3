//! Listings of directories, with the attributes of their entries.

use std::ffi::OsString;

use fuser::{FileHandle, Generation, ReplyDirectoryPlus};
use rustix::io::Result;

use super::super::listing::{Directory, is_dot};
use super::replies::NAMES_VALID;
use super::{AT_ONCE, Served};

/// Directory entries with attributes in one reply of a server, of about 1 MiB.
const ENTRIES_PER_MESSAGE: u64 = 1024;

impl Served {
    /// Entries from number `offset` on, until the reply is full; returns when they have come.
    ///
    /// The kernel asks a few KiB at a time; what is paid for are the batches a server sends.
    pub(super) fn list(
        &self,
        handle: FileHandle,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<f64> {
        self.stall.wait();
        let began = self.later.now();
        let directory = self.directories.get(handle)?;
        let names = self.nodes.list(&directory, offset == 0)?;
        let place = self.fill(&directory, &names, offset, reply)?;
        let batches = |entries: u64| entries.div_ceil(ENTRIES_PER_MESSAGE);
        Ok(match batches(place) - batches(offset) {
            0 => AT_ONCE,
            more => self.costs.metadata(began, more),
        })
    }

    /// Put entries from number `offset` on into a reply; returns the number of the next.
    fn fill(
        &self,
        directory: &Directory,
        names: &[OsString],
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<u64> {
        for (place, name) in (offset..).zip(names.iter().skip(offset as usize)) {
            let Some(found) = self.nodes.listed(directory, name)? else {
                continue; // it went since
            };
            let counted = !is_dot(name);
            let next = place + 1;
            if reply.add(found.ino, next, name, &NAMES_VALID, &found, Generation(0)) {
                if counted {
                    self.nodes.forget(found.ino.0, 1);
                }
                return Ok(place);
            }
        }
        Ok(names.len() as u64)
    }
}
