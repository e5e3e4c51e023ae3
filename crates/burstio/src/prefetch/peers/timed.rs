//! A peer's connection that is waited for so long and no longer, whatever comes in pieces.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two looks at whether to go on waiting.
const LOOK: Duration = Duration::from_millis(100);
/// A peer that takes nothing for so long is lost.
const SILENCE: Duration = Duration::from_secs(10);

/// One exchange on a connection that was set up by [`prepare`].
#[derive(Clone, Copy)]
pub struct Timed<'a> {
    /// The connection.
    pub socket: &'a TcpStream,
    /// When waiting ends.
    pub deadline: Instant,
    /// Set: it ends now.
    pub stop: &'a AtomicBool,
}

/// Small messages at once, and no call that hangs.
pub fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(LOOK))?;
    socket.set_write_timeout(Some(SILENCE))
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.load(Relaxed) || Instant::now() > self.deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            match self.socket.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
