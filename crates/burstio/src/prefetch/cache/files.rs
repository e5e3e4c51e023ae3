//! A file of its own for every sample: what segments are compared with.
//!
//! A file is a segment of one record, opened, read and closed each time, as small files are. It
//! has a name as long as it is used, so what a killed process leaves is removed by the next.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::super::schedule::Sample;
use super::super::segment::{self, Fingerprint, HEADER, Record};
use super::writing::{append, make_private_directory};

/// Files of one directory, below that of all.
const FAN: u32 = 1000;

/// The directory of all files.
pub struct Files(PathBuf);

impl Files {
    /// Those that end with this process lie apart from those that are kept, so that nobody takes
    /// what a killed process could not remove for something that was meant to stay.
    pub fn new(cache: &Path, keep: bool) -> Self {
        Self(cache.join(if keep { "samples-kept" } else { "samples" }))
    }

    /// Open a sample's file.
    pub fn open(&self, sample: Sample) -> io::Result<File> {
        File::open(self.path(sample))
    }

    fn path(&self, sample: Sample) -> PathBuf {
        self.0.join(format!("{}/{sample}", sample / FAN))
    }

    /// Write a sample's file; one that can't be written whole is removed.
    pub fn write(&self, sample: Sample, header: &[u8; HEADER], bytes: &[u8]) -> io::Result<()> {
        let path = self.path(sample);
        let file = match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private_directory(path.parent().expect("it has one"))?;
                create(&path)
            }
            done => done,
        }?;
        let pieces = [IoSlice::new(header), IoSlice::new(bytes)];
        append(&file, &pieces, 0).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })?;
        Ok(())
    }

    /// The records of a former run that `wanted` wants, given how many bytes each takes; all
    /// other files are removed.
    pub fn adopt(
        &self,
        fingerprint: Fingerprint,
        mut wanted: impl FnMut(&Record, u64) -> bool,
    ) -> io::Result<()> {
        for directory in listing(&self.0)? {
            for path in listing(&directory)? {
                let file = File::open(&path)?;
                let size = file.metadata()?.len();
                let found = segment::records(&file, fingerprint)?;
                let own = |record: &Record| self.path(record.sample) == path;
                if !matches!(&found[..], [(_, record)] if own(record) && wanted(record, size)) {
                    std::fs::remove_file(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Remove all files.
    pub fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// Paths of what lies in a directory; nothing where there is none.
fn listing(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        found => found?.map(|entry| Ok(entry?.path())).collect(),
    }
}
