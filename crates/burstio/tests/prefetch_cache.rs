//! The cache below an engine, in segments and in a file for each sample: what it serves, how much
//! it takes, and what it makes of what former runs left.

mod prefetch_set;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier};

use burstio::prefetch::cache::Cache;
use burstio::prefetch::order::Permutations;
use burstio::prefetch::segment::HEADER;
use burstio::prefetch::statistics::Statistics;
use burstio::prefetch::{CacheOptions, Engine, EngineOptions};
use prefetch_set::{Set, files_below, statistic, until};
use proptest::prelude::*;

const LAYOUTS: [bool; 2] = [true, false]; // whether in segments

const OFFERING: usize = 4; // threads

fn cached(cache: CacheOptions) -> EngineOptions {
    EngineOptions {
        cache: Some(cache),
        ..Default::default()
    }
}

/// Everything in the cache, but for its lock.
fn cache_files(set: &Set) -> Vec<PathBuf> {
    let mut found = files_below(&set.cache_directory());
    found.retain(|path| !path.ends_with("lock"));
    found
}

#[test]
fn epochs_come_in_order_and_the_second_from_the_cache() {
    for segments in LAYOUTS {
        let set = Set::new(200);
        let cache = CacheOptions {
            segments,
            ..set.cache(u64::MAX)
        };
        let engine = Engine::new(set.source(false), cached(cache)).unwrap();
        let mut permutations = Permutations::new(3);
        set.epoch(&engine, &permutations.next(200), 32);
        engine.drain();
        assert_eq!(statistic(&engine, "cache_samples"), 200);
        set.epoch(&engine, &permutations.next(200), 32);
        assert_eq!(statistic(&engine, "source_opens"), 200);
        assert_eq!(statistic(&engine, "from_cache"), 200);
        let named = if segments { 0 } else { 200 };
        assert_eq!(cache_files(&set).len(), named, "segments have no name");
        assert_eq!(engine.close(), 0);
        let left: Vec<_> = fs::read_dir(set.cache_directory()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the lock is left: {left:?}");
    }
}

#[test]
fn copying_first_gives_the_same_bytes() {
    for segments in LAYOUTS {
        let set = Set::new(100);
        let cache = CacheOptions {
            segments,
            ..set.cache(u64::MAX)
        };
        let options = EngineOptions {
            tee: false,
            ..cached(cache)
        };
        let engine = Engine::new(set.source(true), options).unwrap();
        set.epoch(&engine, &Permutations::new(1).next(100), 8);
        assert_eq!(statistic(&engine, "cache_samples"), 100);
        assert!(statistic(&engine, "cache_bytes_read") >= statistic(&engine, "source_bytes"));
    }
}

#[test]
fn a_budget_for_half_serves_half() {
    for segments in LAYOUTS {
        let set = Set::new(100);
        let half: u64 = (0..50).map(|i| set.content(i).len() as u64 + 64).sum();
        let cache = CacheOptions {
            segments,
            ..set.cache(half)
        };
        let engine = Engine::new(set.source(true), cached(cache)).unwrap();
        let order: Vec<u32> = (0..100).collect();
        for _ in 0..3 {
            set.epoch(&engine, &order, 10);
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
}

#[test]
fn a_full_disk_stops_the_cache_and_nothing_else() {
    for segments in LAYOUTS {
        let set = Set::new(100);
        let cache = CacheOptions {
            keep_free: 1.0,
            segments,
            ..set.cache(u64::MAX)
        };
        let engine = Engine::new(set.source(true), cached(cache)).unwrap();
        for seed in 0..2 {
            set.epoch(&engine, &Permutations::new(seed).next(100), 10);
            engine.drain(); // or what the writer still has is not read again
        }
        assert_eq!(statistic(&engine, "source_opens"), 200);
        assert_eq!(statistic(&engine, "cache_full"), 1);
    }
}

#[test]
fn look_ahead_goes_on_when_the_cache_is_full() {
    for segments in LAYOUTS {
        let set = Set::new(200);
        let some: u64 = (0..20).map(|i| set.content(i).len() as u64 + 64).sum();
        let cache = CacheOptions {
            segments,
            ..set.cache(some)
        };
        let options = EngineOptions {
            memory_bytes: 64 * 4096,
            ..cached(cache)
        };
        let engine = Engine::new(set.source(true), options).unwrap();
        let mut stream = engine.stream();
        stream.plan(&(0..200).collect::<Vec<_>>()).unwrap();
        for taken in (10..=150).step_by(10) {
            assert_eq!(stream.take(10, || true).unwrap().len(), 10);
            until(|| statistic(&engine, "source_opens") >= taken + 10);
        }
        assert_eq!(statistic(&engine, "cache_full"), 1);
    }
}

#[test]
fn a_record_that_is_spoiled_on_disk_is_read_from_the_source() {
    for segments in LAYOUTS {
        let set = Set::new(20);
        let cache = CacheOptions {
            segments,
            keep: true, // so that its files have names
            ..set.cache(u64::MAX)
        };
        let engine = Engine::new(set.source(true), cached(cache)).unwrap();
        let order: Vec<u32> = (0..20).collect();
        set.epoch(&engine, &order, 5);
        engine.drain();
        let mut options = fs::File::options();
        let file = options.read(true).write(true);
        let file = file.open(cache_files(&set).pop().unwrap()).unwrap();
        let (mut byte, last) = ([0], file.metadata().unwrap().len() - 1);
        file.read_exact_at(&mut byte, last).unwrap();
        file.write_all_at(&[!byte[0]], last).unwrap();
        set.epoch(&engine, &order, 5);
        assert_eq!(statistic(&engine, "checksum_failures"), 1);
        assert_eq!(statistic(&engine, "source_opens"), 21);
        assert_eq!(statistic(&engine, "from_cache"), 19);
    }
}

#[test]
fn two_engines_do_not_share_a_cache() {
    let set = Set::new(1);
    let options = cached(set.cache(1));
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

/// A cache that a run left with all of its data set.
fn kept(set: &Set, segments: bool) -> CacheOptions {
    let cache = CacheOptions {
        keep: true,
        segments,
        ..set.cache(u64::MAX)
    };
    let engine = Engine::new(set.source(true), cached(cache.clone())).unwrap();
    set.epoch(&engine, &(0..set.count()).collect::<Vec<_>>(), 10);
    cache
}

#[test]
fn a_later_run_adopts_all_that_its_budget_allows() {
    for segments in LAYOUTS {
        let set = Set::new(40);
        let cache = kept(&set, segments);
        for (budget_bytes, adopted) in [(u64::MAX, 40), (0, 0)] {
            let cache = CacheOptions {
                budget_bytes,
                ..cache.clone()
            };
            let engine = Engine::new(set.source(true), cached(cache)).unwrap();
            set.epoch(&engine, &Permutations::new(1).next(40), 8);
            assert_eq!(statistic(&engine, "cache_adopted"), adopted);
            assert_eq!(statistic(&engine, "from_cache"), adopted);
        }
        assert!(cache_files(&set).is_empty(), "what is of no use is removed");
    }
}

#[test]
fn another_data_set_adopts_nothing() {
    for segments in LAYOUTS {
        let set = Set::new(20);
        let engine = Engine::new(set.other_source(), cached(kept(&set, segments))).unwrap();
        assert_eq!(statistic(&engine, "cache_adopted"), 0);
        assert!(cache_files(&set).is_empty());
    }
}

#[test]
fn what_is_kept_in_one_way_is_removed_by_the_other() {
    for segments in LAYOUTS {
        let set = Set::new(20);
        let cache = CacheOptions {
            segments: !segments,
            ..kept(&set, segments)
        };
        let engine = Engine::new(set.source(true), cached(cache)).unwrap();
        assert_eq!(statistic(&engine, "cache_adopted"), 0);
        assert!(cache_files(&set).is_empty());
    }
}

/// Something that happens to a file of the cache of a run that was killed.
#[derive(Clone, Debug)]
enum Harm {
    Cut(prop::sample::Index),
    Overwrite(prop::sample::Index, u8, usize),
    Misplace(prop::sample::Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Harm::Cut),
        (any::<prop::sample::Index>(), any::<u8>(), 1usize..5000)
            .prop_map(|(at, byte, length)| Harm::Overwrite(at, byte, length)),
        any::<prop::sample::Index>().prop_map(Harm::Misplace),
    ]
}

impl Harm {
    fn befall(&self, files: &[PathBuf], victim: prop::sample::Index) {
        let path = victim.get(files);
        let mut bytes = fs::read(path).unwrap();
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Overwrite(at, byte, length) => {
                let begin = at.index(bytes.len());
                let end = (begin + length).min(bytes.len());
                bytes[begin..end].fill(*byte);
            }
            Self::Misplace(other) => bytes = fs::read(other.get(files)).unwrap(),
        }
        fs::write(path, bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn torn_files_never_give_wrong_bytes(
        segments in any::<bool>(),
        sizes in prop::collection::vec(0u32..8000, 1..60),
        harms in prop::collection::vec((harm(), any::<prop::sample::Index>()), 1..6),
    ) {
        let set = Set::of_sizes(sizes);
        let cache = kept(&set, segments);
        let files = cache_files(&set);
        for (harm, victim) in harms {
            harm.befall(&files, victim);
        }
        let engine = Engine::new(set.source(true), cached(cache)).unwrap();
        let adopted = statistic(&engine, "cache_adopted");
        set.epoch(&engine, &(0..set.count()).collect::<Vec<_>>(), 10);
        let (failed, opens) =
            (statistic(&engine, "checksum_failures"), statistic(&engine, "source_opens"));
        prop_assert_eq!(opens, u64::from(set.count()) - adopted + failed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    /// Samples are large, and several are offered at once: hashing takes its time, and meanwhile
    /// there is room for each of them alone.
    #[test]
    fn offers_at_the_same_time_stay_within_the_budget(
        segments in any::<bool>(),
        sizes in prop::collection::vec(0usize..400_000, 2..24),
        share in 0.0..1.0,
    ) {
        let total: usize = sizes.iter().map(|size| size + HEADER).sum();
        let budget_bytes = (share * total as f64) as u64;
        let directory = tempfile::tempdir().unwrap();
        let options = CacheOptions {
            directory: directory.path().into(),
            budget_bytes,
            keep_free: 0.0,
            segments,
            keep: true,
        };
        let statistics = Statistics::default();
        let cache = Cache::<Vec<u8>>::open(options, 1, sizes.len(), |_| true, &statistics).unwrap();
        let (next, offering) = (AtomicUsize::new(0), Barrier::new(OFFERING));
        let offer = || {
            offering.wait();
            loop {
                let number = next.fetch_add(1, Relaxed);
                let Some(size) = sizes.get(number) else {
                    break;
                };
                let bytes = Arc::new(vec![number as u8; *size]);
                cache.offer(number as u32, &bytes, usize::MAX, &statistics);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| cache.write(&statistics, || {}));
            let offers: Vec<_> = (0..OFFERING).map(|_| scope.spawn(offer)).collect();
            offers.into_iter().for_each(|thread| thread.join().unwrap());
            cache.finish();
        });
        let taken: u64 =
            files_below(directory.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        prop_assert!(taken <= budget_bytes, "{} of {} bytes", taken, budget_bytes);
        prop_assert!(taken > 0 || cache.is_full(), "it refuses only what does not fit");
    }
}
