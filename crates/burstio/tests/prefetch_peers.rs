//! Nodes that read for one another, on this machine's own address.

mod prefetch_set;
#[path = "prefetch_peers/wire.rs"]
mod wire;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burstio::prefetch::order::Permutations;
use burstio::prefetch::peers::{Key, PeerOptions};
use burstio::prefetch::{CacheOptions, Engine, EngineOptions, TakeError};
use prefetch_set::{Set, statistic};
use wire::{Spoil, Wire};

const COUNT: u32 = 200;

/// Where nodes `0..count` listen, and as whom.
fn listen(count: usize) -> Vec<PeerOptions> {
    let listeners = (0..count).map(|_| Arc::new(TcpListener::bind("127.0.0.1:0").unwrap()));
    let listeners: Vec<_> = listeners.collect();
    let address = |(i, it): (usize, &Arc<TcpListener>)| (name(i), it.local_addr().unwrap());
    let addresses: std::collections::BTreeMap<_, _> =
        listeners.iter().enumerate().map(address).collect();
    let node = |(i, listener)| PeerOptions {
        name: name(i),
        addresses: addresses.clone(),
        listener,
        key: Key([7; 32]),
    };
    listeners.into_iter().enumerate().map(node).collect()
}

fn name(node: usize) -> String {
    format!("n{node}")
}

fn engine(set: &Set, peers: PeerOptions, options: EngineOptions) -> Engine {
    let options = EngineOptions {
        peers: Some(peers),
        ..options
    };
    Engine::new(set.source(true), options).unwrap()
}

/// With a cache that has room for so many bytes on each node.
fn engines(set: &Set, count: usize, budget_bytes: u64, options: &EngineOptions) -> Vec<Engine> {
    let nodes = listen(count).into_iter().map(|peers| {
        let directory = set.cache_directory().join(&peers.name);
        let cache = CacheOptions {
            directory,
            ..set.cache(budget_bytes)
        };
        let cache = Some(cache);
        engine(
            set,
            peers,
            EngineOptions {
                cache,
                ..options.clone()
            },
        )
    });
    nodes.collect()
}

fn total(engines: &[Engine], name: &str) -> u64 {
    engines.iter().map(|it| statistic(it, name)).sum()
}

/// An epoch of all nodes at once, each in an order of its own.
fn epoch(set: &Set, engines: &[Engine], seed: u32) {
    std::thread::scope(|scope| {
        for (engine, seed) in engines.iter().zip(seed..) {
            let order = Permutations::new(seed).next(set.count());
            scope.spawn(move || set.epoch(engine, &order, 16));
        }
    });
    engines.iter().for_each(Engine::drain);
}

#[test]
fn all_nodes_together_read_each_file_once() {
    let set = Set::new(COUNT);
    let engines = engines(&set, 3, u64::MAX, &EngineOptions::default());
    for seed in [1, 11] {
        epoch(&set, &engines, seed);
        assert_eq!(total(&engines, "source_opens"), u64::from(COUNT));
    }
    assert_eq!(total(&engines, "cache_samples"), u64::from(COUNT));
    let given = total(&engines, "from_peers");
    assert!(given > 2 * u64::from(COUNT), "{given} of 2/3 of 6 epochs");
    assert_eq!(total(&engines, "served_to_peers"), given);
    assert_eq!(total(&engines, "peer_errors"), 0);
}

#[test]
fn caches_that_hold_a_part_each_hold_the_whole_together() {
    let set = Set::new(COUNT);
    let all: u64 = (0..COUNT).map(|i| set.content(i).len() as u64 + 64).sum();
    // Half of it each, and something because no hash makes halves.
    let engines = engines(&set, 2, all * 6 / 10, &EngineOptions::default());
    for seed in [1, 11, 21] {
        epoch(&set, &engines, seed);
    }
    assert_eq!(total(&engines, "source_opens"), u64::from(COUNT));
    assert_eq!(total(&engines, "cache_full"), 0);
}

#[test]
fn nodes_with_one_read_each_that_ask_each_other_go_on() {
    for look_ahead in [0, 100] {
        let set = Set::new(COUNT);
        let options = EngineOptions {
            in_flight: (1, 1),
            look_ahead,
            memory_bytes: 4096, // or less than one sample
            ..EngineOptions::default()
        };
        let engines = engines(&set, 2, u64::MAX, &options);
        epoch(&set, &engines, 1);
        assert_eq!(total(&engines, "peer_errors"), 0);
        assert!(total(&engines, "from_peers") > 0);
        assert!(
            engines
                .iter()
                .all(|it| statistic(it, "most_in_flight") == 1)
        );
    }
}

#[test]
fn the_source_stands_in_for_a_node_that_ends() {
    let set = Set::new(COUNT);
    let options = EngineOptions {
        in_flight: (4, 4),
        look_ahead: 8,
        ..EngineOptions::default()
    };
    let engines = engines(&set, 2, u64::MAX, &options);
    let order = Permutations::new(1).next(COUNT);
    let (before, after) = order.split_at(COUNT as usize / 2);
    set.epoch(&engines[0], before, 10);
    engines[1].close();
    set.epoch(&engines[0], after, 10);
    let errors = statistic(&engines[0], "peer_errors");
    assert!((1..20).contains(&errors), "{errors}: it is asked on and on");
    let of_owner = statistic(&engines[1], "first_sample_us");
    assert_eq!(of_owner, 0, "it was only asked");
    assert!(statistic(&engines[0], "from_peers") > 0);
}

#[test]
fn another_key_opens_nothing() {
    let set = Set::new(COUNT);
    let mut peers = listen(2);
    let address = peers[1].listener.local_addr().unwrap();
    peers[1].key = Key([8; 32]);
    let engines: Vec<_> = peers
        .into_iter()
        .map(|peers| engine(&set, peers, EngineOptions::default()))
        .collect();
    epoch(&set, &engines, 1);
    assert!(total(&engines, "peer_errors") > 0);
    assert_eq!(total(&engines, "from_peers"), 0);
    assert_eq!(total(&engines, "served_to_peers"), 0);

    let mut stranger = TcpStream::connect(address).unwrap();
    let _ = stranger.write_all(&[b"brstpr01", &[0; 64][..], &[0; 4]].concat());
    let mut said = Vec::new();
    let _ = stranger.read_to_end(&mut said);
    assert!(said.len() <= 40, "a greeting, and no answer");
}

#[test]
fn another_data_set_is_not_asked() {
    let set = Set::new(COUNT);
    let mut peers = listen(2).into_iter();
    let asking = engine(&set, peers.next().unwrap(), EngineOptions::default());
    let options = EngineOptions {
        peers: peers.next(),
        ..EngineOptions::default()
    };
    let other = Engine::new(set.other_source(), options).unwrap();
    set.epoch(&asking, &(0..COUNT).collect::<Vec<_>>(), 10);
    assert_eq!(statistic(&asking, "from_peers"), 0);
    assert_eq!(statistic(&other, "served_to_peers"), 0);
}

/// A node whose only peer answers through a wire that spoils all of it; that peer, and the wire.
fn behind(set: &Set, spoil: Spoil, options: EngineOptions) -> (Engine, Engine, Wire) {
    let mut peers = listen(2);
    let owner: SocketAddr = peers[1].addresses[&name(1)];
    let wire = Wire::new(owner, spoil);
    peers[0].addresses.insert(name(1), wire.address);
    let mut peers = peers.into_iter();
    let asking = engine(set, peers.next().unwrap(), options);
    let owner = engine(set, peers.next().unwrap(), EngineOptions::default());
    (asking, owner, wire)
}

fn stands_in(spoil: Spoil, options: EngineOptions, fault: &str) {
    let set = Set::new(COUNT);
    let (asking, owner, wire) = behind(&set, spoil, options);
    set.epoch(&asking, &(0..COUNT).collect::<Vec<_>>(), 10);
    assert!(statistic(&asking, "peer_errors") > 0);
    assert_eq!(statistic(&asking, "from_peers"), 0);
    assert_eq!(statistic(&asking, "source_opens"), u64::from(COUNT));
    assert!(statistic(&owner, "served_to_peers") > 0);
    let told = format!("n1 ({}): {fault}", wire.address);
    assert_eq!(asking.peer_faults(), [told]);
    asking.close();
    owner.close();
    drop(owner);
    wire.join();
}

#[test]
fn wrong_bytes_are_not_taken() {
    let fault = "its bytes have another checksum than it says";
    stands_in(Spoil::Change, EngineOptions::default(), fault);
}

#[test]
fn a_silent_peer_is_waited_for_no_longer_than_the_source_can_stand_in() {
    let time_limit = Duration::from_secs(4);
    let options = EngineOptions {
        time_limit,
        ..EngineOptions::default()
    };
    stands_in(Spoil::Withhold, options, "timed out");
}

#[test]
fn questions_on_their_way_at_closing_are_no_errors() {
    let set = Set::new(COUNT);
    let (asking, owner, wire) = behind(&set, Spoil::Withhold, EngineOptions::default());
    let stream = asking.stream();
    stream.plan(&(0..COUNT).collect::<Vec<_>>()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while statistic(&owner, "served_to_peers") == 0 {
        assert!(Instant::now() < deadline, "nobody asks");
        std::thread::sleep(Duration::from_millis(1));
    }
    asking.close();
    assert_eq!(statistic(&asking, "peer_errors"), 0);
    assert!(asking.peer_faults().is_empty());
    drop((stream, asking, owner));
    wire.join();
}

#[test]
fn what_others_own_is_not_adopted() {
    let set = Set::new(COUNT);
    for segments in [true, false] {
        let cache = CacheOptions {
            keep: true,
            segments,
            directory: set.cache_directory().join(segments.to_string()),
            ..set.cache(u64::MAX)
        };
        let options = EngineOptions {
            cache: Some(cache),
            ..EngineOptions::default()
        };
        let order: Vec<_> = (0..COUNT).collect();
        let alone = Engine::new(set.source(true), options.clone()).unwrap();
        set.epoch(&alone, &order, 16);
        drop(alone);
        let one_of_three = || engine(&set, listen(3).remove(0), options.clone());
        let one = one_of_three();
        let own: Vec<_> = order.into_iter().filter(|it| one.owns(*it)).collect();
        let found = if segments { 0 } else { own.len() as u64 };
        assert_eq!(statistic(&one, "cache_adopted"), found);
        set.epoch(&one, &own, 16);
        drop(one);
        let again = statistic(&one_of_three(), "cache_adopted");
        assert_eq!(again, own.len() as u64);
    }
}

#[test]
fn a_file_that_is_gone_is_named_to_who_wants_it() {
    let set = Set::new(8);
    let engines = engines(&set, 2, u64::MAX, &EngineOptions::default());
    let of_peer = (0..8).find(|i| !engines[0].owns(*i)).unwrap();
    fs::remove_file(set.file(of_peer)).unwrap();
    let mut stream = engines[0].stream();
    stream.plan(&[of_peer]).unwrap();
    let Err(TakeError::Read(error)) = stream.take(1, || true) else {
        panic!("file {of_peer} is gone")
    };
    assert_eq!(error.path, set.file(of_peer));
    assert_eq!(statistic(&engines[0], "peer_errors"), 1);
    let [fault] = &engines[0].peer_faults()[..] else {
        panic!("it refused once")
    };
    assert!(fault.ends_with("it could not read a file"), "{fault}");
    assert_eq!(statistic(&engines[1], "source_errors"), 1);
}

#[test]
fn a_node_that_is_not_among_its_peers_is_told() {
    let set = Set::new(1);
    let mut peers = listen(1).remove(0);
    peers.name = "stranger".into();
    let options = EngineOptions {
        peers: Some(peers),
        ..EngineOptions::default()
    };
    let error = Engine::new(set.source(true), options).err().unwrap();
    assert_eq!(error.to_string(), "stranger: not among the peers' names");
}
