//! The directories of a data set, in the source and in the target.

use std::collections::{BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::{CopyError, Entry, Fault};

/// How long a client believes a name without asking again: shorter than NFS does (30 s, nfs(5)).
const BELIEVED: Duration = Duration::from_secs(20);

/// Fewer files than this are looked up one by one: a listing would cost as much.
const LISTED_FROM: usize = 4;

/// One directory while its files are copied.
pub struct Pair {
    /// In the source, if there is one on this node.
    pub source: Option<OwnedFd>,
    /// In the target.
    pub target: OwnedFd,
    /// Made by this staging: nothing can be there already.
    pub fresh: bool,
}

/// All directories that have files.
pub struct Directories {
    source: Option<PathBuf>,
    target: PathBuf,
    all: Vec<Directory>,
    parents: HashMap<String, Parent>,
}

/// A directory with directories in it, whether it has files or not.
#[derive(Default)]
struct Parent {
    directories: usize,
    listed: Mutex<Option<Instant>>,
}

struct Directory {
    path: String,
    fresh: bool,
    files: usize,
    open: Mutex<State>,
}

struct State {
    pair: Option<Arc<Pair>>,
    left: usize, // files not yet done: the last one closes it
}

impl Directories {
    /// Give each entry its directory, and make all of them in the target.
    pub fn make(
        source: Option<&Path>,
        target: &Path,
        entries: &mut [Entry],
    ) -> Result<Self, CopyError> {
        let mut files: Vec<(String, usize)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for entry in entries {
            if !entry.is_below_root() {
                return Err(Fault::BadPath.of(&*entry.path));
            }
            entry.directory = match known.get(entry.parent()) {
                Some(&directory) => directory,
                None => {
                    known.insert(entry.parent().to_owned(), files.len());
                    files.push((entry.parent().to_owned(), 0));
                    files.len() - 1
                }
            };
            files[entry.directory].1 += 1;
        }
        let mut every = BTreeSet::from([""]);
        let mut parents: HashMap<String, Parent> = HashMap::new();
        for (mut path, _) in files.iter().map(|(path, count)| (path.as_str(), count)) {
            while every.insert(path) {
                path = parent(path);
                parents.entry(path.to_owned()).or_default().directories += 1;
            }
        }
        let fresh = make_all(target, every)?;
        let all = files.into_iter().map(|(path, files)| Directory {
            fresh: fresh.contains(&path),
            open: Mutex::new(State {
                pair: None,
                left: files,
            }),
            path,
            files,
        });
        let all = all.collect();
        Ok(Directories {
            source: source.map(Path::to_owned),
            target: target.to_owned(),
            all,
            parents,
        })
    }

    /// How many have files.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing was in the target before.
    pub fn all_fresh(&self) -> bool {
        self.all.iter().all(|directory| directory.fresh)
    }

    /// Open one, or share what another file of it has opened.
    pub fn open(&self, directory: usize) -> Result<Arc<Pair>, Fault> {
        let directory = &self.all[directory];
        let mut state = directory.open.lock().unwrap();
        if let Some(pair) = &state.pair {
            return Ok(pair.clone());
        }
        let source = match &self.source {
            Some(root) => {
                self.list_parents(root, &directory.path)
                    .map_err(Fault::reading)?;
                let source = open(&root.join(&directory.path)).map_err(Fault::reading)?;
                if directory.files >= LISTED_FROM {
                    list(&source, 2 * directory.files).map_err(Fault::reading)?;
                }
                Some(source)
            }
            None => None,
        };
        let target = open(&self.target.join(&directory.path)).map_err(Fault::writing)?;
        let pair = Arc::new(Pair {
            source,
            target,
            fresh: directory.fresh,
        });
        state.pair = Some(pair.clone());
        Ok(pair)
    }

    /// The names of directories beside each other are looked up at once, too.
    fn list_parents(&self, root: &Path, mut path: &str) -> Result<(), Errno> {
        let mut parents = Vec::new();
        while !path.is_empty() {
            path = parent(path);
            parents.push(path);
        }
        for path in parents.into_iter().rev() {
            let parent = &self.parents[path];
            let mut listed = parent.listed.lock().unwrap();
            let known = listed.is_some_and(|at: Instant| at.elapsed() < BELIEVED);
            if parent.directories >= LISTED_FROM && !known {
                list(&open(&root.join(path))?, 2 * parent.directories)?;
                *listed = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// A file of it is copied.
    pub fn done(&self, directory: usize) {
        let mut state = self.all[directory].open.lock().unwrap();
        state.left -= 1;
        if state.left == 0 {
            state.pair = None;
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Read about `entries` names. Network file systems send attributes along (NFS, FUSE), and the
/// kernel then opens the files without asking for each name.
fn list(directory: &OwnedFd, entries: usize) -> Result<(), Errno> {
    let mut buffer = [const { MaybeUninit::uninit() }; 32 << 10];
    let mut listing = RawDir::new(directory.as_fd(), &mut buffer);
    for _ in 0..entries {
        match listing.next() {
            Some(entry) => entry?,
            None => break,
        };
    }
    Ok(())
}

/// Make the root and all directories, parents first; returns those that were not there.
fn make_all(target: &Path, all: BTreeSet<&str>) -> Result<BTreeSet<String>, CopyError> {
    let mut made = BTreeSet::new();
    for path in all {
        let directory = match path {
            "" => target.to_owned(),
            below => target.join(below),
        };
        let made_now = std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(false)
            .create(&directory);
        let failed = match made_now {
            Ok(()) => {
                made.insert(path.to_owned());
                continue;
            }
            Err(_) if directory.is_dir() => continue,
            Err(error) => error,
        };
        let errno = Errno::from_io_error(&failed).unwrap_or(Errno::IO);
        return Err(Fault::writing(errno).of(directory.to_string_lossy()));
    }
    Ok(made)
}
