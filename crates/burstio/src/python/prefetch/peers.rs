//! `burstio.Peers`: a node among those that read for one another.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::prefetch::peers::{Key, PeerOptions};

/// See `burstio/peers.py`.
#[derive(FromPyObject)]
pub struct PyPeers {
    name: String,
    addresses: BTreeMap<String, String>,
    key: Vec<u8>,
    listener: Py<PyAny>,
}

impl PyPeers {
    /// Raises ValueError for an address, a key or a socket that is none; takes the socket over.
    pub fn options(self, py: Python<'_>) -> PyResult<PeerOptions> {
        let key = <[u8; 32]>::try_from(self.key)
            .map_err(|key| PyValueError::new_err(format!("key: {} bytes, not 32", key.len())))?;
        let address = |(name, text): (String, String)| match text.parse() {
            Ok(address) => Ok((name, address)),
            Err(_) => {
                let message = format!("{name}: {text}: wanted is ADDRESS:PORT in numbers");
                Err(PyValueError::new_err(message))
            }
        };
        let addresses = self.addresses.into_iter().map(address);
        let addresses = addresses.collect::<PyResult<_>>()?;
        let listener: RawFd = self.listener.call_method0(py, "detach")?.extract(py)?;
        if listener < 0 {
            let message = "listener: taken over by another engine, or closed: make one for each";
            return Err(PyValueError::new_err(message));
        }
        // SAFETY: the socket object has let go of it.
        let listener = unsafe { OwnedFd::from_raw_fd(listener) };
        Ok(PeerOptions {
            name: self.name,
            addresses,
            listener: Arc::new(TcpListener::from(listener)),
            key: Key(key),
        })
    }
}
