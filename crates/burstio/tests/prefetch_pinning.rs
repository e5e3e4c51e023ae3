//! Keeping the first samples that come is as good as Belady's optimum, when every sample is read
//! once per epoch: the claim that the cache's simplicity rests on.

use std::collections::{BTreeSet, HashMap};

use burstio::prefetch::order::Permutations;
use proptest::prelude::*;

/// Hits of a cache of `room` samples that keeps the first it sees.
fn pinning(reads: &[u32], room: usize) -> usize {
    let mut kept = BTreeSet::new();
    reads
        .iter()
        .filter(|sample| !(kept.len() < room && kept.insert(**sample)) && kept.contains(sample))
        .count()
}

/// Hits of Belady's MIN (1966) with bypass: what is needed last goes.
fn belady(reads: &[u32], room: usize) -> usize {
    let mut next = vec![usize::MAX; reads.len()];
    let mut seen = HashMap::new();
    for (at, sample) in reads.iter().enumerate().rev() {
        next[at] = seen.insert(*sample, at).unwrap_or(usize::MAX);
    }
    let mut kept: BTreeSet<(usize, u32)> = BTreeSet::new(); // by next use
    let mut hits = 0;
    for (at, sample) in reads.iter().enumerate() {
        hits += usize::from(kept.remove(&(at, *sample)));
        kept.insert((next[at], *sample));
        if kept.len() > room {
            kept.pop_last();
        }
    }
    hits
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn pinning_equals_belady(seed: u32, count in 50u32..400, share in 0.1f64..0.95) {
        let mut permutations = Permutations::new(seed);
        let epochs = 5;
        let reads: Vec<u32> = (0..epochs).flat_map(|_| permutations.next(count)).collect();
        let room = (f64::from(count) * share) as usize;
        let (pinned, best) = (pinning(&reads, room), belady(&reads, room));
        prop_assert_eq!(pinned, (epochs - 1) * room);
        // Belady may gain a little at the edges of epochs, of which it knows the orders.
        prop_assert!(best as f64 <= pinned as f64 * 1.02 + room as f64 * 0.02, "{best} {pinned}");
    }
}
