//! A node of a broadcast that does not read the source: it gets the blocks from its parent, writes
//! them, and sends them on to its children.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::engine::{Copy, Job};
use super::file::{Arriving, errno};
use super::peers::{self, Children, END, Token};
use super::{CopyError, Entry, Fault};

/// Threads that write; the blocks of a file all go to one of them.
const WRITERS: usize = 8;
/// Blocks that wait for each of them, before the parent has to wait.
const WAITING: usize = 8;
/// Between two looks at whether the staging was cancelled.
const LOOK: Duration = Duration::from_millis(200);

/// Listens for its parent, and begins when it is told its children.
pub struct Listening {
    listener: TcpListener,
    job: Job,
    token: Token,
}

type Block = (usize, Vec<u8>);

impl Listening {
    /// Make the directories for `entries` and listen.
    pub fn start(target: &Path, entries: Vec<Entry>, token: Token) -> Result<Self, CopyError> {
        let job = Job::prepare(None, target, entries, Children::default())?;
        let failed = |error: std::io::Error| Fault::Peer(errno(&error)).of("listening");
        let listener = TcpListener::bind(("::", 0)).or_else(|_| TcpListener::bind(("0.0.0.0", 0)));
        let listener = listener.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Listening {
            listener,
            job,
            token,
        })
    }

    /// The port that the parent is to connect to.
    pub fn port(&self) -> u16 {
        self.listener
            .local_addr()
            .map_or(0, |address| address.port())
    }

    /// Receive, and send on to each `host:port` of `children`.
    pub fn begin(mut self, children: &[String]) -> Result<Copy, CopyError> {
        self.job.children = Children::connect(children, &self.token)?;
        let Listening {
            listener,
            job,
            token,
        } = self;
        Ok(Copy::spawn(job, move |job| {
            let parent = accept(job, &listener, &token);
            if let Err(error) = parent.and_then(|stream| receive_all(job, Patient { job, stream }))
            {
                job.fail(error);
            }
        }))
    }
}

fn accept(job: &Job, listener: &TcpListener, token: &Token) -> Result<TcpStream, CopyError> {
    loop {
        if job.is_cancelled() {
            return Err(Fault::Cancelled.of("staging"));
        }
        match listener.accept() {
            Ok((mut stream, _)) => {
                let mut told = Token::default();
                let known = stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.set_read_timeout(Some(LOOK * 10)))
                    .and_then(|()| stream.read_exact(&mut told))
                    .and_then(|()| stream.set_read_timeout(Some(LOOK)));
                if known.is_ok() && told == *token {
                    return Ok(stream);
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn receive_all(job: &Job, mut parent: Patient<'_>) -> Result<(), CopyError> {
    std::thread::scope(|scope| {
        let writers: Vec<SyncSender<Block>> = (0..WRITERS)
            .map(|_| {
                let (sender, blocks) = sync_channel(WAITING);
                scope.spawn(move || write_all(job, blocks));
                sender
            })
            .collect();
        loop {
            let (file, block) =
                peers::receive(&mut parent).map_err(|_| match job.is_cancelled() {
                    true => Fault::Cancelled.of("staging"),
                    false => peers::cut().of("the parent in the tree"),
                })?;
            if file == END {
                return Ok(());
            }
            let file = file as usize;
            if file >= job.entries.len() {
                return Err(peers::cut().of("the parent in the tree"));
            }
            let sent = job.children.send(file, &block);
            sent.map_err(|fault| fault.of(job.children.names()))?;
            if writers[file % WRITERS].send((file, block)).is_err() {
                return Err(Fault::Cancelled.of("staging")); // the writer's error comes first
            }
        }
    })?;
    job.check_complete()?;
    job.children
        .end()
        .map_err(|fault| fault.of(job.children.names()))
}

/// One writer, until there are no more blocks or one can't be written.
fn write_all(job: &Job, blocks: Receiver<Block>) {
    let mut open: HashMap<usize, Arriving<'_>> = HashMap::new();
    let (mut present, mut buffer) = (HashSet::new(), Vec::new());
    for (file, block) in blocks {
        if present.contains(&file) {
            continue;
        }
        let entry = &job.entries[file];
        let begun = match open.remove(&file) {
            Some(arriving) => Ok(Some(arriving)),
            None => job
                .directories
                .open(entry.directory)
                .and_then(|pair| Arriving::begin(entry, &pair, &job.shared, &mut buffer)),
        };
        let written = match begun {
            Ok(Some(arriving)) => arriving.write(&block, &job.shared),
            Ok(None) => {
                present.insert(file);
                job.present.fetch_add(1, Relaxed);
                job.directories.done(entry.directory);
                continue;
            }
            Err(fault) => Err(fault),
        };
        match written {
            Ok(Some(arriving)) => {
                open.insert(file, arriving);
            }
            Ok(None) => {
                job.copied.fetch_add(1, Relaxed);
                job.directories.done(entry.directory);
            }
            Err(fault) => {
                job.fail(fault.of(&*entry.path));
                return;
            }
        }
    }
}

/// Reads from the parent for as long as the staging is wanted.
struct Patient<'a> {
    job: &'a Job,
    stream: TcpStream,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if is_silence(&error) && !self.job.is_cancelled() => {}
                other => return other,
            }
        }
    }
}

fn is_silence(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
