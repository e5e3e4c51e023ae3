//! The directories that the list of files implies, so that nobody asks the source about them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::super::schedule::Sample;
use super::super::source::Source;

/// What lies in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// By number; the root is 0.
    Directory(u32),
    /// A file of the data set.
    File(Sample),
}

/// All directories.
pub struct Tree {
    directories: Vec<Directory>,
}

struct Directory {
    name: OsString,
    parent: u32,
    entries: Vec<Entry>, // by name
}

impl Tree {
    /// Fails where a path is not below the root, or names a file and a directory.
    pub fn new(source: &Source) -> io::Result<Self> {
        let root = Directory {
            name: OsString::new(),
            parent: 0,
            entries: Vec::new(),
        };
        let mut tree = Self {
            directories: vec![root],
        };
        let mut known: HashMap<Vec<u8>, u32> = HashMap::from([(Vec::new(), 0)]);
        for sample in 0..source.len() as Sample {
            let path = source.name(sample).as_bytes();
            let odd = |part: &[u8]| part.is_empty() || part == b"." || part == b"..";
            if path.split(|byte| *byte == b'/').any(odd) {
                return Err(wrong(path, "is not a path below a directory"));
            }
            let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            let directory = tree.make(&path[..end], &mut known);
            tree.directories[directory as usize]
                .entries
                .push(Entry::File(sample));
        }
        for number in 0..tree.directories.len() {
            let mut entries = std::mem::take(&mut tree.directories[number].entries);
            entries.sort_unstable_by(|a, b| tree.name(source, *a).cmp(tree.name(source, *b)));
            let same = |pair: &[Entry]| tree.name(source, pair[0]) == tree.name(source, pair[1]);
            if let Some(pair) = entries.windows(2).find(|pair| same(pair)) {
                return Err(wrong(
                    tree.name(source, pair[0]).as_bytes(),
                    "is there twice",
                ));
            }
            tree.directories[number].entries = entries;
        }
        Ok(tree)
    }

    fn make(&mut self, path: &[u8], known: &mut HashMap<Vec<u8>, u32>) -> u32 {
        if let Some(found) = known.get(path) {
            return *found;
        }
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let parent = self.make(&path[..cut.unwrap_or(0)], known);
        let name = OsStr::from_bytes(&path[cut.map_or(0, |at| at + 1)..]).to_owned();
        let number = self.directories.len() as u32;
        self.directories.push(Directory {
            name,
            parent,
            entries: Vec::new(),
        });
        self.directories[parent as usize]
            .entries
            .push(Entry::Directory(number));
        known.insert(path.to_owned(), number);
        number
    }

    /// An entry's name in its directory.
    pub fn name<'a>(&'a self, source: &'a Source, entry: Entry) -> &'a OsStr {
        match entry {
            Entry::Directory(number) => &self.directories[number as usize].name,
            Entry::File(sample) => {
                let path = source.name(sample).as_bytes();
                let begin = path
                    .iter()
                    .rposition(|byte| *byte == b'/')
                    .map_or(0, |at| at + 1);
                OsStr::from_bytes(&path[begin..])
            }
        }
    }

    /// What has this name in a directory.
    pub fn find(&self, source: &Source, directory: u32, name: &OsStr) -> Option<Entry> {
        let entries = self.entries(directory)?;
        let at = entries
            .binary_search_by(|entry| self.name(source, *entry).cmp(name))
            .ok()?;
        Some(entries[at])
    }

    /// What a directory has, by name.
    pub fn entries(&self, directory: u32) -> Option<&[Entry]> {
        self.directories
            .get(directory as usize)
            .map(|found| &found.entries[..])
    }

    /// The directory above.
    pub fn parent(&self, directory: u32) -> u32 {
        self.directories
            .get(directory as usize)
            .map_or(0, |found| found.parent)
    }
}

fn wrong(path: &[u8], problem: &str) -> io::Error {
    let message = format!("{}: {problem}", String::from_utf8_lossy(path));
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(names: &[&str]) -> Source {
        let files = names.iter().map(|name| (name.as_bytes(), None));
        Source::new("/".into(), files, "")
    }

    #[test]
    fn every_file_is_found_by_its_path() {
        let source = source(&["b/c/2", "a", "b/1", "b/c/1"]);
        let tree = Tree::new(&source).unwrap();
        let find = |directory, name: &str| tree.find(&source, directory, OsStr::new(name));
        assert_eq!(find(0, "a"), Some(Entry::File(1)));
        let Some(Entry::Directory(b)) = find(0, "b") else {
            panic!("b is a directory")
        };
        let Some(Entry::Directory(c)) = find(b, "c") else {
            panic!("c is a directory")
        };
        assert_eq!(find(c, "2"), Some(Entry::File(0)));
        assert_eq!(find(c, "3"), None);
        assert_eq!((tree.parent(c), tree.parent(b)), (b, 0));
        assert_eq!(tree.entries(b).map(<[_]>::len), Some(2));
    }

    #[test]
    fn odd_lists_are_refused() {
        for names in [
            &["../x"][..],
            &["a//b"],
            &["/a"],
            &["a", "a"],
            &["a", "a/b"],
        ] {
            assert!(Tree::new(&source(names)).is_err(), "{names:?}");
        }
    }
}
