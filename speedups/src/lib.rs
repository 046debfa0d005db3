//! Optional kernels for RewindMQ's brokers: from the bytes of a read to the bytes of a write, for requests whose
//! outcome is certain.
//!
//! They change nothing themselves. Python decides what they may encode, writes the store and counts.

mod batch;
mod frame;
mod mapping;
mod properties;
mod pull_kernel;
mod pull_request;
mod record;
mod response;
mod send_kernel;
mod send_request;
mod text;

use pyo3::prelude::*;

#[pymodule]
fn rewindmq_speedups(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<pull_kernel::PullKernel>()?;
    module.add_class::<send_kernel::SendKernel>()
}
