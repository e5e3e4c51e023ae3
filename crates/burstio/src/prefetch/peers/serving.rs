//! The end that is asked: a connection, a thread and a stream for every question in flight.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::super::accepting::is_there;
use super::super::reading::Shared;
use super::super::schedule::Sample;
use super::super::segment;
use super::super::statistics::Statistics;
use super::super::stream::{Stream, TakeError};
use super::timed::{Timed, prepare};
use super::{Header, REFUSED};

/// A stranger is listened to for so long.
const GREETING: Duration = Duration::from_secs(10);
/// A connection that is to end is shut down: no greeting need be told.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// One connection, to its end.
pub fn serve(shared: &Arc<Shared>, socket: &TcpStream) -> io::Result<()> {
    let Some(peers) = &shared.peers else {
        return Ok(());
    };
    prepare(socket)?;
    peers.own_greeting().receive(Timed {
        socket,
        deadline: Instant::now() + GREETING,
        stop: &GOES_ON,
    })?;
    socket.set_read_timeout(None)?; // until the peer asks
    let mut stream = Stream::new(shared, false);
    let (mut reader, mut question) = (socket, [0; size_of::<Sample>()]);
    loop {
        reader.read_exact(&mut question)?;
        answer(shared, &mut stream, Sample::from_le_bytes(question), socket)?;
    }
}

fn answer(
    shared: &Shared,
    stream: &mut Stream,
    sample: Sample,
    mut socket: &TcpStream,
) -> io::Result<()> {
    let taken = if shared.owns(sample) && stream.plan(&[sample]).is_ok() {
        stream.take(1, || is_there(socket))
    } else {
        Ok(Vec::new())
    };
    let taken = match taken {
        Err(TakeError::Read(_)) => {
            stream.reset(); // what did not come in time is not the answer to the next question
            Vec::new() // the peer finds out itself what is wrong
        }
        Err(other) => return Err(io::Error::other(other)),
        Ok(taken) => taken,
    };
    let here = taken.first().map(|(_, bytes)| (**bytes).as_ref());
    let length = here.and_then(|bytes| u32::try_from(bytes.len()).ok());
    let (Some(bytes), Some(length)) = (here, length.filter(|length| *length != REFUSED)) else {
        return socket.write_all(
            &Header {
                length: REFUSED,
                checksum: 0,
            }
            .encode(),
        );
    };
    let checksum = segment::checksum(shared.source.fingerprint(), sample, bytes);
    socket.write_all(&Header { length, checksum }.encode())?;
    socket.write_all(bytes)?;
    Statistics::count(&shared.statistics.served_to_peers);
    Ok(())
}
