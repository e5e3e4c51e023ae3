//! A process that uses an agent: the same streams, with the samples in the agent's memory.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use super::super::region::Region;
use super::super::schedule::Sample;
use super::super::segment::Fingerprint;
use super::line::{AT_ONCE, ClientError, Line, lost};
use super::server::OWN;
use super::wire::{self, Frame, Kind};

/// An agent tells of a stalled source itself; this much later it is the agent that has stalled.
const GRACE: Duration = Duration::from_secs(5);

/// A connection to an agent.
pub struct Client {
    line: Line,
    asking: Mutex<()>,
    streams: Mutex<Option<Vec<Weak<Line>>>>, // None: closed
    count: usize,
    fingerprint: Fingerprint,
    memory: Arc<Region>,
    patience: Duration,
}

impl Client {
    /// Connect to the agent that listens at `socket`. Here and below `go_on` is asked every 100 ms:
    /// false ends the waiting, and the connection that was waited at.
    pub fn connect(socket: &Path, go_on: impl FnMut() -> bool) -> Result<Self, ClientError> {
        let (line, about, memory) = Line::open(socket, AT_ONCE, go_on)?;
        let patience = Duration::from_millis(about[3]) + GRACE;
        let memory = Region::of_another(memory).map_err(|error| lost(socket, &error))?;
        Ok(Self {
            line,
            asking: Mutex::new(()),
            streams: Mutex::new(Some(Vec::new())),
            count: about[1] as usize,
            fingerprint: about[2],
            memory: Arc::new(memory),
            patience,
        })
    }

    /// End the connection and those of all its streams: who waits for anything from them is woken.
    /// Samples that were taken stay.
    pub fn close(&self) {
        self.line.close();
        for line in self.lock_streams().take().into_iter().flatten() {
            if let Some(line) = line.upgrade() {
                line.close();
            }
        }
    }

    fn lock_streams(&self) -> MutexGuard<'_, Option<Vec<Weak<Line>>>> {
        self.streams
            .lock()
            .expect("no thread panics under this lock")
    }

    /// Number of files of the data set.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Of the data set.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// A new consumer.
    pub fn stream(&self, mut go_on: impl FnMut() -> bool) -> Result<RemoteStream, ClientError> {
        let is_open = || self.lock_streams().is_some();
        let opened = Line::open(self.line.socket(), AT_ONCE, || is_open() && go_on());
        let (line, _, _) = opened.map_err(|error| match error {
            ClientError::Interrupted if !is_open() => ClientError::Closed,
            other => other,
        })?;
        let line = Arc::new(line);
        let mut streams = self.lock_streams();
        let open = streams.as_mut().ok_or(ClientError::Closed)?;
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&line));
        Ok(RemoteStream {
            line,
            memory: self.memory.clone(),
            released: Arc::new(Mutex::new(Vec::new())),
            count: self.count,
            remaining: 0,
            patience: self.patience,
        })
    }

    /// The agent's counters.
    pub fn statistics(
        &self,
        go_on: impl FnMut() -> bool,
    ) -> Result<Vec<(String, u64)>, ClientError> {
        let answer = self.ask(Kind::Statistics, AT_ONCE, go_on)?;
        let text = String::from_utf8_lossy(&answer);
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    /// The agent's histogram of waits.
    pub fn waits(&self, go_on: impl FnMut() -> bool) -> Result<Vec<u64>, ClientError> {
        let answer = self.ask(Kind::Waits, AT_ONCE, go_on)?;
        Ok(wire::decode_long(&answer))
    }

    /// Wait until the agent has written all that it has read, as long as its disk takes.
    pub fn drain(&self, go_on: impl FnMut() -> bool) -> Result<(), ClientError> {
        self.ask(Kind::Drain, Duration::MAX, go_on).map(drop)
    }

    fn ask(
        &self,
        question: Kind,
        patience: Duration,
        go_on: impl FnMut() -> bool,
    ) -> Result<Vec<u8>, ClientError> {
        let _alone = self
            .asking
            .lock()
            .expect("no thread panics under this lock");
        self.line.send(question, &[])?;
        self.line.wait(patience, go_on)?;
        Ok(self.line.answer()?.body)
    }
}

/// One consumer, whose connection it is.
pub struct RemoteStream {
    line: Arc<Line>,
    memory: Arc<Region>,
    released: Arc<Mutex<Vec<u32>>>,
    count: usize,
    remaining: usize,
    patience: Duration,
}

impl RemoteStream {
    /// As [`super::super::Stream::plan`].
    pub fn plan(&mut self, samples: &[Sample]) -> Result<Result<(), Sample>, ClientError> {
        if let Some(wrong) = samples
            .iter()
            .find(|sample| **sample as usize >= self.count)
        {
            return Ok(Err(*wrong));
        }
        for part in samples.chunks(1 << 20) {
            self.line.send(Kind::Plan, &wire::encode(part))?;
        }
        self.remaining += samples.len();
        Ok(Ok(()))
    }

    /// As [`super::super::Stream::take`]; who is interrupted has no stream any more.
    pub fn take(
        &mut self,
        count: usize,
        go_on: impl FnMut() -> bool,
    ) -> Result<Vec<(Sample, RemoteBytes)>, ClientError> {
        let mut numbers = vec![u32::try_from(count).unwrap_or(u32::MAX)];
        numbers.append(
            &mut self
                .released
                .lock()
                .expect("no thread panics under this lock"),
        );
        self.line.send(Kind::Take, &wire::encode(&numbers))?;
        let mut taken = Vec::new();
        self.line.wait(self.patience, go_on)?;
        loop {
            let frame = match self.line.answer() {
                Err(ClientError::Read(error)) => {
                    if error.errno != rustix::io::Errno::TIMEDOUT.raw_os_error() {
                        self.remaining -= count.min(self.remaining);
                    }
                    return Err(ClientError::Read(error));
                }
                other => other?,
            };
            let last = frame.kind == Kind::Taken;
            self.unpack(frame, &mut taken)
                .map_err(|error| self.line.lost(&error))?;
            if last {
                self.remaining -= taken.len().min(self.remaining);
                return Ok(taken);
            }
        }
    }

    fn unpack(&self, frame: Frame, taken: &mut Vec<(Sample, RemoteBytes)>) -> io::Result<()> {
        let mut own = frame.descriptors.into_iter();
        for entry in frame.body.chunks_exact(24) {
            let [sample, token] = wire::decode(&entry[..8])[..] else {
                unreachable!("8 bytes")
            };
            let [offset, length] = wire::decode_long(&entry[8..])[..] else {
                unreachable!("16 bytes")
            };
            let (memory, offset) = match offset {
                OWN => {
                    let given = own.next().ok_or_else(|| wire::malformed("no descriptor"))?;
                    (Arc::new(Region::of_another(given)?), 0)
                }
                offset => (self.memory.clone(), offset as usize),
            };
            memory.at(offset, length as usize); // or it panics here, not where it is used
            let (released, length) = (self.released.clone(), length as usize);
            taken.push((
                sample,
                RemoteBytes {
                    memory,
                    offset,
                    length,
                    token,
                    released,
                },
            ));
        }
        Ok(())
    }

    /// As [`super::super::Stream::remaining`].
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// As [`super::super::Stream::reset`].
    pub fn reset(&mut self) -> Result<(), ClientError> {
        self.remaining = 0;
        self.line.send(Kind::Reset, &[])
    }
}

/// A sample in the agent's memory; the agent is told with the next `take` that it was dropped.
pub struct RemoteBytes {
    memory: Arc<Region>,
    offset: usize,
    length: usize,
    token: u32,
    released: Arc<Mutex<Vec<u32>>>,
}

impl AsRef<[u8]> for RemoteBytes {
    fn as_ref(&self) -> &[u8] {
        let pointer = self.memory.at(self.offset, self.length).as_ptr();
        // SAFETY: the agent writes nothing here until it is told that this was dropped.
        unsafe { std::slice::from_raw_parts(pointer, self.length) }
    }
}

impl Drop for RemoteBytes {
    fn drop(&mut self) {
        self.released
            .lock()
            .expect("no thread panics under this lock")
            .push(self.token);
    }
}
