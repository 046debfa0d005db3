//! Copies bytes out of a mapped file, which Python may write between two calls.

use std::ptr::NonNull;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// The memory of a Python object, such as an `mmap`, which cannot be unmapped meanwhile.
#[derive(FromPyObject)]
#[pyo3(transparent)]
pub struct Mapping(PyBuffer<u8>);

impl Mapping {
    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// Copies the bytes from `start` on to `target`; None if some of them lie outside of the memory.
    pub fn copy(&self, _py: Python<'_>, start: usize, target: &mut [u8]) -> Option<()> {
        let memory = self.0.as_slice_ptr()?;
        if start.checked_add(target.len())? > memory.len() {
            return None;
        }
        // SAFETY: the buffer keeps the memory alive, and the bytes lie within it. `target` is Rust's own, so
        // the two do not overlap. No other thread writes the memory: only Python's main thread does, and this
        // thread holds the interpreter's lock.
        unsafe {
            let source = memory.cast::<u8>().add(start);
            source.copy_to_nonoverlapping(NonNull::from(&mut *target).cast(), target.len());
        }
        Some(())
    }
}
