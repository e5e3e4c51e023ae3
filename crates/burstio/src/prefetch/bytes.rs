//! A sample's bytes, in memory that knows where it goes back to.

use std::io;
use std::sync::Arc;

use super::board::Board;
use super::region::Region;
use super::schedule::Place;
use super::source::ReadError;

/// The memory of an engine, and who gets which part of it.
pub(super) struct Pool {
    pub board: Board<Bytes, ReadError>,
    pub region: Region,
}

/// A sample's bytes; its memory goes back to the engine when the last who holds it lets go.
pub struct Bytes {
    pool: Arc<Pool>,
    place: Place,
    own: Option<Region>,
    length: usize,
}

impl Bytes {
    pub(super) fn new(pool: &Arc<Pool>, place: Place, length: usize) -> io::Result<Self> {
        let own = match place {
            Place::Offset(_) => None,
            Place::Own => Some(Region::new(length)?),
        };
        Ok(Self {
            pool: pool.clone(),
            place,
            own,
            length,
        })
    }

    /// Where these bytes lie in the memory that they share with others, or their own memory.
    pub fn location(&self) -> Result<usize, &Region> {
        match (self.place, &self.own) {
            (Place::Offset(offset), _) => Ok(offset),
            (Place::Own, Some(region)) => Err(region),
            (Place::Own, None) => unreachable!("made together"),
        }
    }

    fn pointer(&self) -> *mut u8 {
        match self.location() {
            Ok(offset) => self.pool.region.at(offset, self.length).as_ptr(),
            Err(region) => region.at(0, self.length).as_ptr(),
        }
    }

    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the schedule gives a range to one sample at a time, and `&mut self` says that
        // nobody has been given this one yet.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.length) }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: nobody writes to it after it was filled, until it is dropped.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.length) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.pool.board.give_back(self.place, self.length);
    }
}
