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
