//! Frames on the socket: length, kind, body; and descriptors that come with them.
//!
//! All numbers are little-endian: both ends are on one machine, but the format is fixed.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// What both ends must agree on.
pub const VERSION: u64 = 1;
/// Descriptors that come with one frame, at most (the kernel takes 253).
pub const MOST_DESCRIPTORS: usize = 128;
/// No frame is longer: a plan of 64 million samples.
const MOST_BYTES: usize = 256 << 20;
const HEADER: usize = 5;

/// What a frame is; first what clients send, then what the agent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Samples to be taken later.
    Plan = 1,
    /// A count, then the tokens of samples that are let go.
    Take,
    /// Forget what is planned.
    Reset,
    /// Ask for the counters.
    Statistics,
    /// Ask for the histogram of waits.
    Waits,
    /// Wait until all is written.
    Drain,
    /// Version, number of files, fingerprint, time limit [ms]; the engine's memory comes with it.
    Hello = 64,
    /// Samples, more follow.
    Part,
    /// Samples, the last.
    Taken,
    /// errno, path, message.
    Failed,
    /// Text: the engine is closed.
    Closed,
    /// What was asked for.
    Answer,
}

impl Kind {
    fn of(byte: u8) -> io::Result<Self> {
        use Kind::*;
        let all = [
            Plan, Take, Reset, Statistics, Waits, Drain, Hello, Part, Taken, Failed, Closed, Answer,
        ];
        all.into_iter()
            .find(|kind| *kind as u8 == byte)
            .ok_or_else(|| malformed("unknown kind"))
    }
}

/// One frame.
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// What it says.
    pub body: Vec<u8>,
    /// What comes with it.
    pub descriptors: Vec<OwnedFd>,
}

/// A name for `socket` that is short enough for an address (108 bytes), whatever its directory;
/// it holds as long as the descriptor does.
pub fn address(socket: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let odd = || io::Error::new(io::ErrorKind::InvalidInput, "is not a file's path");
    let (directory, name) = socket.parent().zip(socket.file_name()).ok_or_else(odd)?;
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(directory, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    Ok((descriptor, Path::new(&path).join(name)))
}

/// Connect to the agent that listens at `socket`.
pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (_directory, address) = address(socket)?;
    UnixStream::connect(address)
}

/// Send one frame.
pub fn send(
    socket: &UnixStream,
    kind: Kind,
    body: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
    header[4] = kind as u8;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(malformed("too many descriptors"));
    }
    let pieces = [IoSlice::new(&header), IoSlice::new(body)];
    let sent = loop {
        match sendmsg(socket, &pieces, &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            sent => break sent?,
        }
    };
    let mut writer = socket;
    if sent < HEADER {
        writer.write_all(&header[sent..])?;
    }
    writer.write_all(&body[sent.saturating_sub(HEADER)..])
}

/// Wait for the next frame until it begins; `go_on` is asked every 100 ms and at every signal.
/// False when it says no.
pub fn wait(socket: &UnixStream, mut go_on: impl FnMut() -> bool) -> io::Result<bool> {
    let look = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    loop {
        let mut watched = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut watched, Some(&look)) {
            Ok(0) | Err(rustix::io::Errno::INTR) if !go_on() => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Receive one frame; None at the end of the connection.
pub fn receive(socket: &UnixStream) -> io::Result<Option<Frame>> {
    let mut header = [0; HEADER];
    let mut descriptors = Vec::new();
    let mut have = 0;
    while have < HEADER {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut pieces = [IoSliceMut::new(&mut header[have..])];
        let got = match recvmsg(socket, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            got => got?.bytes,
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(given) = message {
                descriptors.extend(given);
            }
        }
        if got == 0 && have == 0 {
            return Ok(None);
        }
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        have += got;
    }
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if length > MOST_BYTES {
        return Err(malformed("too long"));
    }
    let kind = Kind::of(header[4])?;
    let mut body = vec![0; length];
    let mut reader = socket;
    reader.read_exact(&mut body)?;
    Ok(Some(Frame {
        kind,
        body,
        descriptors,
    }))
}

/// Many u32.
pub fn encode(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// What `encode` made.
pub fn decode(bytes: &[u8]) -> Vec<u32> {
    let four = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    bytes.chunks_exact(4).map(four).collect()
}

/// Many u64.
pub fn encode_long(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// What `encode_long` made.
pub fn decode_long(bytes: &[u8]) -> Vec<u64> {
    let eight = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    bytes.chunks_exact(8).map(eight).collect()
}

/// The other end says what it should not.
pub fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("malformed frame: {what}"),
    )
}
