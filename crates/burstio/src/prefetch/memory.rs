//! Where in the budget's memory each sample lies: an allocator of ranges, apart from the memory.

use std::collections::BTreeMap;

/// Ranges start and end on pages, so that two samples never share one.
pub const PAGE: usize = 4096;

/// Free ranges of a fixed number of bytes, lowest address first: used pages are used again.
#[derive(Debug)]
pub struct Memory {
    free: BTreeMap<usize, usize>, // offset to length
    free_bytes: usize,
    size: usize,
}

impl Memory {
    /// `size` is rounded up to whole pages.
    pub fn new(size: usize) -> Self {
        let size = pages(size);
        Self {
            free: BTreeMap::from([(0, size)]),
            free_bytes: size,
            size,
        }
    }

    /// All bytes, free or not.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes in free ranges, however scattered.
    pub fn free_bytes(&self) -> usize {
        self.free_bytes
    }

    /// The others.
    pub fn used_bytes(&self) -> usize {
        self.size - self.free_bytes
    }

    /// The offset of a range of at least `length` bytes, or None where there is none so long.
    pub fn take(&mut self, length: usize) -> Option<usize> {
        let length = pages(length.max(1));
        let (&offset, &found) = self.free.iter().find(|(_, free)| **free >= length)?;
        self.free.remove(&offset);
        if found > length {
            self.free.insert(offset + length, found - length);
        }
        self.free_bytes -= length;
        Some(offset)
    }

    /// Gives back what `take(length)` returned.
    pub fn give_back(&mut self, mut offset: usize, length: usize) {
        let mut length = pages(length.max(1));
        self.free_bytes += length;
        if let Some(after) = self.free.remove(&(offset + length)) {
            length += after;
        }
        if let Some((&before, &free)) = self.free.range(..offset).next_back()
            && before + free == offset
        {
            offset = before;
            length += free;
        }
        self.free.insert(offset, length);
    }
}

/// `length` rounded up to whole pages.
pub fn pages(length: usize) -> usize {
    length.next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_sample_has_a_place_too() {
        let mut memory = Memory::new(PAGE);
        assert_eq!(memory.take(0), Some(0));
        assert_eq!(memory.take(0), None);
    }

    proptest! {
        #[test]
        fn ranges_never_overlap_and_all_come_back(
            steps in prop::collection::vec((1usize..40_000, any::<prop::sample::Index>(), any::<bool>()), 1..200)
        ) {
            let mut memory = Memory::new(64 * PAGE);
            let mut held: Vec<(usize, usize)> = Vec::new();
            for (length, which, give) in steps {
                if give && !held.is_empty() {
                    let (offset, length) = held.swap_remove(which.index(held.len()));
                    memory.give_back(offset, length);
                } else if let Some(offset) = memory.take(length) {
                    prop_assert!(offset + length <= memory.size());
                    for &(other, size) in &held {
                        prop_assert!(offset + length <= other || other + size <= offset);
                    }
                    held.push((offset, length));
                }
            }
            for (offset, length) in held {
                memory.give_back(offset, length);
            }
            prop_assert_eq!(memory.free_bytes(), memory.size());
            prop_assert_eq!(memory.take(64 * PAGE), Some(0));
        }
    }
}
