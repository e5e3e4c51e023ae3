//! The staging engine on real directories: every file whole under its name, or an error that names
//! the first one that is not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burstio::checksum::Hasher;
use burstio::copy::{Children, Copy, CopyError, Entry, Fault, Listening, MOST, Token};
use proptest::prelude::*;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

struct Data {
    directory: TempDir,
    source: PathBuf,
    target: PathBuf,
    contents: BTreeMap<String, Vec<u8>>,
}

impl Data {
    fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (
            directory.path().join("source"),
            directory.path().join("target"),
        );
        let contents: BTreeMap<_, _> = files.into_iter().collect();
        for (path, content) in &contents {
            let path = source.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(&source).unwrap();
        Data {
            directory,
            source,
            target,
            contents,
        }
    }

    fn sized(sizes: &[usize]) -> Self {
        let file = |(number, &size): (usize, &usize)| {
            let content = (0..size)
                .map(|at| (at.wrapping_mul(31) + number) as u8)
                .collect();
            (format!("d{}/f{number}", number % 3), content)
        };
        Data::new(sizes.iter().enumerate().map(file))
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(path, content): (&String, &Vec<u8>)| {
            let mut hasher = Hasher::default();
            hasher.update(content);
            Entry::new(path, content.len() as u64, Some(hasher.finish()))
        };
        self.contents.iter().map(entry).collect()
    }

    fn begin(&self, entries: Vec<Entry>) -> Result<Copy, CopyError> {
        let (source, target) = (&self.source, &self.target);
        Copy::start(source, target, entries, MOST, Children::default())
    }

    fn start(&self) -> Copy {
        self.begin(self.entries()).unwrap()
    }

    fn refuses(&self, path: &str, size: u64) -> Fault {
        let entries = vec![Entry::new(path, size, None)];
        self.begin(entries).err().unwrap().fault
    }

    /// (copied, present)
    fn stage(&self) -> Result<(u64, u64), CopyError> {
        let copy = self.begin(self.entries())?;
        assert!(copy.wait(LONG)?, "still running");
        let done = copy.progress();
        assert_eq!(
            done.bytes,
            self.contents.values().map(|c| c.len() as u64).sum::<u64>()
        );
        Ok((done.files - done.present, done.present))
    }

    fn fails_with(&self, path: &str, fault: Fault) {
        let error = self.stage().unwrap_err();
        assert_eq!(
            (error.path.as_str(), &error.fault),
            (path, &fault),
            "{error}"
        );
        assert!(
            !self.target.join(path).exists(),
            "a file that is not whole has its name"
        );
        assert_eq!(partials(&self.target), 0);
    }

    fn assert_staged(&self) {
        for (path, content) in &self.contents {
            assert!(
                fs::read(self.target.join(path)).unwrap() == *content,
                "{path}"
            );
        }
        assert_eq!(files(&self.target).len(), self.contents.len());
    }

    /// Nothing that has its name may be wrong, however the staging ended.
    fn assert_nothing_torn(&self) {
        for path in files(&self.target) {
            let name = path.strip_prefix(&self.target).unwrap().to_str().unwrap();
            if let Some(content) = self.contents.get(name) {
                assert!(fs::read(&path).unwrap() == *content, "{name}");
            } else {
                assert!(name.ends_with(".burstlab-partial"), "{name}");
            }
        }
    }
}

fn files(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(below) else {
        return Vec::new();
    };
    let found = entries.map(|entry| entry.unwrap().path());
    found
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

fn partials(below: &Path) -> usize {
    let partial = |path: &&PathBuf| path.to_string_lossy().ends_with(".burstlab-partial");
    files(below).iter().filter(partial).count()
}

/// Around what is read whole, around a block, and beyond what is fetched ahead.
fn size() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(vec![0, 1, 4096, 1 << 20, (1 << 20) + 1, 2 << 20, 5 << 20]);
    prop_oneof![9 => 0..100_000usize, 2 => edge, 1 => (1usize << 20)..(3 << 20)]
}

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

    #[test]
    fn staging_cut_short_anywhere_goes_on(
        sizes in prop::collection::vec(size(), 10..40),
        after_us in 0..20_000u64,
    ) {
        let data = Data::sized(&sizes);
        let copy = data.start();
        std::thread::sleep(Duration::from_micros(after_us));
        copy.cancel();
        let ended = copy.wait(LONG);
        prop_assert!(!matches!(ended, Ok(false)), "does not stop");
        drop(copy);
        prop_assert_eq!(partials(&data.target), 0);
        data.assert_nothing_torn();
        data.stage().unwrap();
        data.assert_staged();
    }
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

/// The first node reads the source; it feeds the second, which feeds the third.
struct Chain {
    data: Data,
    targets: [PathBuf; 3],
    token: Token,
}

impl Chain {
    fn new(sizes: &[usize]) -> Self {
        let data = Data::sized(sizes);
        let targets = ["one", "two", "three"].map(|name| data.target.with_file_name(name));
        Chain {
            data,
            targets,
            token: *b"only for the few",
        }
    }

    fn listen(&self, node: usize, present: &[usize]) -> Listening {
        let present = present.iter().copied().collect();
        Listening::start(
            &self.targets[node],
            self.data.entries(),
            present,
            self.token,
        )
        .unwrap()
    }

    fn start(&self, present: &[usize]) -> [Copy; 3] {
        let [second, third] = [self.listen(1, present), self.listen(2, &[])];
        let at = |listening: &Listening| vec![format!("localhost:{}", listening.port())];
        let (to_second, to_third) = (at(&second), at(&third));
        let (third, second) = (third.begin(&[]).unwrap(), second.begin(&to_third).unwrap());
        let children = Children::connect(&to_second, &self.token).unwrap();
        let (source, entries) = (&self.data.source, self.data.entries());
        let first = Copy::start(source, &self.targets[0], entries, MOST, children).unwrap();
        [first, second, third]
    }

    fn stage(&self, present: &[usize]) {
        for copy in self.start(present) {
            assert!(copy.wait(LONG).unwrap());
            assert_eq!(copy.progress().files, self.data.contents.len() as u64);
        }
        for target in &self.targets {
            for (path, content) in &self.data.contents {
                assert!(fs::read(target.join(path)).unwrap() == *content, "{path}");
            }
            assert_eq!(files(target).len(), self.data.contents.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn broadcast_brings_every_file_to_every_node(sizes in prop::collection::vec(size(), 0..30)) {
        Chain::new(&sizes).stage(&[]);
    }
}

#[test]
fn broadcast_goes_on_where_a_node_has_some_files() {
    let chain = Chain::new(&[1000, 0, 3 << 20, 70_000]);
    chain.stage(&[]);
    fs::remove_file(chain.targets[2].join("d1/f1")).unwrap();
    fs::remove_file(chain.targets[0].join("d2/f2")).unwrap();
    chain.stage(&[0, 1, 2, 3]);
}

#[test]
fn node_that_is_lost_is_an_error_for_its_neighbours() {
    let chain = Chain::new(&[1 << 20; 40]);
    let [first, second, third] = chain.start(&[]);
    drop(second);
    for copy in [&first, &third] {
        let error = copy.wait(LONG).unwrap_err();
        assert!(matches!(error.fault, Fault::Peer(_)), "{error}");
    }
    for target in &chain.targets {
        assert_eq!(partials(target), 0);
    }
}

#[test]
fn stranger_is_not_listened_to() {
    let chain = Chain::new(&[1000]);
    let listening = chain.listen(1, &[]);
    let address = [format!("localhost:{}", listening.port())];
    let second = listening.begin(&[]).unwrap();
    let stranger = Children::connect(&address, b"does not know it").unwrap();
    let _ = stranger.send(0, &[0; 1000]);
    let friend = Children::connect(&address, &chain.token).unwrap();
    friend.send(0, &chain.data.contents["d0/f0"]).unwrap();
    friend.end().unwrap();
    assert!(second.wait(LONG).unwrap());
}
