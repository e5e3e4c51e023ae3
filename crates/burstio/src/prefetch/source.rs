//! The data set where it comes from: a directory and the list of its files.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::schedule::{Sample, UNKNOWN};
use super::segment::Fingerprint;

/// Why a sample could not be had; `errno` as errno(3).
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What the kernel said, or what comes nearest.
    pub errno: i32,
    /// In words.
    pub message: String,
}

impl ReadError {
    /// Of a file that the kernel refuses.
    pub fn of(path: &Path, error: &io::Error) -> Self {
        let errno = error
            .raw_os_error()
            .unwrap_or(rustix::io::Errno::IO.raw_os_error());
        let message = error.to_string();
        let message = message
            .split(" (os error")
            .next()
            .unwrap_or(&message)
            .to_owned();
        Self {
            path: path.to_owned(),
            errno,
            message,
        }
    }

    /// With words of our own.
    pub fn new(path: &Path, errno: rustix::io::Errno, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            errno: errno.raw_os_error(),
            message: message.into(),
        }
    }
}

/// A list of files below a directory, in little more memory than their names take.
pub struct Source {
    root: PathBuf,
    names: Vec<u8>,
    ends: Vec<u32>,
    sizes: Vec<u64>,
    fingerprint: Fingerprint,
}

impl Source {
    /// `files` are paths relative to `root`, with their sizes where these are known.
    ///
    /// `identity` tells data sets apart that have the same files, as a manifest's digest does:
    /// samples kept by a former run are used again only where it is given and the same.
    pub fn new<'a>(
        root: PathBuf,
        files: impl Iterator<Item = (&'a [u8], Option<u64>)>,
        identity: &str,
    ) -> Self {
        let (mut names, mut ends, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for (name, size) in files {
            names.extend_from_slice(name);
            ends.push(u32::try_from(names.len()).expect("names of a data set take less than 4 GB"));
            sizes.push(size.unwrap_or(UNKNOWN));
        }
        let mut hasher = Xxh3::new();
        hasher.update(identity.as_bytes());
        hasher.update(&[0]);
        hasher.update(&names);
        ends.iter()
            .for_each(|end| hasher.update(&end.to_le_bytes()));
        let fingerprint = hasher.digest();
        Self {
            root,
            names,
            ends,
            sizes,
            fingerprint,
        }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Of the files' names and the identity.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Sizes as they were given, or [`UNKNOWN`].
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The sample's path relative to the root.
    pub fn name(&self, sample: Sample) -> &OsStr {
        let sample = sample as usize;
        let begin = if sample == 0 {
            0
        } else {
            self.ends[sample - 1]
        };
        OsStr::from_bytes(&self.names[begin as usize..self.ends[sample] as usize])
    }

    /// The sample's full path.
    pub fn path(&self, sample: Sample) -> PathBuf {
        self.root.join(self.name(sample))
    }

    /// Open a sample; its size comes with it.
    pub fn open(&self, sample: Sample) -> Result<(File, usize), ReadError> {
        let path = self.path(sample);
        let failed = |error: io::Error| ReadError::of(&path, &error);
        let file = File::open(&path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            let errno = rustix::io::Errno::INVAL;
            return Err(ReadError::new(&path, errno, "is not a regular file"));
        }
        let (size, expected) = (found.len(), self.sizes[sample as usize]);
        if expected != UNKNOWN && size != expected {
            return Err(self.changed(sample, size, expected));
        }
        Ok((file, size as usize))
    }

    /// Fill `bytes`, which are as many as `open` said.
    pub fn read(&self, sample: Sample, file: &File, bytes: &mut [u8]) -> Result<(), ReadError> {
        let mut done = 0;
        while done < bytes.len() {
            match file.read_at(&mut bytes[done..], done as u64) {
                Ok(0) => return Err(self.changed(sample, done as u64, bytes.len() as u64)),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::of(&self.path(sample), &error)),
            }
        }
        Ok(())
    }

    fn changed(&self, sample: Sample, found: u64, expected: u64) -> ReadError {
        let message = format!("{found} bytes where {expected} are expected");
        ReadError::new(&self.path(sample), rustix::io::Errno::IO, message)
    }
}
