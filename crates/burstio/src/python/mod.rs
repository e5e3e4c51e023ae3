//! The Python module `burstio._burstio`: one file of thin bindings for each part of the crate.

use pyo3::prelude::*;

#[pymodule]
mod _burstio {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
