//! Every interleaving of the queueing logic's threads, by loom: nobody sleeps for ever, and every
//! consumer gets what it planned. Run with `RUSTFLAGS="--cfg loom" cargo test --test prefetch_model`.
#![cfg(loom)]

use std::sync::Arc;
use std::time::Duration;

use burstio::prefetch::board::Board;
use burstio::prefetch::depth::Depth;
use burstio::prefetch::memory::{Memory, PAGE};
use burstio::prefetch::schedule::{From, Place, Schedule, UNKNOWN};
use loom::thread;

type Shared = Arc<Board<Held, ()>>;

/// A sample that gives its memory back, as the engine's do.
struct Held {
    board: Shared,
    place: Place,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.board.give_back(self.place, 1);
    }
}

fn board(samples: usize, pages: usize, look_ahead: usize, sizes_known: bool) -> Shared {
    let sizes = vec![if sizes_known { 1 } else { UNKNOWN }; samples];
    let memory = Memory::new(pages * PAGE);
    Arc::new(Board::new(Schedule::new(
        sizes,
        memory,
        Depth::new(2, 2, 2),
        look_ahead,
    )))
}

fn worker(board: &Shared) {
    work(board, From::Source);
}

fn work(board: &Shared, from: From) {
    while let Some(task) = board.next_task(|_| from) {
        let place = task.place.map(|(_, place)| place);
        let Some(place) = place.or_else(|| board.place(task.sample, 1)) else {
            continue;
        };
        let held = Arc::new(Held {
            board: board.clone(),
            place,
        });
        if from != From::Source {
            board.fall_back(task.sample);
        }
        board.complete(task.sample, &Ok(held), Duration::ZERO, Duration::ZERO);
    }
}

fn take_all(board: &Shared, plan: &[u32], batch: usize) {
    let stream = board.open();
    board.plan(stream, plan);
    for expected in plan.chunks(batch) {
        let taken = board.take(stream, batch, Duration::from_secs(3600), || true);
        let found: Vec<u32> = taken
            .unwrap()
            .into_iter()
            .map(|(sample, _)| sample)
            .collect();
        assert_eq!(found, expected);
    }
    board.close(stream);
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

#[test]
fn a_worker_and_a_consumer() {
    model(|| {
        let board = board(3, 4, 4, true);
        let theirs = board.clone();
        let working = thread::spawn(move || worker(&theirs));
        take_all(&board, &[2, 0, 1], 2);
        board.stop();
        working.join().unwrap();
    });
}

#[test]
fn memory_for_one_sample_and_a_minibatch_of_two() {
    model(|| {
        let board = board(3, 1, 4, false);
        let theirs = board.clone();
        let working = thread::spawn(move || worker(&theirs));
        take_all(&board, &[0, 1, 2], 2);
        board.stop();
        working.join().unwrap();
    });
}

#[test]
fn two_consumers_of_the_same_samples() {
    model(|| {
        let board = board(2, 1, 1, true);
        let (theirs, others) = (board.clone(), board.clone());
        let working = thread::spawn(move || worker(&theirs));
        let taking = thread::spawn(move || take_all(&others, &[1, 0], 1));
        take_all(&board, &[0, 1], 1);
        taking.join().unwrap();
        board.stop();
        working.join().unwrap();
    });
}

#[test]
fn a_consumer_that_leaves_while_a_worker_reads() {
    model(|| {
        let board = board(3, 1, 4, false);
        let theirs = board.clone();
        let working = thread::spawn(move || worker(&theirs));
        let stream = board.open();
        board.plan(stream, &[0, 1, 2]);
        board.close(stream);
        take_all(&board, &[2], 1);
        board.stop();
        working.join().unwrap();
    });
}

#[test]
fn two_workers_that_get_no_answer_from_a_peer() {
    model(|| {
        let board = board(2, 4, 4, true);
        board.with(|schedule| schedule.most_from_peers = 1);
        let workers = [board.clone(), board.clone()]
            .map(|theirs| thread::spawn(move || work(&theirs, From::Peer)));
        take_all(&board, &[1, 0], 2);
        assert_eq!(board.with(|schedule| schedule.in_flight()), (0, 1));
        board.stop();
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    });
}
