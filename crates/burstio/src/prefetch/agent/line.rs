//! A client's connection to an agent, which another thread may close while one waits at it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::super::source::ReadError;
use super::wire::{self, Frame, Kind};

/// What needs no reading is answered within so long, or the agent hangs.
pub const AT_ONCE: Duration = Duration::from_secs(30);

/// Why a client got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file can't be read, or does not come in time.
    #[error(transparent)]
    Read(ReadError),
    /// The consumer has been told to stop waiting; its connection has ended.
    #[error("interrupted")]
    Interrupted,
    /// The client has been closed here.
    #[error("the client is closed")]
    Closed,
    /// There is no agent, or no more.
    #[error("{}: {problem}", socket.display())]
    Connection {
        /// Where it was.
        socket: PathBuf,
        /// What happened.
        problem: String,
    },
}

/// One connection.
pub struct Line {
    connection: UnixStream,
    socket: PathBuf,
    closed: AtomicBool,
}

impl Line {
    /// Connect to the agent that listens at `socket`, which greets within `patience`; what it says
    /// of itself comes with it. `go_on` is asked every 100 ms.
    pub fn open(
        socket: &Path,
        patience: Duration,
        go_on: impl FnMut() -> bool,
    ) -> Result<(Self, Vec<u64>, OwnedFd), ClientError> {
        let connect = || {
            let connection = wire::connect(socket)?;
            connection.set_write_timeout(Some(AT_ONCE))?; // an agent that lives listens
            Ok(connection)
        };
        let connection = connect().map_err(|error| lost(socket, &error))?;
        let line = Self {
            connection,
            socket: socket.to_owned(),
            closed: AtomicBool::new(false),
        };
        line.wait(patience, go_on)?;
        let hello = line.answer()?;
        let about = wire::decode_long(&hello.body);
        let memory = hello.descriptors.into_iter().next();
        match (about.len(), about.first(), memory) {
            (4, Some(&wire::VERSION), Some(memory)) => Ok((line, about, memory)),
            _ => Err(line.lost(&wire::malformed("an agent of another version"))),
        }
    }

    /// Where the agent listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Send one frame.
    pub fn send(&self, kind: Kind, body: &[u8]) -> Result<(), ClientError> {
        wire::send(&self.connection, kind, body, &[]).map_err(|error| self.lost(&error))
    }

    /// Wait for an answer until it begins, at most so long; `go_on` is asked every 100 ms. The
    /// connection has ended where it does not come.
    pub fn wait(
        &self,
        patience: Duration,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<(), ClientError> {
        let begin = Instant::now();
        let mut wanted = true;
        let patient = || {
            wanted = go_on();
            wanted && begin.elapsed() < patience
        };
        if wire::wait(&self.connection, patient).map_err(|error| self.lost(&error))? {
            return Ok(());
        }
        self.hang_up();
        Err(if wanted {
            self.lost(&io::ErrorKind::TimedOut.into())
        } else {
            ClientError::Interrupted
        })
    }

    /// The next frame. What an agent says has failed is an error.
    pub fn answer(&self) -> Result<Frame, ClientError> {
        let ended = || io::Error::new(io::ErrorKind::ConnectionReset, "the agent has ended");
        let received = wire::receive(&self.connection).and_then(|it| it.ok_or_else(ended));
        let frame = received.map_err(|error| self.lost(&error))?;
        match frame.kind {
            Kind::Closed => Err(self.lost(&ended())),
            Kind::Failed => match failure(&frame.body) {
                Some(error) => Err(ClientError::Read(error)),
                None => Err(self.lost(&wire::malformed("a failure without reason"))),
            },
            _ => Ok(frame),
        }
    }

    /// What an error of this connection means.
    pub fn lost(&self, error: &io::Error) -> ClientError {
        if self.closed.load(SeqCst) {
            ClientError::Closed
        } else {
            lost(&self.socket, error)
        }
    }

    /// End it; who waits at it is woken, with `Closed`.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.hang_up();
    }

    /// End it, or an answer that nobody waited for would be taken for the next.
    pub fn hang_up(&self) {
        let _ = self.connection.shutdown(std::net::Shutdown::Both); // has ended: all the better
    }
}

fn failure(body: &[u8]) -> Option<ReadError> {
    let (errno, rest) = body.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (path, message) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(ReadError {
        path: PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        errno: i32::from_le_bytes(*errno),
        message: String::from_utf8_lossy(message).into_owned(),
    })
}

/// There is no agent at `socket`, or no more.
pub fn lost(socket: &Path, error: &io::Error) -> ClientError {
    let problem = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "the agent does not answer".into(),
        _ => error.to_string(),
    };
    ClientError::Connection {
        socket: socket.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_agent_that_does_not_greet_is_waited_for_no_longer_than_told() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _silent = UnixListener::bind(&socket).unwrap();
        let error = Line::open(&socket, Duration::from_millis(1), || true).err();
        let expected = format!("{}: the agent does not answer", socket.display());
        assert_eq!(error.unwrap().to_string(), expected);
        let error = Line::open(&socket, Duration::MAX, || false).err();
        assert!(matches!(error, Some(ClientError::Interrupted)));
    }
}
