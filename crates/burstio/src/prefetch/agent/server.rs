//! The agent: an engine, a socket, and a thread for every connection.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::process::geteuid;

use super::super::accepting::{Acceptor, is_there};
use super::super::engine::{GRACE, join};
use super::super::schedule::Sample;
use super::super::{Bytes, Engine, Stream, TakeError};
use super::wire::{self, Kind};

/// In place of an offset: the sample lies in memory of its own, which comes with the frame.
pub const OWN: u64 = u64::MAX;

/// Serves an engine on a socket until it is closed or dropped.
pub struct Agent {
    engine: Arc<Engine>,
    socket: PathBuf,
    acceptor: Acceptor<UnixStream>,
    closing: AtomicBool,
}

impl Agent {
    /// Listen at `socket`, in a directory that nobody else may enter; it is made.
    ///
    /// Fails where another agent listens there, or the directory is open to others.
    pub fn new(engine: Arc<Engine>, socket: &Path) -> io::Result<Self> {
        let listener = listen(socket)?;
        let serving = engine.clone();
        let acceptor = Acceptor::new(listener.into(), "burstio-client", move |client| {
            let _ = serve(&serving, client); // a client that is gone needs no answer
        })?;
        Ok(Self {
            engine,
            socket: socket.to_owned(),
            acceptor,
            closing: AtomicBool::new(false),
        })
    }

    /// The engine that is served.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// End all connections, then the engine, which writes what is to be written. Returns what
    /// [`Engine::close`] does.
    pub fn close(&self) -> usize {
        if self.closing.swap(true, Relaxed) {
            return 0;
        }
        let _ = std::fs::remove_file(&self.socket);
        let clients = self.acceptor.stop();
        let stuck = self.engine.close(); // ends those who wait for a minibatch
        stuck + join(clients, GRACE) // one may wait for a disk that hangs
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.close();
    }
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
        let message = format!(
            "{}: others may enter it: wanted is mode 0700",
            directory.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if wire::connect(socket).is_ok() {
        let message = format!("{}: another agent listens here", socket.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {} // the name that a killed agent has left
    }
    let (_directory, address) = wire::address(socket)?;
    UnixListener::bind(address)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", socket.display())))
}

/// One connection, to its end.
fn serve(engine: &Engine, socket: &UnixStream) -> io::Result<()> {
    if rustix::net::sockopt::socket_peercred(socket)?.uid != geteuid() {
        return Ok(());
    }
    let memory = engine.region().read_only()?;
    let (source, limit) = (engine.source(), engine.options().time_limit);
    let about = [
        wire::VERSION,
        source.len() as u64,
        source.fingerprint(),
        limit.as_millis() as u64,
    ];
    wire::send(
        socket,
        Kind::Hello,
        &wire::encode_long(&about),
        &[memory.as_fd()],
    )?;
    drop(memory);
    let mut connection = Connection {
        engine,
        socket,
        stream: engine.stream(),
        held: HashMap::new(),
        tokens: 0,
    };
    while let Some(frame) = wire::receive(socket)? {
        connection.answer(frame)?;
    }
    Ok(())
}

struct Connection<'a> {
    engine: &'a Engine,
    socket: &'a UnixStream,
    stream: Stream,
    held: HashMap<u32, Arc<Bytes>>,
    tokens: u32,
}

impl Connection<'_> {
    fn answer(&mut self, frame: wire::Frame) -> io::Result<()> {
        match frame.kind {
            Kind::Plan => {
                let plan = wire::decode(&frame.body);
                self.stream
                    .plan(&plan)
                    .map_err(|_| wire::malformed("no such sample"))
            }
            Kind::Reset => {
                self.stream.reset();
                Ok(())
            }
            Kind::Take => {
                let numbers = wire::decode(&frame.body);
                let (count, released) = numbers
                    .split_first()
                    .ok_or_else(|| wire::malformed("no count"))?;
                for token in released {
                    self.held.remove(token);
                }
                self.take(*count as usize)
            }
            Kind::Statistics => {
                let all = self.engine.statistics();
                let lines: String = all
                    .iter()
                    .map(|(name, value)| format!("{name} {value}\n"))
                    .collect();
                wire::send(self.socket, Kind::Answer, lines.as_bytes(), &[])
            }
            Kind::Waits => {
                let waits = wire::encode_long(&self.engine.waits());
                wire::send(self.socket, Kind::Answer, &waits, &[])
            }
            Kind::Drain => {
                self.engine.drain();
                wire::send(self.socket, Kind::Answer, &[], &[])
            }
            _ => Err(wire::malformed("not for an agent")),
        }
    }

    fn take(&mut self, count: usize) -> io::Result<()> {
        let socket = self.socket;
        match self.stream.take(count, || is_there(socket)) {
            Ok(taken) => self.hand_over(taken),
            Err(TakeError::Read(error)) => {
                let mut body = error.errno.to_le_bytes().to_vec();
                let path = error.path.as_os_str().as_bytes();
                body.extend((path.len() as u32).to_le_bytes());
                body.extend(path);
                body.extend(error.message.as_bytes());
                wire::send(socket, Kind::Failed, &body, &[])
            }
            Err(TakeError::Interrupted) => Ok(()),
            Err(TakeError::Closed) => wire::send(socket, Kind::Closed, &[], &[]),
        }
    }

    fn hand_over(&mut self, taken: Vec<(Sample, Arc<Bytes>)>) -> io::Result<()> {
        let mut parts = taken.chunks(wire::MOST_DESCRIPTORS).peekable();
        if parts.peek().is_none() {
            return wire::send(self.socket, Kind::Taken, &[], &[]);
        }
        while let Some(part) = parts.next() {
            let mut body = Vec::with_capacity(part.len() * 24);
            let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
            for (sample, bytes) in part {
                let offset = match bytes.location() {
                    Ok(offset) => offset as u64,
                    Err(own) => {
                        descriptors.push(own.as_fd());
                        OWN
                    }
                };
                let length = (**bytes).as_ref().len() as u64;
                self.tokens = self.tokens.wrapping_add(1);
                body.extend(sample.to_le_bytes());
                body.extend(self.tokens.to_le_bytes());
                body.extend(offset.to_le_bytes());
                body.extend(length.to_le_bytes());
                self.held.insert(self.tokens, bytes.clone());
            }
            let kind = if parts.peek().is_some() {
                Kind::Part
            } else {
                Kind::Taken
            };
            wire::send(self.socket, kind, &body, &descriptors)?;
        }
        Ok(())
    }
}
