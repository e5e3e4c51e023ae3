//! The staging engine on real directories: every file whole under its name, or an error that names
//! the first one that is not.

mod staging_data;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use burstio::copy::Fault;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use staging_data::{Data, LONG, files, partials, size};

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn files_of_any_size_arrive_whole(sizes in prop::collection::vec(size(), 0..30)) {
        let data = Data::sized(&sizes);
        prop_assert_eq!(data.stage().unwrap(), (sizes.len() as u64, 0));
        data.assert_staged();
        prop_assert_eq!(data.stage().unwrap(), (0, sizes.len() as u64), "nothing is copied twice");
    }

    #[test]
    fn what_was_spoilt_is_copied_again(
        sizes in prop::collection::vec(1..300_000usize, 1..30),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), 0..4), 1..10),
    ) {
        let data = Data::sized(&sizes);
        data.stage().unwrap();
        let paths: Vec<_> = data.contents.keys().cloned().collect();
        let mut touched = std::collections::BTreeSet::new();
        for (index, how) in spoilt {
            let path = index.get(&paths);
            if !touched.insert(path) {
                continue;
            }
            let (file, length) = (data.target.join(path), data.contents[path].len());
            let partial = file.with_file_name(format!(
                ".{}.burstlab-partial", file.file_name().unwrap().to_str().unwrap()
            ));
            match how {
                0 => fs::remove_file(&file).unwrap(),
                1 => fs::File::options().write(true).open(&file).unwrap()
                        .set_len(length as u64 / 2).unwrap(),
                2 => fs::write(&file, vec![0xee; length]).unwrap(),
                _ => fs::rename(&file, partial).unwrap(),
            }
        }
        let (copied, present) = data.stage().unwrap();
        prop_assert_eq!(copied, touched.len() as u64);
        prop_assert_eq!(copied + present, sizes.len() as u64);
        data.assert_staged();
    }
}

#[test]
fn staging_cut_short_anywhere_goes_on() {
    let cut = Cell::new(0);
    let config = ProptestConfig::with_cases(16);
    let cases = (prop::collection::vec(size(), 20..40), 1..10u64);
    let tested = TestRunner::new(config).run(&cases, |(sizes, after)| {
        let data = Data::sized(&sizes);
        let (copy, deadline) = (data.start(), Instant::now() + LONG);
        while copy.progress().files < after {
            prop_assert!(Instant::now() < deadline, "does not go on");
            std::thread::yield_now();
        }
        copy.cancel();
        let ended = copy.wait(LONG);
        prop_assert!(!matches!(ended, Ok(false)), "does not stop");
        drop(copy);
        prop_assert_eq!(partials(&data.target), 0);
        data.assert_nothing_torn();
        cut.set(cut.get() + usize::from(files(&data.target).len() < sizes.len()));
        data.stage().unwrap();
        data.assert_staged();
        Ok(())
    });
    tested.unwrap();
    assert!(cut.get() > 0, "each had ended before it was cut");
}

/// Past the page cache on ext4 and XFS, with a last block of any length.
#[test]
fn very_large_files_arrive_whole() {
    const DIRECT: usize = 32 << 20;
    let data = Data::sized(&[DIRECT, DIRECT + 1, DIRECT + (1 << 20) - 4096, DIRECT + 5000]);
    assert_eq!(data.stage().unwrap(), (4, 0));
    data.assert_staged();
    assert_eq!(data.stage().unwrap(), (0, 4));
}

#[test]
fn missing_file_is_named() {
    let data = Data::sized(&[10, 20, 30]);
    fs::remove_file(data.source.join("d1/f1")).unwrap();
    data.fails_with("d1/f1", Fault::Missing);
}

#[test]
fn directory_in_the_place_of_a_file_is_named() {
    let data = Data::sized(&[10, 20, 30]);
    fs::remove_file(data.source.join("d1/f1")).unwrap();
    fs::create_dir(data.source.join("d1/f1")).unwrap();
    data.fails_with("d1/f1", Fault::NotAFile);
}

#[test]
fn truncated_changed_and_longer_files_are_told_apart() {
    for size in [100_000, 3 << 20] {
        let data = Data::sized(&[10, size, 30]);
        let (file, expected) = (data.source.join("d1/f1"), size as u64);
        let good = fs::read(&file).unwrap();
        fs::write(&file, &good[..size - 1]).unwrap();
        data.fails_with(
            "d1/f1",
            Fault::Truncated {
                found: expected - 1,
                expected,
            },
        );
        let mut bad = good.clone();
        bad[size / 2] ^= 1;
        fs::write(&file, &bad).unwrap();
        data.fails_with("d1/f1", Fault::Changed);
        bad.push(0);
        fs::write(&file, &bad).unwrap();
        data.fails_with("d1/f1", Fault::Longer { expected });
    }
}

#[test]
fn path_that_leads_out_is_refused() {
    let data = Data::sized(&[1]);
    for path in ["../f", "/etc/passwd", "d/../../f", "d//f", "", "."] {
        assert_eq!(data.refuses(path, 1), Fault::BadPath, "{path}");
    }
}

#[test]
fn too_little_space_is_told_before_anything_is_copied() {
    let data = Data::sized(&[1]);
    let fault = data.refuses("d0/f0", u64::MAX / 4);
    assert!(matches!(fault, Fault::TooLittleSpace { wanted, .. } if wanted == u64::MAX / 4));
}

#[test]
fn two_at_once_do_not_write_to_one_target() {
    let data = Data::sized(&[100; 8]);
    fs::create_dir_all(&data.target).unwrap();
    let first = fs::File::open(&data.target).unwrap(); // as a staging has it, that takes its time
    rustix::fs::flock(&first, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(
        data.stage().err().map(|error| error.fault),
        Some(Fault::Busy)
    );
    drop(first);
    assert_eq!(data.stage().unwrap(), (8, 0));
    assert_eq!(data.stage().unwrap(), (0, 8));
}

#[test]
fn symbolic_link_in_the_target_is_not_written_through() {
    let data = Data::sized(&[100]);
    let elsewhere = data.source.join("d0/f0");
    fs::create_dir_all(data.target.join("d0")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, data.target.join("d0/f0")).unwrap();
    assert_eq!(data.stage().unwrap(), (1, 0));
    assert!(!data.target.join("d0/f0").is_symlink());
    data.assert_staged();
}

#[test]
fn no_thread_and_no_file_stays_open() {
    let data = Data::sized(&[1000; 50]);
    for _ in 0..50 {
        data.stage().unwrap();
        drop(data.start());
        fs::remove_dir_all(&data.target).unwrap();
    }
    let deadline = Instant::now() + LONG; // a thread may be about to end
    while open_below(data.directory.path()) > 0 {
        assert!(Instant::now() < deadline, "files stay open");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Descriptors of this process, which has other tests' too, of what is or was in a directory.
fn open_below(directory: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").unwrap();
    let paths = all.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    paths.filter(|path| path.starts_with(directory)).count()
}
