//! `burstio.Client`: what an engine of this process does, done by an agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;

use super::stream::{Feed, PyStream};
use super::{Owned, unreadable};
use crate::prefetch::agent::{Client, ClientError};

type GoOn<'a> = &'a mut dyn FnMut() -> bool;

/// Wait for an agent while other threads of Python run; a signal's handler that raises ends it.
fn interruptible<R: Send>(
    py: Python<'_>,
    wait: impl FnOnce(GoOn<'_>) -> Result<R, ClientError> + Send,
) -> PyResult<R> {
    let mut raised = None;
    let mut go_on = || {
        raised = Python::attach(|py| py.check_signals()).err();
        raised.is_none()
    };
    let done = py.detach(|| wait(&mut go_on));
    match raised {
        Some(error) => Err(error),
        None => Ok(done?),
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Client", frozen)]
pub struct PyClient(Owned<Client>);

#[pymethods]
impl PyClient {
    #[new]
    fn new(py: Python<'_>, socket: PathBuf) -> PyResult<Self> {
        let connect = |go_on: GoOn<'_>| Client::connect(&socket, go_on);
        Ok(Self(Owned::new(interruptible(py, connect)?)))
    }

    #[getter]
    fn count(&self) -> PyResult<usize> {
        Ok(self.0.get()?.count())
    }

    fn stream(&self, py: Python<'_>) -> PyResult<PyStream> {
        let client = self.0.get()?;
        let stream = interruptible(py, |go_on| client.stream(go_on))?;
        Ok(PyStream::new(Feed::Remote(stream)))
    }

    fn statistics(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        let client = self.0.get()?;
        let all = interruptible(py, |go_on| client.statistics(go_on))?;
        Ok(all.into_iter().collect())
    }

    fn waits(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let client = self.0.get()?;
        interruptible(py, |go_on| client.waits(go_on))
    }

    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let client = self.0.get()?;
        interruptible(py, |go_on| client.drain(go_on))
    }

    fn close(&self) -> PyResult<usize> {
        self.0.get()?.close();
        Ok(0) // the agent goes on, with all its threads
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close().map(drop)
    }
}

impl From<ClientError> for PyErr {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Read(error) => unreadable(&error),
            ClientError::Closed => PyValueError::new_err(error.to_string()),
            other => PyConnectionError::new_err(other.to_string()),
        }
    }
}
