//! Who owns which sample: rendezvous hashing (Thaler and Ravishankar 1998).
//!
//! Each node has a weight for each sample, and the heaviest owns it. It depends on the nodes' names
//! only, so all nodes agree without a word; and when a node is taken out, its samples move to the
//! others evenly while all other samples stay where they are.

use xxhash_rust::xxh3::xxh3_64;

use super::super::schedule::Sample;

/// The owners of all samples among named nodes.
#[derive(Clone, Debug)]
pub struct Ownership(Vec<u64>);

impl Ownership {
    /// `names` are all different.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(
            names
                .into_iter()
                .map(|name| xxh3_64(name.as_bytes()))
                .collect(),
        )
    }

    /// The position of the owner's name. Panics where there is no node.
    pub fn owner(&self, sample: Sample) -> usize {
        let nodes = 0..self.0.len();
        nodes
            .max_by_key(|node| (weight(self.0[*node], sample), self.0[*node]))
            .expect("a node is its own peer")
    }
}

/// The finalizer of splitmix64 (Steele, Lea and Flood 2014): it is asked for under a lock.
fn weight(node: u64, sample: Sample) -> u64 {
    let mut mixed = node ^ (u64::from(sample) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u32 = 20_000;
    const NAMES: [&str; 5] = ["n1", "n2", "n3", "n4", "node.cluster.example"];

    #[test]
    fn samples_are_spread_evenly() {
        let ownership = Ownership::new(NAMES);
        let mut owned = [0; 5];
        (0..SAMPLES).for_each(|sample| owned[ownership.owner(sample)] += 1);
        for count in owned {
            assert!((3_700..4_300).contains(&count), "{owned:?}"); // 4,000 and 5 deviations
        }
    }

    #[test]
    fn who_goes_leaves_the_others_what_they_have_and_its_own_evenly() {
        let before = Ownership::new(NAMES);
        let after = Ownership::new(NAMES[..4].iter().copied());
        let mut inherited = [0; 4];
        for sample in 0..SAMPLES {
            match before.owner(sample) {
                4 => inherited[after.owner(sample)] += 1,
                stays => assert_eq!(after.owner(sample), stays),
            }
        }
        for count in inherited {
            assert!((830..1_170).contains(&count), "{inherited:?}");
        }
    }

    #[test]
    fn names_count_and_not_their_order() {
        let (forth, back) = (
            Ownership::new(NAMES),
            Ownership::new(NAMES.into_iter().rev()),
        );
        (0..SAMPLES).for_each(|sample| assert_eq!(forth.owner(sample), 4 - back.owner(sample)));
        // Nodes of different versions must agree as well.
        let known: Vec<_> = (0..12).map(|sample| forth.owner(sample)).collect();
        assert_eq!(known, [1, 1, 0, 3, 1, 4, 4, 0, 0, 0, 1, 0]);
    }
}
