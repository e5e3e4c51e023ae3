//! `burstio.Engine`, `burstio.Agent`, `burstio.Client`: the lazy prefetcher.

mod client;
mod peers;
mod stream;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::prefetch::agent::Agent;
use crate::prefetch::mount::Mount;
use crate::prefetch::order::Permutations;
use crate::prefetch::{CacheOptions, Engine, EngineOptions, ReadError, Source};
pub use client::PyClient;
use peers::PyPeers;
use stream::Feed;
pub use stream::{PySample, PyStream};

/// Held by one process: a child that was forked off has neither the threads nor the connection.
struct Owned<T> {
    value: ManuallyDrop<T>,
    process: u32,
}

impl<T> Owned<T> {
    fn new(value: T) -> Self {
        Self {
            value: ManuallyDrop::new(value),
            process: std::process::id(),
        }
    }

    fn get(&self) -> PyResult<&T> {
        if self.process != std::process::id() {
            let message = "made by the process that this one was forked from: make one here";
            return Err(PyRuntimeError::new_err(message));
        }
        Ok(&self.value)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // SAFETY: dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Engine", frozen)]
pub struct PyEngine(Owned<Arc<Engine>>);

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (root, files, *, sizes=None, identity="", memory_bytes=256 << 20,
        in_flight=(8, 256), look_ahead=16_384, cache=None, cache_bytes=None, cache_keep_free=0.05,
        keep=false, segments=true, tee=true, peers=None, time_limit_s=30.0))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn new(
        py: Python<'_>,
        root: PathBuf,
        files: Vec<OsString>,
        sizes: Option<Vec<u64>>,
        identity: &str,
        memory_bytes: usize,
        in_flight: (usize, usize),
        look_ahead: usize,
        cache: Option<PathBuf>,
        cache_bytes: Option<f64>,
        cache_keep_free: f64,
        keep: bool,
        segments: bool,
        tee: bool,
        peers: Option<PyPeers>,
        time_limit_s: f64,
    ) -> PyResult<Self> {
        if sizes
            .as_ref()
            .is_some_and(|sizes| sizes.len() != files.len())
        {
            return Err(PyValueError::new_err("sizes: one for each file"));
        }
        if keep && identity.is_empty() {
            let message =
                "keep: wants an identity, or another data set could be taken for this one";
            return Err(PyValueError::new_err(message));
        }
        let time_limit = Duration::try_from_secs_f64(time_limit_s)
            .map_err(|error| PyValueError::new_err(format!("time_limit_s: {error}")))?;
        let cache = cache.map(|directory| CacheOptions {
            directory,
            budget_bytes: cache_bytes.map_or(u64::MAX, |bytes| bytes as u64),
            keep_free: cache_keep_free,
            segments,
            keep,
        });
        let options = EngineOptions {
            memory_bytes,
            in_flight,
            look_ahead,
            cache,
            tee,
            peers: peers.map(|peers| peers.options(py)).transpose()?,
            time_limit,
        };
        let engine = py.detach(|| {
            let sizes = |i: usize| sizes.as_ref().map(|sizes| sizes[i]);
            let files = files
                .iter()
                .enumerate()
                .map(|(i, name)| (name.as_bytes(), sizes(i)));
            Engine::new(Source::new(root, files, identity), options)
        })?;
        Ok(Self(Owned::new(Arc::new(engine))))
    }

    #[getter]
    fn count(&self) -> PyResult<usize> {
        Ok(self.0.get()?.source().len())
    }

    fn stream(&self) -> PyResult<PyStream> {
        Ok(PyStream::new(Feed::Local(self.0.get()?.stream())))
    }

    fn statistics(&self) -> PyResult<BTreeMap<&'static str, u64>> {
        Ok(self.0.get()?.statistics().into_iter().collect())
    }

    fn peer_faults(&self) -> PyResult<Vec<String>> {
        Ok(self.0.get()?.peer_faults())
    }

    fn waits(&self) -> PyResult<Vec<u64>> {
        Ok(self.0.get()?.waits())
    }

    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.0.get()?;
        py.detach(|| engine.drain());
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<usize> {
        let engine = self.0.get()?;
        Ok(py.detach(|| engine.close()))
    }

    #[pyo3(signature = (directory, order=None))]
    fn mount(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        order: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyMount> {
        let engine = self.0.get()?.clone();
        let order = order.map_or(Ok(Vec::new()), stream::samples)?;
        let mount = py.detach(|| Mount::new(engine, &directory, order))?;
        Ok(PyMount(Owned::new(Mutex::new(mount))))
    }

    fn serve(&self, py: Python<'_>, socket: PathBuf) -> PyResult<PyAgent> {
        let engine = self.0.get()?.clone();
        Ok(PyAgent(Owned::new(
            py.detach(|| Agent::new(engine, &socket))?,
        )))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py).map(drop)
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Agent", frozen)]
pub struct PyAgent(Owned<Agent>);

#[pymethods]
impl PyAgent {
    fn close(&self, py: Python<'_>) -> PyResult<usize> {
        let agent = self.0.get()?;
        Ok(py.detach(|| agent.close()))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py).map(drop)
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Mount", frozen)]
pub struct PyMount(Owned<Mutex<Mount>>);

#[pymethods]
impl PyMount {
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mount = self.0.get()?;
        Ok(py.detach(|| {
            mount
                .lock()
                .expect("no thread panics under this lock")
                .close()
        })?)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Permutations")]
pub struct PyPermutations(Permutations);

#[pymethods]
impl PyPermutations {
    #[new]
    fn new(seed: u32) -> Self {
        Self(Permutations::new(seed))
    }

    fn next<'py>(&mut self, py: Python<'py>, count: u32) -> Bound<'py, PyBytes> {
        let drawn = py.detach(|| self.0.next(count));
        let bytes: Vec<u8> = drawn.into_iter().flat_map(u32::to_ne_bytes).collect();
        PyBytes::new(py, &bytes)
    }
}

/// As Python's own errors of files are: the class follows errno.
fn unreadable(error: &ReadError) -> PyErr {
    PyOSError::new_err((
        error.errno,
        error.message.clone(),
        error.path.clone().into_os_string(),
    ))
}
