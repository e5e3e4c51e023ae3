//! Who listens: connections that come, with a thread for each, until told to stop.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};

use super::reading::thread;

/// By number; a thread that has ended takes its connection out.
type Connections<S> = HashMap<u64, (Arc<S>, JoinHandle<()>)>;

/// Takes connections until it is stopped. `S` is a connection.
pub struct Acceptor<S> {
    listener: Arc<OwnedFd>,
    connections: Arc<Mutex<Connections<S>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<S: From<OwnedFd> + AsFd + Send + Sync + 'static> Acceptor<S> {
    /// Every connection that comes at `listener` gets a thread of this name, which ends with
    /// `serve`.
    pub fn new(
        listener: OwnedFd,
        name: &'static str,
        serve: impl Fn(&S) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let connections = Arc::new(Mutex::new(HashMap::new()));
        let (theirs, accepting) = (connections.clone(), listener.clone());
        let accepting = move || accept(&theirs, &accepting, name, &Arc::new(serve));
        let thread = thread("burstio-accept").spawn(accepting)?;
        Ok(Self {
            listener,
            connections,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// No connection comes any more, and those there are end; their threads are returned.
    pub fn stop(&self) -> Vec<JoinHandle<()>> {
        let _ = shutdown(&self.listener, Shutdown::Both); // ends accept(2)
        let acceptor = self
            .thread
            .lock()
            .expect("no thread panics under this lock")
            .take();
        acceptor.map(JoinHandle::join);
        let left = std::mem::take(&mut *lock(&self.connections));
        let end = |(socket, thread): (Arc<S>, _)| {
            let _ = shutdown(&*socket, Shutdown::Both);
            thread
        };
        left.into_values().map(end).collect()
    }
}

fn accept<S: From<OwnedFd> + AsFd + Send + Sync + 'static>(
    connections: &Arc<Mutex<Connections<S>>>,
    listener: &OwnedFd,
    name: &'static str,
    serve: &Arc<impl Fn(&S) + Send + Sync + 'static>,
) {
    for number in 0.. {
        let socket = match accept_with(listener, SocketFlags::CLOEXEC) {
            Err(Errno::INTR | Errno::CONNABORTED) => continue,
            Err(_) => return,
            Ok(socket) => Arc::new(S::from(socket)),
        };
        let (serve, theirs, ours) = (serve.clone(), connections.clone(), socket.clone());
        let mut connections = lock(connections); // so that its thread does not end before
        let serving = thread(name).spawn(move || {
            serve(&ours);
            lock(&theirs).remove(&number);
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
