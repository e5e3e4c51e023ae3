//! What stands between two nodes and spoils what the owner says.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};

/// What the owner says before its first answer: magic, nonce and proof.
const GREETING: usize = 8 + 32 + 32;

/// What happens to an owner's answers, which come after its greeting.
#[derive(Clone, Copy)]
pub enum Spoil {
    /// Every hundredth byte is another.
    Change,
    /// They never come.
    Withhold,
}

/// Forwards connections to a node, spoilt; it ends with the node.
pub struct Wire {
    pub address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Wire {
    pub fn new(owner: SocketAddr, spoil: Spoil) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = spawn(move || {
            let mut all = Vec::new();
            for asker in listener.incoming() {
                let Ok(owner) = TcpStream::connect(owner) else {
                    break;
                };
                let asker = asker.unwrap();
                let (there, back) = (asker.try_clone().unwrap(), owner.try_clone().unwrap());
                all.push(spawn(move || forward(there, back, None)));
                all.push(spawn(move || forward(owner, asker, Some(spoil))));
            }
            all.into_iter().for_each(|it| it.join().unwrap());
        });
        Self { address, thread }
    }

    /// Once the node has ended.
    pub fn join(self) {
        drop(TcpStream::connect(self.address));
        self.thread.join().unwrap();
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, spoil: Option<Spoil>) {
    let (mut seen, mut bytes) = (0, [0; 4096]);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let answer = GREETING.saturating_sub(seen).min(count);
        let mut said = bytes[..count].to_vec();
        match spoil {
            Some(Spoil::Change) => said[answer..]
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| (seen + answer + at) % 100 == 99)
                .for_each(|(_, byte)| *byte ^= 1),
            Some(Spoil::Withhold) => said.truncate(answer),
            None => {}
        }
        seen += count;
        if to.write_all(&said).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
