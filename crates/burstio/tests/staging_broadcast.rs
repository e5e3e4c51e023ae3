//! Staging from node to node: the first reads the source, and every file arrives everywhere, or every
//! node tells who was lost.

mod staging_data;

use std::fs;
use std::path::PathBuf;

use burstio::copy::{Children, Copy, Fault, Listening, MOST, Token};
use proptest::prelude::*;
use staging_data::{Data, LONG, files, partials, size};

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

    fn listen(&self, node: usize) -> Listening {
        Listening::start(&self.targets[node], self.data.entries(), self.token).unwrap()
    }

    fn start(&self) -> [Copy; 3] {
        let [second, third] = [self.listen(1), self.listen(2)];
        let at = |listening: &Listening| vec![format!("localhost:{}", listening.port())];
        let (to_second, to_third) = (at(&second), at(&third));
        let (third, second) = (third.begin(&[]).unwrap(), second.begin(&to_third).unwrap());
        let children = Children::connect(&to_second, &self.token).unwrap();
        let (source, entries) = (&self.data.source, self.data.entries());
        let first = Copy::start(source, &self.targets[0], entries, MOST, children).unwrap();
        [first, second, third]
    }

    /// Returns how many files each node had before.
    fn stage(&self) -> [u64; 3] {
        let bytes: usize = self.data.contents.values().map(Vec::len).sum();
        let present = self.start().map(|copy| {
            assert!(copy.wait(LONG).unwrap());
            let done = copy.progress();
            assert_eq!(done.files, self.data.contents.len() as u64);
            assert_eq!(done.bytes, bytes as u64);
            done.present
        });
        for target in &self.targets {
            for (path, content) in &self.data.contents {
                assert!(fs::read(target.join(path)).unwrap() == *content, "{path}");
            }
            assert_eq!(files(target).len(), self.data.contents.len());
        }
        present
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn broadcast_brings_every_file_to_every_node(sizes in prop::collection::vec(size(), 0..30)) {
        prop_assert_eq!(Chain::new(&sizes).stage(), [0; 3]);
    }
}

#[test]
fn broadcast_goes_on_where_a_node_has_some_files() {
    let chain = Chain::new(&[1000, 0, 3 << 20, 70_000]);
    chain.stage();
    fs::remove_file(chain.targets[2].join("d1/f1")).unwrap();
    fs::write(chain.targets[2].join("d2/f2"), vec![0xee; 3 << 20]).unwrap();
    fs::remove_file(chain.targets[0].join("d2/f2")).unwrap();
    assert_eq!(chain.stage(), [3, 4, 2]);
}

#[test]
fn node_that_is_lost_is_an_error_for_its_neighbours() {
    let chain = Chain::new(&[1 << 20; 40]);
    let [first, second, third] = chain.start();
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
    let listening = chain.listen(1);
    let address = [format!("localhost:{}", listening.port())];
    let second = listening.begin(&[]).unwrap();
    let stranger = Children::connect(&address, b"does not know it").unwrap();
    let _ = stranger.send(0, &[0; 1000]);
    let friend = Children::connect(&address, &chain.token).unwrap();
    friend.send(0, &chain.data.contents["d0/f0"]).unwrap();
    friend.end().unwrap();
    assert!(second.wait(LONG).unwrap());
}
