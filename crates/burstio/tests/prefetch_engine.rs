//! The engine on real files: what its consumers get, from where, and in how much memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burstio::prefetch::order::Permutations;
use burstio::prefetch::{CacheOptions, Engine, EngineOptions, Source, TakeError};
use proptest::prelude::*;
use tempfile::TempDir;

/// What file `i` holds: no two have the same, nor the same length.
fn content(i: u32) -> Vec<u8> {
    (0..1000 + 37 * i)
        .map(|at| (at.wrapping_mul(i + 1) >> 3) as u8)
        .collect()
}

struct Set {
    directory: TempDir,
    count: u32,
}

impl Set {
    fn new(count: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("data")).unwrap();
        for i in 0..count {
            fs::write(directory.path().join(format!("data/{i}")), content(i)).unwrap();
        }
        Self { directory, count }
    }

    fn file(&self, i: u32) -> PathBuf {
        self.directory.path().join(format!("data/{i}"))
    }

    fn source(&self, with_sizes: bool) -> Source {
        let names: Vec<_> = (0..self.count).map(|i| format!("data/{i}")).collect();
        let sizes = (0..self.count).map(|i| with_sizes.then(|| content(i).len() as u64));
        let files = names.iter().map(|name| name.as_bytes()).zip(sizes);
        Source::new(self.directory.path().into(), files, "test")
    }

    fn cache(&self, budget_bytes: u64, keep: bool) -> CacheOptions {
        let directory = self.directory.path().join("cache");
        CacheOptions {
            directory,
            budget_bytes,
            keep_free: 0.0,
            keep,
        }
    }
}

fn statistic(engine: &Engine, name: &str) -> u64 {
    engine
        .statistics()
        .into_iter()
        .find(|(known, _)| *known == name)
        .unwrap()
        .1
}

/// Take all that is planned, in minibatches; every sample must be the right one.
fn epoch(engine: &Engine, order: &[u32], batch: usize) {
    let mut stream = engine.stream();
    stream.plan(order).unwrap();
    for expected in order.chunks(batch) {
        let taken = stream.take(batch, || true).unwrap();
        assert_eq!(taken.iter().map(|(i, _)| *i).collect::<Vec<_>>(), expected);
        for (i, bytes) in taken {
            assert!((*bytes).as_ref() == content(i), "sample {i}");
        }
    }
    assert!(stream.take(batch, || true).unwrap().is_empty());
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
fn epochs_come_in_order_and_the_second_from_the_cache() {
    let set = Set::new(200);
    let options = EngineOptions {
        cache: Some(set.cache(u64::MAX, false)),
        ..Default::default()
    };
    let engine = Engine::new(set.source(false), options).unwrap();
    let mut permutations = Permutations::new(3);
    epoch(&engine, &permutations.next(200), 32);
    engine.drain();
    assert_eq!(statistic(&engine, "cache_samples"), 200);
    epoch(&engine, &permutations.next(200), 32);
    assert_eq!(statistic(&engine, "source_opens"), 200);
    assert_eq!(statistic(&engine, "from_cache"), 200);
    assert_eq!(engine.close(), 0);
    let cache = set.directory.path().join("cache");
    assert_eq!(
        files_in(&cache),
        [cache.join("lock")],
        "segments have no name"
    );
}

#[test]
fn streams_share_what_they_read() {
    let set = Set::new(300);
    let options = EngineOptions {
        cache: Some(set.cache(u64::MAX, false)),
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let order = Permutations::new(seed).next(300);
            let engine = &engine;
            scope.spawn(move || epoch(engine, &order, 16));
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
    epoch(&engine, &Permutations::new(1).next(400), 4);
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
    epoch(&engine, &Permutations::new(1).next(64), 64);
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
fn copying_first_gives_the_same_bytes() {
    let set = Set::new(100);
    let cache = Some(set.cache(u64::MAX, false));
    let options = EngineOptions {
        cache,
        tee: false,
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    epoch(&engine, &Permutations::new(1).next(100), 8);
    assert_eq!(statistic(&engine, "cache_samples"), 100);
    assert!(statistic(&engine, "cache_bytes_read") >= statistic(&engine, "source_bytes"));
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
    fs::remove_file(set.file(2)).unwrap();
    let fifo = std::ffi::CString::new(set.file(2).to_str().unwrap()).unwrap();
    // open(2) of a FIFO that nobody writes does not return, like a file on a hanging mount.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
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
    drop(fs::File::options().write(true).open(set.file(2)).unwrap());
}

#[test]
fn a_budget_for_half_serves_half() {
    let set = Set::new(100);
    let half: u64 = (0..50).map(|i| content(i).len() as u64 + 64).sum();
    let options = EngineOptions {
        cache: Some(set.cache(half, false)),
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    let order: Vec<u32> = (0..100).collect();
    for _ in 0..3 {
        epoch(&engine, &order, 10);
        engine.drain();
    }
    let kept = statistic(&engine, "cache_samples");
    assert!(
        (40..60).contains(&kept),
        "{kept}: they are of different sizes"
    );
    assert_eq!(statistic(&engine, "source_opens"), 100 + 2 * (100 - kept));
    assert_eq!(statistic(&engine, "cache_full"), 1);
}

#[test]
fn a_full_disk_stops_the_cache_and_nothing_else() {
    let set = Set::new(100);
    let cache = CacheOptions {
        keep_free: 1.0,
        ..set.cache(u64::MAX, false)
    };
    let options = EngineOptions {
        cache: Some(cache),
        ..Default::default()
    };
    let engine = Engine::new(set.source(true), options).unwrap();
    for seed in 0..2 {
        epoch(&engine, &Permutations::new(seed).next(100), 10);
        engine.drain(); // or what the writer still has is not read again
    }
    assert_eq!(statistic(&engine, "source_opens"), 200);
    assert_eq!(statistic(&engine, "cache_full"), 1);
}

#[test]
fn two_engines_do_not_share_a_cache() {
    let set = Set::new(1);
    let options = EngineOptions {
        cache: Some(set.cache(1, true)),
        ..Default::default()
    };
    let first = Engine::new(set.source(true), options.clone()).unwrap();
    let second = Engine::new(set.source(true), options.clone())
        .err()
        .unwrap();
    assert!(
        second.to_string().contains("another process caches here"),
        "{second}"
    );
    first.close();
    Engine::new(set.source(true), options).unwrap();
}

#[test]
fn another_data_set_adopts_nothing() {
    let set = Set::new(20);
    let options = EngineOptions {
        cache: Some(set.cache(u64::MAX, true)),
        ..Default::default()
    };
    let first = Engine::new(set.source(true), options.clone()).unwrap();
    epoch(&first, &(0..20).collect::<Vec<_>>(), 10);
    drop(first);
    let names: Vec<_> = (0..20).map(|i| format!("data/{i}")).collect();
    let files = names.iter().map(|name| (name.as_bytes(), None));
    let other = Source::new(set.directory.path().into(), files, "a newer version");
    let second = Engine::new(other, options).unwrap();
    assert_eq!(statistic(&second, "cache_adopted"), 0);
}

/// Something that happens to a segment file of a run that was killed.
#[derive(Clone, Debug)]
enum Harm {
    Cut(prop::sample::Index),
    Overwrite(prop::sample::Index, u8, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Harm::Cut),
        (any::<prop::sample::Index>(), any::<u8>(), 1usize..5000)
            .prop_map(|(at, byte, length)| Harm::Overwrite(at, byte, length)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn torn_segments_never_give_wrong_bytes(harms in prop::collection::vec(harm(), 1..4)) {
        let set = Set::new(60);
        let options =
            EngineOptions { cache: Some(set.cache(u64::MAX, true)), ..Default::default() };
        let order: Vec<u32> = (0..60).collect();
        let first = Engine::new(set.source(true), options.clone()).unwrap();
        epoch(&first, &order, 10);
        drop(first);
        let segment = set.directory.path().join("cache/segment-000000");
        let mut bytes = fs::read(&segment).unwrap();
        for harm in harms {
            if bytes.is_empty() {
                break;
            }
            match harm {
                Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
                Harm::Overwrite(at, byte, length) => {
                    let begin = at.index(bytes.len());
                    let end = (begin + length).min(bytes.len());
                    bytes[begin..end].fill(byte);
                }
            }
        }
        fs::write(&segment, bytes).unwrap();
        let second = Engine::new(set.source(true), options).unwrap();
        let adopted = statistic(&second, "cache_adopted");
        epoch(&second, &order, 10);
        let (failed, opens) =
            (statistic(&second, "checksum_failures"), statistic(&second, "source_opens"));
        prop_assert_eq!(opens, 60 - adopted + failed);
    }
}
