//! The engine on real files: what its consumers get, and in how much memory.

mod prefetch_set;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use burstio::prefetch::order::Permutations;
use burstio::prefetch::{Engine, EngineOptions, TakeError};
use prefetch_set::{Set, statistic};

#[test]
fn streams_share_what_they_read() {
    let set = Set::new(300);
    let options = EngineOptions {
        cache: Some(set.cache(u64::MAX)),
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let order = Permutations::new(seed).next(300);
            let (set, engine) = (&set, &engine);
            scope.spawn(move || set.epoch(engine, &order, 16));
        }
    });
    let read_again = statistic(&engine, "writes_skipped");
    assert_eq!(read_again, 0);
    assert_eq!(statistic(&engine, "source_opens"), 300);
}

#[test]
fn memory_stays_within_the_budget() {
    let set = Set::new(400);
    let budget = 64 * 4096;
    let options = EngineOptions {
        memory_bytes: budget,
        ..Default::default()
    };
    let engine = Engine::new(set.source(false), options).unwrap();
    set.epoch(&engine, &Permutations::new(1).next(400), 4);
    assert!(
        statistic(&engine, "memory_used") == 0,
        "all has been given back"
    );
    // 4 samples of at most 16 KB fit beside whatever was read ahead, but not always in one piece.
    assert!(statistic(&engine, "beyond_budget") < 40);
}

#[test]
fn a_minibatch_larger_than_the_budget_comes_all_the_same() {
    let set = Set::new(64);
    let options = EngineOptions {
        memory_bytes: 4096,
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    set.epoch(&engine, &Permutations::new(1).next(64), 64);
    assert!(statistic(&engine, "beyond_budget") > 0);
}

#[test]
fn without_look_ahead_only_what_is_waited_for_is_read() {
    let set = Set::new(64);
    let options = EngineOptions {
        look_ahead: 0,
        in_flight: (2, 2),
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    let mut stream = engine.stream();
    stream.plan(&(0..64).collect::<Vec<_>>()).unwrap();
    assert_eq!(stream.take(8, || true).unwrap().len(), 8);
    assert_eq!(statistic(&engine, "source_opens"), 8);
    assert!(statistic(&engine, "most_in_flight") <= 2);
}

#[test]
fn a_missing_file_is_named_and_the_next_batch_comes() {
    let set = Set::new(8);
    fs::remove_file(set.file(2)).unwrap();
    let engine = Engine::new(set.source(true), EngineOptions::default()).unwrap();
    let mut stream = engine.stream();
    stream.plan(&[0, 1, 2, 3, 4, 5]).unwrap();
    assert_eq!(stream.take(2, || true).unwrap().len(), 2);
    let Err(TakeError::Read(error)) = stream.take(2, || true) else {
        panic!("file 2 is gone")
    };
    assert_eq!(error.path, set.file(2));
    assert_eq!(error.errno, rustix::io::Errno::NOENT.raw_os_error());
    assert_eq!(stream.take(2, || true).unwrap().len(), 2);
}

#[test]
fn a_file_that_has_changed_is_an_error() {
    let set = Set::new(4);
    fs::write(set.file(1), b"shorter").unwrap();
    let engine = Engine::new(set.source(true), EngineOptions::default()).unwrap();
    let mut stream = engine.stream();
    stream.plan(&[1]).unwrap();
    let error = stream.take(1, || true).err().unwrap().to_string();
    assert!(
        error.ends_with("data/1: 7 bytes where 1037 are expected"),
        "{error}"
    );
}

#[test]
fn a_source_that_stalls_is_an_error_in_time() {
    let set = Set::new(4);
    set.stall(2);
    let limit = Duration::from_millis(300);
    let options = EngineOptions {
        time_limit: limit,
        ..Default::default()
    };
    let engine = Engine::new(set.source(false), options).unwrap();
    let mut stream = engine.stream();
    stream.plan(&[0, 1, 2, 3]).unwrap();
    assert_eq!(stream.take(2, || true).unwrap().len(), 2);
    let begin = Instant::now();
    let Err(TakeError::Read(error)) = stream.take(2, || true) else {
        panic!("file 2 stalls")
    };
    assert!(begin.elapsed() >= limit);
    assert_eq!(
        (error.path, error.errno),
        (set.file(2), rustix::io::Errno::TIMEDOUT.raw_os_error())
    );
    assert!(matches!(
        stream.take(2, || false),
        Err(TakeError::Interrupted)
    ));
    assert_eq!(
        engine.close(),
        1,
        "one thread hangs, and closing does not hang with it"
    );
    set.go_on(2);
}

#[test]
fn who_waits_is_asked_though_others_come_and_go_all_the_time() {
    let set = Set::new(4);
    set.stall(2);
    let options = EngineOptions {
        time_limit: Duration::from_secs(60),
        ..Default::default()
    };
    let engine = Engine::new(set.source(false), options).unwrap();
    let mut stream = engine.stream();
    stream.plan(&[2]).unwrap();
    let done = AtomicBool::new(false);
    let end = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                drop(engine.stream()); // each wakes who waits
            }
        });
        let end = stream.take(1, || false);
        done.store(true, Relaxed);
        end
    });
    assert!(matches!(end, Err(TakeError::Interrupted)));
    set.go_on(2);
}
