//! `burstio.Copy`: the staging engine.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

use crate::checksum;
use crate::copy::{Children, Copy, CopyError, Entry, Fault, Listening, MOST, Progress, Token};

create_exception!(
    _burstio,
    StagingFault,
    PyException,
    "The first file that could not be staged."
);

create_exception!(
    _burstio,
    PeerLost,
    StagingFault,
    "Another node has failed, and tells why."
);

impl From<CopyError> for PyErr {
    fn from(error: CopyError) -> Self {
        match error.fault {
            Fault::Peer(_) => PeerLost::new_err(error.to_string()),
            _ => StagingFault::new_err(error.to_string()),
        }
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Copy", frozen)]
pub struct PyCopy(Copy);

#[pymethods]
impl PyCopy {
    #[new]
    #[pyo3(signature = (source, target, files, most_in_flight=MOST, children=vec![], token=Token::default()))]
    fn new(
        py: Python<'_>,
        source: PathBuf,
        target: PathBuf,
        files: Vec<(String, u64, String)>,
        most_in_flight: usize,
        children: Vec<String>,
        token: Token,
    ) -> PyResult<Self> {
        let entries = entries(files)?;
        Ok(PyCopy(py.detach(|| {
            let children = Children::connect(&children, &token)?;
            Copy::start(&source, &target, entries, most_in_flight, children)
        })?))
    }

    fn wait(&self, py: Python<'_>, longest_s: f64) -> PyResult<bool> {
        let longest = Duration::try_from_secs_f64(longest_s)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(py.detach(|| self.0.wait(longest))?)
    }

    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.0.cancel());
    }

    fn progress(&self) -> PyProgress {
        PyProgress(self.0.progress())
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Progress", frozen)]
pub struct PyProgress(Progress);

#[pymethods]
impl PyProgress {
    #[getter]
    fn files(&self) -> u64 {
        self.0.files
    }

    #[getter]
    fn present(&self) -> u64 {
        self.0.present
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    fn in_flight(&self) -> usize {
        self.0.in_flight
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Listening", frozen)]
pub struct PyListening {
    #[pyo3(get)]
    port: u16,
    waiting: Mutex<Option<Listening>>,
}

#[pymethods]
impl PyListening {
    #[new]
    fn new(
        py: Python<'_>,
        target: PathBuf,
        files: Vec<(String, u64, String)>,
        token: Token,
    ) -> PyResult<Self> {
        let entries = entries(files)?;
        let waiting = py.detach(|| Listening::start(&target, entries, token))?;
        Ok(PyListening {
            port: waiting.port(),
            waiting: Mutex::new(Some(waiting)),
        })
    }

    fn begin(&self, py: Python<'_>, children: Vec<String>) -> PyResult<PyCopy> {
        let waiting = self.waiting.lock().unwrap().take();
        let waiting = waiting.ok_or_else(|| PyValueError::new_err("it has begun already"))?;
        Ok(PyCopy(py.detach(|| waiting.begin(&children))?))
    }
}

fn entries(files: Vec<(String, u64, String)>) -> PyResult<Vec<Entry>> {
    files.into_iter().map(entry).collect()
}

fn entry((path, size, digits): (String, u64, String)) -> PyResult<Entry> {
    let checksum = match checksum::parse(&digits) {
        None if !digits.is_empty() => {
            return Err(PyValueError::new_err(format!(
                "{path}: {digits:?} is no SHA-256"
            )));
        }
        parsed => parsed,
    };
    Ok(Entry::new(path, size, checksum))
}
