//! What a file costs the copy engine itself: between two directories in memory, many small files and
//! one large one, with and without checksums, and hashing alone.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use burstio::checksum::{Checksum, Hasher};
use burstio::copy::{Children, Copy, Entry, MOST};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const SMALL_BYTES: usize = 76_000; // of the files that benchmarks/staging.py makes, on average
const LARGE_BYTES: usize = 64 << 20;
const LONGEST: Duration = Duration::from_secs(60);

fn small_files(criterion: &mut Criterion) {
    copy(criterion, "1,000 files of 76 kB", 1000, SMALL_BYTES);
}

fn large_file(criterion: &mut Criterion) {
    copy(criterion, "a file of 64 MiB", 1, LARGE_BYTES);
}

/// Whole stagings, each to an empty target.
fn copy(criterion: &mut Criterion, what: &str, count: usize, bytes: usize) {
    let scratch = in_memory();
    let source = scratch.path().join("source");
    let content = vec![7; bytes];
    let paths: Vec<String> = (0..count).map(|i| format!("{:02}/{i}", i % 20)).collect();
    for path in &paths {
        let path = source.join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("scratch");
        std::fs::write(path, &content).expect("scratch");
    }
    let mut group = criterion.benchmark_group(what);
    group.sample_size(10);
    group.throughput(Throughput::Bytes((count * bytes) as u64));
    for (name, checksum) in [("sizes only", None), ("checksums", Some(hash(&content)))] {
        let entries: Vec<Entry> = paths
            .iter()
            .map(|path| Entry::new(path, bytes as u64, checksum))
            .collect();
        group.bench_function(name, |bench| {
            bench.iter_batched(
                || (empty(&scratch.path().join("target")), entries.clone()),
                |(target, entries)| {
                    let copy = Copy::start(&source, &target, entries, MOST, Children::default())
                        .expect("there is room");
                    assert!(copy.wait(LONGEST).expect("all files are right"));
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn hashing(criterion: &mut Criterion) {
    let content = vec![7; SMALL_BYTES];
    let mut group = criterion.benchmark_group("SHA-256");
    group.throughput(Throughput::Bytes(SMALL_BYTES as u64));
    group.bench_function("76 kB", |bench| bench.iter(|| hash(black_box(&content))));
    group.finish();
}

fn hash(content: &[u8]) -> Checksum {
    let mut hasher = Hasher::default();
    hasher.update(content);
    hasher.finish()
}

/// No disk is measured where there is a memory file system.
fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    }
    .expect("scratch")
}

fn empty(target: &Path) -> std::path::PathBuf {
    let _ = std::fs::remove_dir_all(target); // none yet
    target.to_owned()
}

criterion_group!(benches, small_files, large_file, hashing);
criterion_main!(benches);
