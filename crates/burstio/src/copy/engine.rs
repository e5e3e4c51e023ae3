//! The threads of a staging.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::concurrency::Controller;
use super::directories::Directories;
use super::file::{self, Outcome, Shared};
use super::order::{Order, Turn};
use super::peers::Children;
use super::{CopyError, Entry, Fault};

const SHORTEST_WINDOW: Duration = Duration::from_millis(60);
const WINDOW_FILES: u64 = 3; // for each in flight
const LONGEST_WINDOW: Duration = Duration::from_secs(2);
const STACK_BYTES: usize = 256 << 10;
/// A source that hangs may keep a thread for ever: after an error it is left behind.
const PATIENCE: Duration = Duration::from_secs(5);

/// A staging that runs in threads of its own; dropped, it is cancelled.
pub struct Copy {
    job: Arc<Job>,
    manager: Option<JoinHandle<()>>,
}

/// How far a staging has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files that are whole in the target.
    pub files: u64,
    /// Of these: those that were there already.
    pub present: u64,
    /// Bytes in the target, parts of files included.
    pub bytes: u64,
    /// Files that may be in flight now.
    pub in_flight: usize,
}

/// What the threads of a staging share.
pub struct Job {
    /// All files; the same list on every node of a broadcast.
    pub entries: Vec<Entry>,
    /// Where they lie.
    pub directories: Directories,
    /// With those who copy a file.
    pub shared: Shared,
    /// Files that this staging has written.
    pub copied: AtomicU64,
    /// Who gets what this node reads or receives.
    pub children: Children,
    /// Files that were there already.
    pub present: AtomicU64,
    limit: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
    root: OwnedFd, // of the target, locked
}

struct State {
    order: Order,
    busy: usize,    // workers that have a file
    workers: usize, // threads
    ended: bool,
    error: Option<CopyError>,
}

impl Copy {
    /// Begin to copy `entries` from one directory to another, which is made, and to the children.
    pub fn start(
        source: &Path,
        target: &Path,
        entries: Vec<Entry>,
        most_in_flight: usize,
        children: Children,
    ) -> Result<Self, CopyError> {
        let job = Job::prepare(Some(source), target, entries, children)?;
        let controller = Controller::new(most_in_flight);
        job.limit.store(controller.limit(), Relaxed);
        Ok(Copy::spawn(job, move |job| job.manage(controller)))
    }

    /// Have `work` done in a thread, and made durable.
    pub fn spawn(job: Job, work: impl FnOnce(&Arc<Job>) + Send + 'static) -> Self {
        let job = Arc::new(job);
        let managed = job.clone();
        let manager = std::thread::spawn(move || {
            work(&managed);
            managed.end();
        });
        Copy {
            job,
            manager: Some(manager),
        }
    }

    /// Wait for the end, no longer than this; returns whether it has come. The first file that
    /// could not be copied is the error, when no thread writes any more.
    pub fn wait(&self, longest: Duration) -> Result<bool, CopyError> {
        let state = self.job.lock();
        let running = |state: &mut State| !state.ended;
        let (state, _) = self
            .job
            .changed
            .wait_timeout_while(state, longest, running)
            .unwrap();
        match &state.error {
            Some(error) if state.ended => Err(error.clone()),
            _ => Ok(state.ended),
        }
    }

    /// Stop soon; files that are not whole go away.
    pub fn cancel(&self) {
        self.job.fail(Fault::Cancelled.of("staging"));
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let (copied, present) = (
            self.job.copied.load(Relaxed),
            self.job.present.load(Relaxed),
        );
        Progress {
            files: copied + present,
            present,
            bytes: self.job.shared.bytes.load(Relaxed),
            in_flight: self.job.limit.load(Relaxed),
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let ended = matches!(self.wait(Duration::ZERO), Ok(true) | Err(_));
        if !ended {
            self.cancel();
        }
        if ended || !matches!(self.wait(2 * PATIENCE), Ok(false)) {
            self.manager.take().map(JoinHandle::join);
        }
    }
}

impl Job {
    /// Make the directories and hold the target; without a source the files come from elsewhere.
    pub fn prepare(
        source: Option<&Path>,
        target: &Path,
        mut entries: Vec<Entry>,
        children: Children,
    ) -> Result<Self, CopyError> {
        let directories = Directories::make(source, target, &mut entries)?;
        let root = lock(target)?;
        if directories.all_fresh() {
            check_space(target, &root, &entries)?;
        }
        Ok(Job {
            state: Mutex::new(State {
                order: Order::new(&entries, directories.len()),
                busy: 0,
                workers: 0,
                ended: false,
                error: None,
            }),
            entries,
            directories,
            shared: Shared {
                on_disk: is_on_disk(&root),
                ..Shared::default()
            },
            copied: AtomicU64::new(0),
            children,
            present: AtomicU64::new(0),
            limit: AtomicUsize::new(0),
            changed: Condvar::new(),
            root,
        })
    }

    /// Whether nobody wants the rest any more.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Relaxed)
    }

    /// Whether every file has come. The first one that has not is the error.
    pub fn check_complete(&self) -> Result<(), CopyError> {
        let state = self.lock();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let done = (self.copied.load(Relaxed) + self.present.load(Relaxed)) as usize;
        match done == self.entries.len() {
            true => Ok(()),
            false => Err(Fault::NotSent.of(format!("{} files", self.entries.len() - done))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Stop for this reason, unless there is one already.
    pub fn fail(&self, error: CopyError) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        drop(state);
        self.shared.cancelled.store(true, Relaxed);
        self.changed.notify_all();
    }

    /// Adapt the number of files in flight until all are copied.
    fn manage(self: &Arc<Self>, mut controller: Controller) {
        let (mut began, mut files, mut bytes) = (Instant::now(), 0, 0);
        let mut cancelled = None;
        while self.have_workers(controller.limit()) {
            if self.shared.cancelled.load(Relaxed) {
                let since: &mut Instant = cancelled.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    break;
                }
            }
            let (now, copied) = (Instant::now(), self.copied.load(Relaxed));
            let elapsed = now - began;
            // Several times as many files as are in flight, lest chance decide.
            let enough = copied - files >= WINDOW_FILES * controller.limit() as u64;
            if (enough && elapsed >= SHORTEST_WINDOW) || elapsed >= LONGEST_WINDOW {
                let written = self.shared.bytes.load(Relaxed);
                controller.observe(elapsed.as_secs_f64(), copied - files, written - bytes);
                (began, files, bytes) = (now, copied, written);
                self.limit.store(controller.limit(), Relaxed);
                self.changed.notify_all();
            }
        }
        if !self.is_cancelled()
            && let Err(fault) = self.children.end()
        {
            self.fail(fault.of(self.children.names()));
        }
    }

    /// Make what was copied durable, and tell.
    fn end(&self) {
        if !self.is_cancelled()
            && let Err(errno) = rustix::fs::syncfs(&self.root)
        {
            self.fail(Fault::writing(errno).of("synchronising the target"));
        }
        let mut state = self.lock();
        state.ended = true;
        if state.workers == 0 {
            // The last thread may not have let go of the descriptor yet.
            let _ = rustix::fs::flock(&self.root, FlockOperation::Unlock);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Start the threads that are lacking, and wait a little; false when none is left.
    fn have_workers(self: &Arc<Self>, limit: usize) -> bool {
        let mut state = self.lock();
        let wanted = limit.min(self.entries.len());
        while state.workers < wanted
            && !self.shared.cancelled.load(Relaxed)
            && !state.order.is_empty()
        {
            let job = self.clone();
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            match thread.spawn(move || job.work()) {
                Ok(_) => state.workers += 1,
                Err(_) if state.workers > 0 => break, // fewer do as well
                Err(error) => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                    drop(state);
                    self.fail(Fault::Unreadable(errno).of("starting a thread"));
                    return false;
                }
            }
        }
        if state.workers == 0 {
            return false;
        }
        let (state, _) = self
            .changed
            .wait_timeout(state, SHORTEST_WINDOW / 4)
            .unwrap();
        state.workers > 0
    }

    fn work(&self) {
        let _leaving = Leaving(self);
        let mut buffer = Vec::new();
        let mut last = None;
        while let Some(turn) = self.next(last.take()) {
            let entry = &self.entries[turn.file];
            let opened = self.directories.open(entry.directory);
            let staged = opened.and_then(|pair| {
                let numbered = (turn.file, entry);
                file::stage(numbered, &pair, &self.shared, &self.children, &mut buffer)
            });
            match staged {
                Ok(Outcome::Copied) => self.copied.fetch_add(1, Relaxed),
                Ok(Outcome::Present) => self.present.fetch_add(1, Relaxed),
                Err(fault) => {
                    let lost = matches!(fault, Fault::Peer(_));
                    let of = if lost {
                        self.children.names()
                    } else {
                        entry.path.clone()
                    };
                    self.fail(fault.of(of));
                    0
                }
            };
            self.directories.done(entry.directory);
            last = Some(turn);
        }
    }

    /// The next file for a thread that has done its `last` one; waits while enough are in flight.
    fn next(&self, last: Option<Turn>) -> Option<Turn> {
        let mut state = self.lock();
        if let Some(turn) = last {
            state.order.done(turn);
            state.busy -= 1;
        }
        loop {
            let limit = self.limit.load(Relaxed);
            if self.shared.cancelled.load(Relaxed) || state.order.is_empty() {
                return None;
            }
            if state.busy < limit {
                let turn = state.order.next(limit);
                state.busy += usize::from(turn.is_some());
                return turn;
            }
            (state, _) = self.changed.wait_timeout(state, LONGEST_WINDOW).unwrap();
        }
    }
}

/// A thread that ends, and be it by a defect, is not waited for.
struct Leaving<'a>(&'a Job);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Fault::Defect.of("staging"));
        }
        self.0.lock().workers -= 1;
        self.0.changed.notify_all();
    }
}

/// Open the target's root and hold it for this staging, where the file system has locks.
fn lock(target: &Path) -> Result<OwnedFd, CopyError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let named = |fault: Fault| fault.of(target.to_string_lossy());
    let root = rustix::fs::open(target, flags, Mode::empty());
    let root = root.map_err(|errno| named(Fault::writing(errno)))?;
    match rustix::fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(named(Fault::Busy)),
        _ => Ok(root),
    }
}

/// Whether this is ext4 or XFS: others may take O_DIRECT and be slower for it (FUSE waits for each
/// write), or share memory with the cache anyway (tmpfs).
fn is_on_disk(root: &OwnedFd) -> bool {
    const EXT4: i128 = 0xef53;
    const XFS: i128 = 0x5846_5342;
    rustix::fs::fstatfs(root).is_ok_and(|found| [EXT4, XFS].contains(&i128::from(found.f_type)))
}

fn check_space(target: &Path, root: &OwnedFd, entries: &[Entry]) -> Result<(), CopyError> {
    let wanted = entries.iter().map(|entry| entry.size).sum();
    match rustix::fs::fstatvfs(root) {
        Ok(found) if found.f_blocks > 0 && found.f_bavail * found.f_frsize < wanted => {
            let free = found.f_bavail * found.f_frsize;
            Err(Fault::TooLittleSpace { wanted, free }.of(target.to_string_lossy()))
        }
        _ => Ok(()), // what can't be told beforehand is told by the write that fails
    }
}
