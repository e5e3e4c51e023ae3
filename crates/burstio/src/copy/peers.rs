//! What goes from node to node in a broadcast: blocks of files, over one connection for each edge
//! of the tree.
//!
//! A connection begins with the staging's token, so that nobody else is listened to. Each block
//! has a header of two little-endian u32, the file's index and the block's length; the blocks of a
//! file come in order, those of several files in turns. The index [`END`] says that all was sent:
//! a connection that ends without it was cut.

use std::io::{BufWriter, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use rustix::io::Errno;

use super::file::errno;
use super::{CopyError, Fault};

/// A secret of one staging, known to its nodes.
pub type Token = [u8; 16];

/// In the place of a file's index.
pub const END: u32 = u32::MAX;

/// A node that takes nothing for so long is lost. It may be hashing a file that it has already: 100
/// GB at 200 MB/s.
const SILENCE: Duration = Duration::from_secs(500);

/// The nodes that this one sends everything to.
#[derive(Default)]
pub struct Children(Vec<Child>);

struct Child {
    address: String,
    stream: Mutex<BufWriter<TcpStream>>,
}

impl Children {
    /// Connect to each `host:port`.
    pub fn connect(addresses: &[String], token: &Token) -> Result<Self, CopyError> {
        let connect = |address: &String| {
            let connected = TcpStream::connect(address).and_then(|mut stream| {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(SILENCE))?;
                stream.write_all(token)?;
                Ok(stream)
            });
            let stream = connected.map_err(|error| Fault::Peer(errno(&error)).of(address))?;
            let stream = Mutex::new(BufWriter::with_capacity(64 << 10, stream));
            Ok(Child {
                address: address.clone(),
                stream,
            })
        };
        addresses
            .iter()
            .map(connect)
            .collect::<Result<_, _>>()
            .map(Children)
    }

    /// Whether there is anybody to send to.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The next block of a file; the last one is shorter than the others, or ends its size.
    pub fn send(&self, file: usize, block: &[u8]) -> Result<(), Fault> {
        self.each(|stream| {
            stream.write_all(&header(file as u32, block.len()))?;
            stream.write_all(block)
        })
    }

    /// Everything was sent.
    pub fn end(&self) -> Result<(), Fault> {
        self.each(|stream| {
            stream.write_all(&header(END, 0))?;
            stream.flush()
        })
    }

    fn each(
        &self,
        write: impl Fn(&mut BufWriter<TcpStream>) -> std::io::Result<()>,
    ) -> Result<(), Fault> {
        for child in &self.0 {
            write(&mut child.stream.lock().unwrap()).map_err(|error| Fault::Peer(errno(&error)))?;
        }
        Ok(())
    }

    /// For the message about one that was lost.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|child| child.address.as_str()).collect();
        names.join(", ")
    }
}

/// The next block that a connection brings: the file's index, and its bytes.
pub fn receive(stream: &mut impl Read) -> std::io::Result<(u32, Vec<u8>)> {
    let mut header = [0; 8];
    stream.read_exact(&mut header)?;
    let (file, length) = header.split_at(4);
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let mut block = vec![0; number(length) as usize];
    stream.read_exact(&mut block)?;
    Ok((number(file), block))
}

fn header(file: u32, length: usize) -> [u8; 8] {
    let mut header = [0; 8];
    header[..4].copy_from_slice(&file.to_le_bytes());
    header[4..].copy_from_slice(&(length as u32).to_le_bytes());
    header
}

/// A connection that is gone, in the system's words.
pub fn cut() -> Fault {
    Fault::Peer(Errno::CONNRESET)
}
