//! What the kernel knows: its inode numbers, and where each of them lies in an exported directory.
//!
//! A directory is held open. A file is the name under which it was last looked up, so that a
//! million of them need no million descriptors; when that name goes while the kernel still knows
//! the file, as for one that is open and was removed, a descriptor takes its place.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::{Errno, Result};

const ALIVE: &str = "no thread panics under this lock";
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory shown under a name at the top of the mount.
pub struct Export {
    /// The name there.
    pub name: CString,
    /// The directory itself.
    pub top: Arc<Node>,
}

/// A file or directory that the kernel knows.
pub struct Node {
    /// Its number, also in st_ino.
    pub number: u64,
    /// Of its export.
    pub export: usize,
    pub read_only: bool,
    identity: (usize, u64, u64),
    kind: FileType,
    place: Mutex<Place>,
    /// An answer has carried its attributes: when they are asked for next, that costs nothing.
    pub sent: AtomicBool,
    told: Mutex<Option<Told>>,
}

/// Where a node lies: two of the arguments of openat(2).
#[derive(Clone)]
pub enum Place {
    /// A descriptor of itself.
    Held(Arc<OwnedFd>),
    /// The directory, and its name there.
    Named(Arc<OwnedFd>, CString),
}

/// Size and time of change: what tells that contents are others.
type Told = (i64, i64, u64);

impl Place {
    /// lstat(2).
    pub fn stat(&self) -> Result<Stat> {
        match self {
            Self::Held(itself) => fstat(itself),
            Self::Named(directory, name) => {
                statat(directory, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }

    /// open(2).
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd> {
        let (directory, name, follow) = self.at();
        let own = if follow.is_empty() {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        openat(
            directory,
            name,
            flags | own | OFlags::CLOEXEC,
            Mode::empty(),
        )
    }

    /// The arguments of fchownat(2) and its like that reach it, never following a link of the user.
    pub fn at(&self) -> (BorrowedFd<'_>, CString, AtFlags) {
        match self {
            Self::Held(itself) => (CWD, link_to(itself), AtFlags::empty()),
            Self::Named(directory, name) => {
                (directory.as_fd(), name.clone(), AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }

    /// A path that reaches it, and whether its last part is to be followed.
    pub fn path(&self) -> (CString, bool) {
        match self {
            Self::Held(itself) => (link_to(itself), true),
            Self::Named(directory, name) => {
                let mut path = link_to(directory).into_bytes();
                path.push(b'/');
                path.extend_from_slice(name.as_bytes());
                (CString::new(path).expect("parts without NUL"), false)
            }
        }
    }

    /// The descriptor of a directory.
    pub fn directory(&self) -> Result<Arc<OwnedFd>> {
        match self {
            Self::Held(itself) => Ok(itself.clone()),
            Self::Named(..) => Err(Errno::NOTDIR),
        }
    }
}

fn link_to(descriptor: &OwnedFd) -> CString {
    let text = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    CString::new(text).expect("digits have no NUL")
}

impl Node {
    /// Where it lies now; stays so while [`Nodes::names`] is held.
    pub fn place(&self) -> Place {
        self.place.lock().expect(ALIVE).clone()
    }

    /// Its attributes are told to the kernel.
    pub fn tell(&self, found: &Stat) {
        *self.told.lock().expect(ALIVE) = Some(told(found));
    }

    /// Whether the kernel has heard of another size or time of change.
    pub fn was_told_other(&self, found: &Stat) -> bool {
        self.told
            .lock()
            .expect(ALIVE)
            .is_some_and(|old| old != told(found))
    }

    fn lies_at(&self, directory: &Arc<OwnedFd>, name: &OsStr) {
        if self.kind != FileType::Directory {
            *self.place.lock().expect(ALIVE) = Place::Named(directory.clone(), text(name));
        }
    }
}

fn told(found: &Stat) -> Told {
    (found.st_size, found.st_mtime, found.st_mtime_nsec)
}

fn text(name: &OsStr) -> CString {
    CString::new(name.as_bytes()).expect("names from the kernel have no NUL")
}

/// All nodes.
pub struct Nodes {
    /// Of the mount point, by name.
    pub exports: Vec<Export>,
    known: Mutex<Known>,
    renaming: RwLock<()>,
    unlinked_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Known {
    by_number: HashMap<u64, (Arc<Node>, u64)>, // and how many lookups the kernel remembers
    by_identity: HashMap<(usize, u64, u64), u64>,
    last: u64,
}

/// The mount point.
pub const TOP: u64 = 1;

impl Nodes {
    /// Of these directories: (name, directory, read-only).
    pub fn new(exports: &[(String, std::path::PathBuf, bool)]) -> Result<Self> {
        let mut known = Known {
            last: TOP,
            ..Known::default()
        };
        let shown = exports
            .iter()
            .enumerate()
            .map(|(number, (name, path, read_only))| {
                let top = known.hold(number, *read_only, path)?;
                Ok(Export {
                    name: text(OsStr::new(name)),
                    top,
                })
            });
        Ok(Self {
            exports: shown.collect::<Result<_>>()?,
            known: Mutex::new(known),
            renaming: RwLock::new(()),
            unlinked_at: Mutex::new(None),
        })
    }

    /// A node that the kernel knows; None: the mount point. ESTALE for one that it can't know.
    pub fn find(&self, number: u64) -> Result<Option<Arc<Node>>> {
        if number == TOP {
            return Ok(None);
        }
        let known = self.known.lock().expect(ALIVE);
        known
            .by_number
            .get(&number)
            .map(|(node, _)| Some(node.clone()))
            .ok_or(Errno::STALE)
    }

    /// Names stay as they are while this is held.
    pub fn names(&self) -> RwLockReadGuard<'_, ()> {
        self.renaming.read().expect(ALIVE)
    }

    /// Names may be changed while this is held, by its holder alone.
    pub fn renaming(&self) -> RwLockWriteGuard<'_, ()> {
        self.renaming.write().expect(ALIVE)
    }

    /// The node of what is at `name`: the kernel has looked it up once more.
    pub fn remember(&self, parent: &Node, name: &OsStr, found: &Stat) -> Result<Arc<Node>> {
        let directory = parent.place().directory()?;
        let mut known = self.known.lock().expect(ALIVE);
        known.remember(parent, &directory, name, found)
    }

    /// The kernel has forgotten so many lookups.
    pub fn forget(&self, number: u64, lookups: u64) {
        let mut known = self.known.lock().expect(ALIVE);
        let Some((node, left)) = known.by_number.get_mut(&number) else {
            return;
        };
        *left = left.saturating_sub(lookups);
        if *left == 0 {
            let identity = node.identity;
            let gone = known.by_number.remove(&number);
            if known.by_identity.get(&identity) == Some(&number) {
                known.by_identity.remove(&identity);
            }
            drop(known);
            drop(gone); // closes a descriptor, which may free a file
        }
    }

    /// Make what is at `name`, if the kernel knows it, reachable without that name.
    pub fn hold(&self, parent: &Node, name: &OsStr) -> Result<()> {
        let directory = parent.place().directory()?;
        let found = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let Some(node) = self.at(parent.export, &found) else {
            return Ok(());
        };
        if node.kind != FileType::Directory {
            let itself = openat(&directory, name, PATH_ONLY, Mode::empty())?;
            *node.place.lock().expect(ALIVE) = Place::Held(Arc::new(itself));
        }
        *self.unlinked_at.lock().expect(ALIVE) = Some(Instant::now());
        Ok(())
    }

    /// What the kernel knows of `found` has the name `name` now.
    pub fn moved(&self, parent: &Node, name: &OsStr) -> Result<()> {
        let directory = parent.place().directory()?;
        let found = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if let Some(node) = self.at(parent.export, &found) {
            node.lies_at(&directory, name);
        }
        Ok(())
    }

    /// Whether the kernel knew something that was unlinked so short a time ago.
    pub fn unlinked_within(&self, period: Duration) -> bool {
        let last = *self.unlinked_at.lock().expect(ALIVE);
        last.is_some_and(|at| at.elapsed() < period)
    }

    fn at(&self, export: usize, found: &Stat) -> Option<Arc<Node>> {
        let known = self.known.lock().expect(ALIVE);
        let number = known.by_identity.get(&identity(export, found))?;
        known.by_number.get(number).map(|(node, _)| node.clone())
    }
}

fn identity(export: usize, found: &Stat) -> (usize, u64, u64) {
    (export, found.st_dev, found.st_ino)
}

impl Known {
    fn remember(
        &mut self,
        parent: &Node,
        directory: &Arc<OwnedFd>,
        name: &OsStr,
        found: &Stat,
    ) -> Result<Arc<Node>> {
        let kind = FileType::from_raw_mode(found.st_mode);
        let identity = identity(parent.export, found);
        if let Some(number) = self.by_identity.get(&identity)
            && let Some((node, lookups)) = self.by_number.get_mut(number)
            && node.kind == kind
        {
            *lookups += 1;
            node.lies_at(directory, name);
            return Ok(node.clone());
        }
        let place = if kind == FileType::Directory {
            let itself = openat(
                directory,
                name,
                PATH_ONLY | OFlags::DIRECTORY,
                Mode::empty(),
            )?;
            Place::Held(Arc::new(itself))
        } else {
            Place::Named(directory.clone(), text(name))
        };
        Ok(self.add(identity, parent.read_only, kind, place))
    }

    /// The top of an export, which is never forgotten.
    fn hold(&mut self, export: usize, read_only: bool, path: &Path) -> Result<Arc<Node>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let itself = openat(CWD, path, flags, Mode::empty())?;
        let identity = identity(export, &fstat(&itself)?);
        let place = Place::Held(Arc::new(itself));
        Ok(self.add(identity, read_only, FileType::Directory, place))
    }

    fn add(
        &mut self,
        identity: (usize, u64, u64),
        read_only: bool,
        kind: FileType,
        place: Place,
    ) -> Arc<Node> {
        self.last += 1;
        let node = Arc::new(Node {
            number: self.last,
            export: identity.0,
            read_only,
            identity,
            kind,
            place: Mutex::new(place),
            sent: AtomicBool::new(false),
            told: Mutex::new(None),
        });
        self.by_number.insert(self.last, (node.clone(), 1));
        self.by_identity.insert(identity, self.last);
        node
    }
}

impl Node {
    /// Whether an earlier answer carried the attributes that are asked for now.
    pub fn attributes_came_along(&self) -> bool {
        self.sent.load(Relaxed) && self.sent.swap(false, Relaxed)
    }
}
