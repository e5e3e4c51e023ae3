//! The Python module `burstio._burstio`: one file of thin bindings for each part of the crate.

mod copy;
mod pfs;
mod prefetch;

use pyo3::prelude::*;

#[pymodule]
mod _burstio {
    use super::*;

    #[pymodule_export]
    use super::copy::{PeerLost, PyCopy, PyListening, PyProgress, StagingFault};

    #[pymodule_export]
    use super::pfs::PyEmulatedPfs;

    #[pymodule_export]
    use super::prefetch::{
        PyAgent, PyClient, PyEngine, PyMount, PyPermutations, PySample, PyStream,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
