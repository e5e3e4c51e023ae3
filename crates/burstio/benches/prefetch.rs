//! What a sample costs the engine itself, apart from any disk: the hot loops.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use burstio::prefetch::depth::Depth;
use burstio::prefetch::memory::Memory;
use burstio::prefetch::order::Permutations;
use burstio::prefetch::schedule::{From, Schedule};
use burstio::prefetch::{CacheOptions, Engine, EngineOptions, Source, segment};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const SAMPLES: u32 = 1024;
const BYTES: usize = 110_000; // of a typical JPEG of ImageNet

/// Queueing alone: from plan to give-back, no threads and no bytes.
fn schedule(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.throughput(Throughput::Elements(u64::from(SAMPLES)));
    for (idle, name) in [
        (0, "plan to give-back"),
        (256, "plan to give-back, beside 256 idle streams"),
    ] {
        group.bench_function(name, |bench| {
            let sizes = vec![BYTES as u64; SAMPLES as usize];
            let depth = Depth::new(32, 32, 32);
            let mut schedule: Schedule<(), ()> =
                Schedule::new(sizes, Memory::new(64 << 20), depth, 16_384);
            (0..idle).for_each(|_| _ = schedule.open());
            let stream = schedule.open();
            let order: Vec<u32> = (0..SAMPLES).collect();
            bench.iter(|| {
                schedule.plan(stream, &order);
                for _ in 0..SAMPLES {
                    let task = schedule
                        .next_task(|_| From::Source)
                        .expect("there is memory");
                    schedule.complete(
                        task.sample,
                        &Ok(Arc::new(())),
                        Duration::ZERO,
                        Duration::ZERO,
                    );
                    black_box(schedule.take(stream, 1));
                    if let Some((length, place)) = task.place {
                        schedule.give_back(place, length);
                    }
                }
            });
        });
    }
    group.finish();
}

/// A warm epoch: samples from the cache, through threads and memory, to the consumer.
fn warm_epoch(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("scratch");
    let names: Vec<_> = (0..SAMPLES).map(|i| format!("{i}")).collect();
    for name in &names {
        std::fs::write(directory.path().join(name), vec![7; BYTES]).expect("scratch");
    }
    let mut group = criterion.benchmark_group("engine");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(u64::from(SAMPLES) * BYTES as u64));
    for (segments, name) in [
        (true, "warm epoch"),
        (false, "warm epoch, a file for each sample"),
    ] {
        let files = names
            .iter()
            .map(|name| (name.as_bytes(), Some(BYTES as u64)));
        let source = Source::new(directory.path().into(), files, "");
        let cache = CacheOptions {
            directory: directory.path().join("cache"),
            budget_bytes: u64::MAX,
            keep_free: 0.0,
            segments,
            keep: false,
        };
        let options = EngineOptions {
            cache: Some(cache),
            memory_bytes: 32 << 20,
            ..Default::default()
        };
        let engine = Engine::new(source, options).expect("scratch");
        let mut stream = engine.stream();
        let mut permutations = Permutations::new(1);
        let mut epoch = || {
            stream
                .plan(&permutations.next(SAMPLES))
                .expect("they are samples");
            while stream.remaining() > 0 {
                black_box(stream.take(32, || true).expect("they can be read"));
            }
        };
        epoch();
        engine.drain();
        group.bench_function(name, |bench| bench.iter(&mut epoch));
    }
    group.finish();
}

fn checksum(criterion: &mut Criterion) {
    let bytes = vec![7; BYTES];
    let mut group = criterion.benchmark_group("segment");
    group.throughput(Throughput::Bytes(BYTES as u64));
    group.bench_function("checksum", |bench| {
        bench.iter(|| segment::checksum(1, 2, black_box(&bytes)))
    });
    group.finish();
}

fn permutation(criterion: &mut Criterion) {
    criterion.bench_function("permutation of a million", |bench| {
        let mut permutations = Permutations::new(1);
        bench.iter(|| permutations.next(1_000_000));
    });
}

criterion_group!(benches, schedule, warm_epoch, checksum, permutation);
criterion_main!(benches);
