//! A consumer of an engine.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;

use super::board::Unfulfilled;
use super::bytes::Bytes;
use super::reading::Shared;
use super::schedule::{From, Sample, StreamId};
use super::source::ReadError;

/// One consumer: what it will take, in order. It ends when dropped.
pub struct Stream {
    shared: Arc<Shared>,
    id: StreamId,
    returned: Option<(Instant, usize)>,
    counted: bool,
}

/// Why there is no minibatch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TakeError {
    /// A file can't be read, or does not come in time.
    #[error(transparent)]
    Read(ReadError),
    /// The consumer has been told to stop waiting.
    #[error("interrupted")]
    Interrupted,
    /// The engine is closed.
    #[error("the engine is closed")]
    Closed,
}

impl Stream {
    pub(super) fn new(shared: &Arc<Shared>, counted: bool) -> Self {
        let id = shared.pool.board.open();
        Self {
            id,
            shared: shared.clone(),
            returned: None,
            counted,
        }
    }

    /// Append to what will be taken; reading begins at once. Samples are positions in the list of
    /// files; returns the first that is not one.
    pub fn plan(&self, samples: &[Sample]) -> Result<(), Sample> {
        let count = self.shared.source.len();
        if let Some(wrong) = samples.iter().find(|sample| **sample as usize >= count) {
            return Err(*wrong);
        }
        if self.counted {
            self.shared.planned.get_or_init(Instant::now);
        }
        self.shared.pool.board.plan(self.id, samples);
        self.shared.grow();
        Ok(())
    }

    /// The next `count` samples, fewer at the end of the plan. `go_on` is asked every 100 ms.
    ///
    /// A sample that can't be read is an error once; the samples taken with it are gone, and the
    /// next call goes on behind them. After a time-out the same samples are waited for again.
    pub fn take(
        &mut self,
        count: usize,
        go_on: impl FnMut() -> bool,
    ) -> Result<Vec<(Sample, Arc<Bytes>)>, TakeError> {
        let board = &self.shared.pool.board;
        let limit = self.shared.options.time_limit;
        let begin = Instant::now();
        if let Some((returned, samples)) = self.returned.take() {
            board.with(|schedule| schedule.depth.consumed(samples, begin - returned));
        }
        let taken = board.take(self.id, count, limit, go_on);
        self.returned = self.counted.then(|| (Instant::now(), count));
        let taken = taken.map_err(|why| self.explain(why))?;
        if self.counted && !taken.is_empty() {
            let statistics = &self.shared.statistics;
            statistics.waited(begin.elapsed());
            self.shared.note_first(&statistics.first_minibatch_us);
        }
        let read = |(sample, result): (Sample, Result<_, Arc<ReadError>>)| {
            result
                .map(|bytes| (sample, bytes))
                .map_err(|error| TakeError::Read((*error).clone()))
        };
        taken.into_iter().map(read).collect()
    }

    fn explain(&self, why: Unfulfilled) -> TakeError {
        let (sample, from) = match why {
            Unfulfilled::Interrupted => return TakeError::Interrupted,
            Unfulfilled::Stopped => return TakeError::Closed,
            Unfulfilled::Stalled(sample, from) => (sample, from),
        };
        let limit_s = self.shared.options.time_limit.as_secs_f64();
        let message = match from {
            Some(From::Cache) => format!("the cache has not given it within {limit_s} s"),
            Some(From::Source) => format!("the source has not given it within {limit_s} s"),
            Some(From::Peer) => format!("its owner has not given it within {limit_s} s"),
            None => format!("not begun within {limit_s} s: other reads of the source hang"),
        };
        TakeError::Read(ReadError::new(
            &self.shared.source.path(sample),
            Errno::TIMEDOUT,
            message,
        ))
    }

    /// Samples that are planned and not taken.
    pub fn remaining(&self) -> usize {
        self.shared.pool.board.remaining(self.id)
    }

    /// Whether another stream has samples to be read.
    pub fn others_have_plans(&self) -> bool {
        self.shared
            .pool
            .board
            .with(|schedule| schedule.others_have_plans(self.id))
    }

    /// Forget what is planned and whose reading has not begun; it comes back.
    pub fn unplan(&self) -> VecDeque<Sample> {
        self.shared
            .pool
            .board
            .with(|schedule| schedule.unplan(self.id))
    }

    /// Forget what is planned and not taken.
    pub fn reset(&self) {
        self.shared.pool.board.reset(self.id);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.pool.board.close(self.id);
    }
}
