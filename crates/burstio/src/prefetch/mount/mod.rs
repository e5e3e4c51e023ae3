//! The data set as a read-only directory, for programs that know nothing of this: a FUSE file
//! system that the engine serves.
//!
//! The list of files gives all directories and, with sizes, all attributes: the source is asked for
//! contents only. A file that is read before its turn is read from the source, once, as any sample
//! that somebody waits for; meanwhile the cache is filled in the order of a list.

mod filling;
mod served;
mod tree;

use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};

use fuser::{BackgroundSession, Config, MountOption, Session};

use super::engine::{Engine, GRACE};
use super::reading::thread;
use super::schedule::{Sample, UNKNOWN};
use filling::Filling;
use served::Served;

/// Reads of the program that may wait at once.
const THREADS: usize = 32;
/// Larger files than this part of the memory are read in place, piece by piece, and not cached.
const LARGE: usize = 8;

/// A mounted data set; unmounted when dropped.
pub struct Mount {
    session: Option<BackgroundSession>,
    filling: Filling,
}

impl Mount {
    /// Mount at `directory`, and fill the engine's cache in the given order.
    ///
    /// Fails where it can't be mounted (without root that takes `fusermount3`), or the list of
    /// files makes no directory tree.
    pub fn new(engine: Arc<Engine>, directory: &Path, order: Vec<Sample>) -> io::Result<Self> {
        let large = engine.options().memory_bytes / LARGE;
        let sizes = engine.source().sizes();
        let fits = |sample: &Sample| {
            sizes
                .get(*sample as usize)
                .is_some_and(|size| *size <= large as u64 || *size == UNKNOWN)
        };
        let order = order
            .into_iter()
            .filter(fits)
            .filter(|it| engine.owns(*it))
            .collect();
        let served = Served::new(engine.clone(), large)?;
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("burstio".into()),
            MountOption::Subtype("burstio".into()),
            MountOption::RO,
            MountOption::NoSuid,
            MountOption::NoDev,
            MountOption::DefaultPermissions,
        ];
        config.n_threads = Some(THREADS);
        let session = Session::new(served, directory, &config).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
        })?;
        Ok(Self {
            session: Some(session.spawn()?),
            filling: Filling::start(engine, order)?,
        })
    }

    /// Unmount, and stop filling. Fails where somebody still stands in it, or a read of the source
    /// does not return: who asked for it may be gone, so it keeps nobody else waiting.
    pub fn close(&mut self) -> io::Result<()> {
        self.filling.stop();
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let (tell, told) = mpsc::channel();
        let unmounting = thread("burstio-unmount").spawn(move || {
            let _ = tell.send(session.umount_and_join());
        })?;
        let Ok(done) = told.recv_timeout(GRACE) else {
            let message = "a read of the source has not returned";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        };
        let _ = unmounting.join();
        done
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
