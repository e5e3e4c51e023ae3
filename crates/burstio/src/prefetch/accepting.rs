//! Who listens: connections that come, with a thread for each, until told to stop.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};

use super::reading::thread;

/// After a connection that could not be taken, as when there are too many files open.
const PAUSE: Duration = Duration::from_millis(10);

/// By number; a thread that has ended takes its connection out.
type Connections<S> = HashMap<u64, (Arc<S>, JoinHandle<()>)>;

/// Takes connections until it is stopped. `S` is a connection.
pub struct Acceptor<S> {
    open: Arc<Open<S>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Open<S> {
    listener: OwnedFd,
    connections: Mutex<Connections<S>>,
    stopping: AtomicBool,
}

impl<S: From<OwnedFd> + AsFd + Send + Sync + 'static> Acceptor<S> {
    /// Every connection that comes at `listener` gets a thread of this name, which ends with
    /// `serve`.
    pub fn new(
        listener: OwnedFd,
        name: &'static str,
        serve: impl Fn(&S) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let open = Arc::new(Open {
            listener,
            connections: Mutex::new(HashMap::new()),
            stopping: AtomicBool::new(false),
        });
        let theirs = open.clone();
        let accepting = move || accept(&theirs, name, &Arc::new(serve));
        let thread = Mutex::new(Some(thread("burstio-accept").spawn(accepting)?));
        Ok(Self { open, thread })
    }

    /// No connection comes any more, and those there are end; their threads are returned.
    pub fn stop(&self) -> Vec<JoinHandle<()>> {
        self.open.stopping.store(true, Relaxed);
        let _ = shutdown(&self.open.listener, Shutdown::Both); // ends accept(2)
        let acceptor = lock(&self.thread).take();
        acceptor.map(JoinHandle::join);
        let left = std::mem::take(&mut *lock(&self.open.connections));
        let end = |(socket, thread): (Arc<S>, _)| {
            let _ = shutdown(&*socket, Shutdown::Both);
            thread
        };
        left.into_values().map(end).collect()
    }
}

fn accept<S: From<OwnedFd> + AsFd + Send + Sync + 'static>(
    open: &Arc<Open<S>>,
    name: &'static str,
    serve: &Arc<impl Fn(&S) + Send + Sync + 'static>,
) {
    for number in 0.. {
        let socket = match accept_with(&open.listener, SocketFlags::CLOEXEC) {
            _ if open.stopping.load(Relaxed) => return,
            Err(_) => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Ok(socket) => Arc::new(S::from(socket)),
        };
        let (serve, theirs, ours) = (serve.clone(), open.clone(), socket.clone());
        let mut connections = lock(&open.connections); // so that its thread does not end before
        let serving = thread(name).spawn(move || {
            serve(&ours);
            lock(&theirs.connections).remove(&number);
        });
        if let Ok(serving) = serving {
            connections.insert(number, (socket, serving));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics under this lock")
}

/// Whether the other end has not hung up.
pub fn is_there(socket: impl AsFd) -> bool {
    let mut watched = [PollFd::new(&socket, PollFlags::RDHUP)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let _ = poll(&mut watched, Some(&now));
    !watched[0]
        .revents()
        .intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_can_not_be_taken_is_not_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap(); // accept(2) fails as long as nobody comes
        let greet = |mut visitor: &TcpStream| {
            let _ = visitor.write_all(b"welcome");
            let _ = visitor.read(&mut [0]); // until the end
        };
        let acceptor = Acceptor::new(listener.into(), "test", greet).unwrap();
        std::thread::sleep(2 * PAUSE);
        let mut visitor = TcpStream::connect(address).unwrap();
        visitor.read_exact(&mut [0; 7]).unwrap();
        assert_eq!(acceptor.stop().len(), 1);
        assert_eq!(visitor.read(&mut [0]).unwrap(), 0, "its end is told");
        assert!(acceptor.stop().is_empty());
    }
}
