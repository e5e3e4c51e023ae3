//! The end that asks: which node owns a sample, and what it answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use super::super::schedule::Sample;
use super::super::segment::{self, Fingerprint};
use super::avoidance::Avoidance;
use super::greeting::{Common, Key, read};
use super::ownership::Ownership;
use super::timed::{Timed, prepare};
use super::{Header, PEER_READS, PeerOptions, REFUSED};

/// The longest that a peer is waited for; less where the caller has less patience.
const PATIENCE: Duration = Duration::from_secs(10);
/// To a host that is down, which nobody answers for.
const CONNECT: Duration = Duration::from_secs(1);

/// All nodes, seen from one of them.
pub struct Peers {
    ownership: Ownership,
    own: usize,
    peers: Vec<Peer>, // this node among them
    key: Key,
    fingerprint: Fingerprint,
    patience: Duration,
    began: Instant,
    stop: AtomicBool,
}

struct Peer {
    name: String,
    address: SocketAddr,
    idle: Mutex<Vec<TcpStream>>,
    avoidance: Avoidance, // times are since the beginning
    first_fault: OnceLock<String>,
}

impl Peers {
    /// Who is asked is waited for a third of `time_limit`: then there is time for the source.
    ///
    /// Fails where this node's name is not among the addresses.
    pub fn new(
        options: &PeerOptions,
        fingerprint: Fingerprint,
        time_limit: Duration,
    ) -> io::Result<Self> {
        let mut names = options.addresses.keys();
        let own = names
            .position(|name| *name == options.name)
            .ok_or_else(|| {
                let message = format!("{}: not among the peers' names", options.name);
                io::Error::new(io::ErrorKind::InvalidInput, message)
            })?;
        let peers = options.addresses.iter().map(|(name, address)| Peer {
            name: name.clone(),
            address: *address,
            idle: Mutex::new(Vec::new()),
            avoidance: Avoidance::default(),
            first_fault: OnceLock::new(),
        });
        Ok(Self {
            ownership: Ownership::new(options.addresses.keys().map(String::as_str)),
            own,
            peers: peers.collect(),
            key: options.key.clone(),
            fingerprint,
            patience: PATIENCE.min(time_limit / 3),
            began: Instant::now(),
            stop: AtomicBool::new(false),
        })
    }

    /// Whether this node owns a sample.
    pub fn owns(&self, sample: Sample) -> bool {
        self.ownership.owner(sample) == self.own
    }

    /// Whether another node does, which has not failed lately.
    pub fn answers_for(&self, sample: Sample) -> bool {
        let owner = self.ownership.owner(sample);
        owner != self.own && self.peers[owner].avoidance.is_over(self.began.elapsed())
    }

    /// What the owner has to say; None where it can't be asked, or refuses.
    pub fn ask(&self, sample: Sample) -> Option<Answer<'_>> {
        let peer = &self.peers[self.ownership.owner(sample)];
        match self.exchange(peer, sample) {
            Ok(answer) => answer,
            Err(error) => {
                self.avoid(peer, &fault(&error));
                None
            }
        }
    }

    /// Of each peer that failed: its name, its address, and how it failed first.
    pub fn faults(&self) -> Vec<String> {
        let fault = |peer: &Peer| {
            let fault = peer.first_fault.get()?;
            Some(format!("{} ({}): {fault}", peer.name, peer.address))
        };
        self.peers.iter().filter_map(fault).collect()
    }

    /// What both ends must have in common when this node is asked.
    pub fn own_greeting(&self) -> Common<'_> {
        self.greeting(&self.peers[self.own])
    }

    /// Nobody is waited for any more.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
        self.peers.iter().for_each(|peer| peer.lock().clear());
    }

    fn exchange(&self, peer: &Peer, sample: Sample) -> io::Result<Option<Answer<'_>>> {
        let deadline = Instant::now() + self.patience;
        let idle = peer.lock().pop();
        let socket = idle.map_or_else(|| self.connect(peer, deadline), Ok)?;
        let mut timed = self.timed(&socket, deadline);
        timed.write_all(&sample.to_le_bytes())?;
        let header = Header::decode(read(&mut timed)?);
        if header.length == REFUSED {
            self.keep(peer, socket);
            peer.note("it could not read a file");
            return Ok(None);
        }
        Ok(Some(Answer {
            peers: self,
            owner: self.ownership.owner(sample),
            sample,
            socket,
            deadline,
            header,
        }))
    }

    fn connect(&self, peer: &Peer, deadline: Instant) -> io::Result<TcpStream> {
        let socket = TcpStream::connect_timeout(&peer.address, CONNECT.min(self.patience))?;
        prepare(&socket)?;
        self.greeting(peer)
            .approach(self.timed(&socket, deadline))?;
        Ok(socket)
    }

    fn greeting<'a>(&'a self, peer: &'a Peer) -> Common<'a> {
        Common {
            key: &self.key,
            fingerprint: self.fingerprint,
            owner: &peer.name,
        }
    }

    fn timed<'a>(&'a self, socket: &'a TcpStream, deadline: Instant) -> Timed<'a> {
        Timed {
            socket,
            deadline,
            stop: &self.stop,
        }
    }

    /// A connection can be used again; not more are kept than are used by turns.
    fn keep(&self, peer: &Peer, socket: TcpStream) {
        peer.avoidance.succeeded();
        let most = (PEER_READS / self.peers.len()).max(2);
        let mut idle = peer.lock();
        if idle.len() < most && !self.stop.load(Relaxed) {
            idle.push(socket);
        }
    }

    fn avoid(&self, peer: &Peer, fault: &str) {
        if !self.stop.load(Relaxed) {
            peer.note(fault);
            peer.avoidance.failed(self.began.elapsed());
            peer.lock().clear();
        }
    }
}

impl Peer {
    fn note(&self, fault: &str) {
        self.first_fault.get_or_init(|| fault.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.idle.lock().expect("no thread panics under this lock")
    }
}

fn fault(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ended the connection".into(),
        _ => error.to_string(),
    }
}

/// A sample on its way from its owner. Dropped before it is filled, it takes its connection along.
pub struct Answer<'a> {
    peers: &'a Peers,
    owner: usize,
    sample: Sample,
    socket: TcpStream,
    deadline: Instant,
    header: Header,
}

impl Answer<'_> {
    /// As the owner says [byte].
    pub fn size(&self) -> usize {
        self.header.length as usize
    }

    /// Fill `bytes`, as many as `size` says; false where they don't come, or are not the sample.
    pub fn fill(self, bytes: &mut [u8]) -> bool {
        let (peers, peer) = (self.peers, &self.peers.peers[self.owner]);
        let mut timed = peers.timed(&self.socket, self.deadline);
        if let Err(error) = timed.read_exact(bytes) {
            peers.avoid(peer, &fault(&error));
            return false;
        }
        let checksum = segment::checksum(peers.fingerprint, self.sample, bytes);
        let whole = checksum == self.header.checksum;
        if whole {
            peers.keep(peer, self.socket);
        } else {
            peers.avoid(peer, "its bytes have another checksum than it says");
        }
        whole
    }

    /// The owner has another file than the one that is wanted.
    pub fn reject(self) {
        let peer = &self.peers.peers[self.owner];
        self.peers.avoid(peer, "its file is of another size");
    }
}
