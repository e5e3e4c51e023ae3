//! `burstio.EmulatedPfs`: the emulated parallel file system.

use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::prelude::*;

use crate::pfs::{Emulated, Emulation, Shown};

/// See `_burstio.pyi`.
#[pyclass(name = "EmulatedPfs", frozen)]
pub struct PyEmulatedPfs {
    emulated: Emulated,
    serving: Mutex<Option<crate::pfs::Serving>>,
}

#[pymethods]
impl PyEmulatedPfs {
    #[new]
    #[pyo3(signature = (
        mountpoint, exports, *, metadata_latency_ms, io_latency_ms, bandwidth_mb_s, metadata_rate
    ))]
    fn new(
        py: Python<'_>,
        mountpoint: PathBuf,
        exports: Vec<Shown>,
        metadata_latency_ms: f64,
        io_latency_ms: f64,
        bandwidth_mb_s: f64,
        metadata_rate: f64,
    ) -> PyResult<Self> {
        let emulation = Emulation {
            metadata_latency_ms,
            io_latency_ms,
            bandwidth_mb_s,
            metadata_rate,
        };
        let (emulated, serving) =
            py.detach(|| Emulated::mount(&mountpoint, &exports, emulation))?;
        Ok(Self {
            emulated,
            serving: Mutex::new(Some(serving)),
        })
    }

    fn unmount(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.emulated.unmount())?)
    }

    fn toggle_stall(&self) -> bool {
        self.emulated.toggle_stall()
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let serving = self.serving.lock().expect("taking does not panic").take();
        Ok(py.detach(|| serving.map_or(Ok(()), crate::pfs::Serving::wait))?)
    }
}
