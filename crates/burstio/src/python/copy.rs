//! `burstio.Copy`: the staging engine.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

use crate::checksum;
use crate::copy::{Copy, CopyError, Entry, MOST, Progress};

create_exception!(
    _burstio,
    StagingFault,
    PyException,
    "The first file that could not be staged."
);

impl From<CopyError> for PyErr {
    fn from(error: CopyError) -> Self {
        StagingFault::new_err(error.to_string())
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Copy", frozen)]
pub struct PyCopy(Copy);

#[pymethods]
impl PyCopy {
    #[new]
    #[pyo3(signature = (source, target, files, most_in_flight=MOST))]
    fn new(
        py: Python<'_>,
        source: PathBuf,
        target: PathBuf,
        files: Vec<(String, u64, String)>,
        most_in_flight: usize,
    ) -> PyResult<Self> {
        let entries = files.into_iter().map(entry).collect::<PyResult<_>>()?;
        Ok(PyCopy(py.detach(|| {
            Copy::start(&source, &target, entries, most_in_flight)
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
