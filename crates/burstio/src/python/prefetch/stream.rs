//! `burstio.Stream` and `burstio.Sample`: the same for an engine of this process and an agent's.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::{Owned, unreadable};
use crate::prefetch::agent::{ClientError, RemoteBytes, RemoteStream};
use crate::prefetch::{Bytes, Stream, TakeError};

pub enum Feed {
    Local(Stream),
    Remote(RemoteStream),
}

/// See `_burstio.pyi`.
#[pyclass(name = "Stream", frozen)]
pub struct PyStream(Owned<Mutex<Option<Feed>>>);

impl PyStream {
    pub fn new(feed: Feed) -> Self {
        Self(Owned::new(Mutex::new(Some(feed))))
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Feed>>> {
        Ok(self
            .0
            .get()?
            .lock()
            .expect("no thread panics under this lock"))
    }

    /// Do something with the feed while other threads of Python run.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Feed) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| match &mut *self.lock()? {
            Some(feed) => act(feed),
            None => Err(PyValueError::new_err("the stream is closed")),
        })
    }
}

#[pymethods]
impl PyStream {
    fn plan(&self, py: Python<'_>, indices: &Bound<'_, PyAny>) -> PyResult<()> {
        let samples = samples(indices)?;
        let wrong = self.with(py, |feed| match feed {
            Feed::Local(stream) => Ok(stream.plan(&samples)),
            Feed::Remote(stream) => Ok(stream.plan(&samples)?),
        })?;
        wrong.map_err(|sample| PyIndexError::new_err(format!("there is no file {sample}")))
    }

    fn take(&self, py: Python<'_>, count: usize) -> PyResult<Vec<(u32, PySample)>> {
        let mut raised = None;
        let mut go_on = || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        };
        let taken = self.with(py, |feed| match feed {
            Feed::Local(stream) => match stream.take(count, &mut go_on) {
                Ok(taken) => Ok(Some(pack(taken, Held::Local))),
                Err(TakeError::Read(error)) => Err(unreadable(&error)),
                Err(TakeError::Closed) => Err(PyValueError::new_err("the engine is closed")),
                Err(TakeError::Interrupted) => Ok(None),
            },
            Feed::Remote(stream) => match stream.take(count, &mut go_on) {
                Ok(taken) => Ok(Some(pack(taken, Held::Remote))),
                Err(ClientError::Interrupted) => Ok(None),
                Err(error) => Err(error.into()),
            },
        })?;
        match (taken, raised) {
            (Some(taken), None) => Ok(taken),
            (_, Some(error)) => Err(error),
            (None, None) => unreachable!("interrupted by what was raised"),
        }
    }

    #[getter]
    fn remaining(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |feed| match feed {
            Feed::Local(stream) => Ok(stream.remaining()),
            Feed::Remote(stream) => Ok(stream.remaining()),
        })
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |feed| match feed {
            Feed::Local(stream) => {
                stream.reset();
                Ok(())
            }
            Feed::Remote(stream) => Ok(stream.reset()?),
        })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().map(|mut feed| drop(feed.take())))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

enum Held {
    Local(Arc<Bytes>),
    Remote(RemoteBytes),
}

impl Held {
    fn bytes(&self) -> &[u8] {
        match self {
            Held::Local(bytes) => (**bytes).as_ref(),
            Held::Remote(bytes) => bytes.as_ref(),
        }
    }
}

/// See `_burstio.pyi`.
#[pyclass(name = "Sample", frozen)]
pub struct PySample(Owned<Held>);

#[pymethods]
impl PySample {
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.0.get()?.bytes().len())
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().0.get()?.bytes();
        let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as isize);
        // SAFETY: the view holds a reference to this object, and with it to the bytes; it is
        // marked as read only.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        if status == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

fn pack<T>(taken: Vec<(u32, T)>, held: impl Fn(T) -> Held) -> Vec<(u32, PySample)> {
    let packed = |(sample, bytes)| (sample, PySample(Owned::new(held(bytes))));
    taken.into_iter().map(packed).collect()
}

/// Indices from a buffer of integers, or any sequence of them.
pub fn samples(indices: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    if let Some(samples) = of_buffer::<u32>(indices).or_else(|| of_buffer::<i64>(indices)) {
        return samples;
    }
    if let Some(samples) = of_buffer::<i32>(indices).or_else(|| of_buffer::<u64>(indices)) {
        return samples;
    }
    indices.extract()
}

fn of_buffer<T>(indices: &Bound<'_, PyAny>) -> Option<PyResult<Vec<u32>>>
where
    T: Element + Copy + TryInto<u32> + std::fmt::Display,
{
    let buffer = PyBuffer::<T>::get(indices).ok()?;
    let small = |index: T| {
        index
            .try_into()
            .map_err(|_| PyIndexError::new_err(format!("there is no file {index}")))
    };
    Some(
        buffer
            .to_vec(indices.py())
            .and_then(|found| found.into_iter().map(small).collect()),
    )
}
