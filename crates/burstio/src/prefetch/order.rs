//! The order is data: every future read is a function of seed and epoch.

use rand_mt::Mt;

/// The permutations that `numpy.random.RandomState(seed).permutation(n)` gives, call after call.
///
/// Chainer's `ShuffleOrderSampler` draws one for every epoch, the first included, so the order of
/// epoch `e` is the `e`-th of these. Bit-equal to numpy: Fisher-Yates from the end, each index
/// drawn by masking and rejection (numpy/random/mtrand.pyx, `shuffle`; distributions.c,
/// `random_interval`).
///
/// ```
/// use burstio::prefetch::order::Permutations;
/// assert_eq!(Permutations::new(7).next(6), [3, 5, 0, 2, 1, 4]);
/// ```
#[derive(Clone)]
pub struct Permutations {
    generator: Mt,
}

impl Permutations {
    /// As `numpy.random.RandomState(seed)`.
    pub fn new(seed: u32) -> Self {
        Self {
            generator: Mt::new(seed),
        }
    }

    /// The next permutation of `0..count`.
    pub fn next(&mut self, count: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count).collect();
        for last in (1..count).rev() {
            let other = self.up_to(last);
            order.swap(last as usize, other as usize);
        }
        order
    }

    /// A number of `0..=largest`, all equally likely.
    fn up_to(&mut self, largest: u32) -> u32 {
        let mask = u32::MAX >> largest.leading_zeros();
        loop {
            let drawn = self.generator.next_u32() & mask;
            if drawn <= largest {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn is_what_numpy_gives() {
        // numpy.random.RandomState(42): permutation(10), twice.
        let mut permutations = Permutations::new(42);
        assert_eq!(permutations.next(10), [8, 1, 5, 0, 7, 2, 9, 4, 3, 6]);
        assert_eq!(permutations.next(10), [0, 1, 8, 5, 3, 4, 7, 9, 6, 2]);
    }

    proptest! {
        #[test]
        fn is_a_permutation(seed: u32, count in 0u32..2000) {
            let mut order = Permutations::new(seed).next(count);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..count));
        }
    }
}
