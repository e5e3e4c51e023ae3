//! Which file is copied next: decisions only, no I/O.

use std::collections::VecDeque;

use super::Entry;

/// A file up to this size is read whole before anything is written.
pub const SMALL_BYTES: u64 = 1 << 20;

/// Directories whose files are copied by turns. A metadata server, and a kernel that looks up the
/// names of one directory one after the other, serve several directories at once; but what a
/// listing has told of a directory is forgotten after seconds, so it is not begun too early.
const DIRECTORIES_AT_ONCE: usize = 16;

/// Large files in flight while small ones wait: a few streams fill most networks.
const LARGE_AT_ONCE: usize = 4;

/// The files that are still to be copied. Large ones are begun first, the largest of all before the
/// others, lest one of them be copied alone at the end.
pub struct Order {
    small: VecDeque<VecDeque<usize>>, // each a directory's
    begun: VecDeque<VecDeque<usize>>,
    large: Vec<usize>, // the next one is last
    large_in_flight: usize,
}

/// A file to copy, and whether it counts as a large one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Index of the entry.
    pub file: usize,
    /// To be given back to [`Order::done`].
    pub large: bool,
}

impl Order {
    /// Of all entries, whose `directory` is below `directories`.
    pub fn new(entries: &[Entry], directories: usize) -> Self {
        let mut small = vec![VecDeque::new(); directories];
        let mut large = Vec::new();
        for (file, entry) in entries.iter().enumerate() {
            if entry.size > SMALL_BYTES {
                large.push(file);
            } else {
                small[entry.directory].push_back(file);
            }
        }
        large.sort_by_key(|&file| entries[file].size);
        let small = small
            .into_iter()
            .filter(|files| !files.is_empty())
            .collect();
        Order {
            small,
            begun: VecDeque::new(),
            large,
            large_in_flight: 0,
        }
    }

    /// The next file, with at most `limit` of them in flight; `None` when none is left to begin.
    pub fn next(&mut self, limit: usize) -> Option<Turn> {
        let only_large = self.small.is_empty() && self.begun.is_empty();
        let most = if only_large {
            limit
        } else {
            LARGE_AT_ONCE.max(limit / 4)
        };
        if (self.large_in_flight < most.max(1) || only_large)
            && let Some(file) = self.large.pop()
        {
            self.large_in_flight += 1;
            return Some(Turn { file, large: true });
        }
        while self.begun.len() < DIRECTORIES_AT_ONCE {
            let Some(directory) = self.small.pop_front() else {
                break;
            };
            self.begun.push_back(directory);
        }
        let mut directory = self.begun.pop_front()?;
        let file = directory.pop_front()?;
        if !directory.is_empty() {
            self.begun.push_back(directory);
        }
        Some(Turn { file, large: false })
    }

    /// Whether every file was begun.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty() && self.begun.is_empty() && self.large.is_empty()
    }

    /// A file that was begun is copied, or given up.
    pub fn done(&mut self, turn: Turn) {
        self.large_in_flight -= usize::from(turn.large);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(sizes: &[(u64, usize)]) -> Vec<Entry> {
        let entry = |&(size, directory)| Entry {
            directory,
            size,
            ..Entry::default()
        };
        sizes.iter().map(entry).collect()
    }

    #[test]
    fn directories_take_turns() {
        let mut order = Order::new(&entries(&[(1, 0), (1, 0), (1, 1), (1, 1)]), 2);
        let files: Vec<_> = std::iter::from_fn(|| order.next(8))
            .map(|turn| turn.file)
            .collect();
        assert_eq!(files, [0, 2, 1, 3]);
    }

    #[test]
    fn few_large_files_are_in_flight_while_small_ones_wait() {
        let mut sizes = vec![(SMALL_BYTES + 1, 0); 8];
        sizes.push((9 * SMALL_BYTES, 0));
        sizes.extend([(1, 0); 2]);
        let mut order = Order::new(&entries(&sizes), 1);
        let first: Vec<_> = (0..6).map(|_| order.next(16).unwrap()).collect();
        assert_eq!(first[0].file, 8, "the largest first");
        assert_eq!(
            first.iter().filter(|turn| turn.large).count(),
            LARGE_AT_ONCE
        );
        assert!(order.next(16).unwrap().large, "nothing else is left");
    }

    proptest! {
        #[test]
        fn every_file_has_one_turn(
            sizes in prop::collection::vec((0..3 * SMALL_BYTES, 0..40usize), 0..300),
            limit in 1..300usize,
            keep in 0..9usize,
        ) {
            let mut order = Order::new(&entries(&sizes), 40);
            let (mut seen, mut flying) = (vec![0; sizes.len()], VecDeque::new());
            while let Some(turn) = order.next(limit) {
                seen[turn.file] += 1;
                flying.push_back(turn);
                if flying.len() > keep {
                    order.done(flying.pop_front().unwrap());
                }
            }
            prop_assert!(seen.iter().all(|&count| count == 1));
        }
    }
}
