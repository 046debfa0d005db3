//! Reads pulls (PULL_MESSAGE, 11), and writes the responses of those that find messages; `broker/pull/plain_pulls.py`
//! uses it, and decides in between.
#![forbid(unsafe_code)]

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFrozenSet};

use crate::frame::HeaderType;
use crate::mapping::Mapping;
use crate::pull_request::read_pull;
use crate::response::{Template, Value};

const ENTRY_BYTES: usize = 20;
// Limits of a response: the event loop waits for it.
const MAX_TAGS: usize = 64;
const MAX_FRAME_BYTES: usize = 1 << 20;

/// The arguments of `PullMessageRequestHeader`.
type Fields<'a> = (
    &'a str,
    &'a str,
    i32,
    i64,
    i32,
    i32,
    i64,
    i64,
    i64,
    Option<&'a str>,
    Option<&'a str>,
);
/// The position behind the frame, its serialization type, its opaque and its fields.
type Request<'a> = (usize, u8, i32, Fields<'a>);
/// The response, the number of its messages, and their bytes.
type Response<'py> = (Bound<'py, PyBytes>, usize, usize);

/// Reads and answers the pulls of one broker.
#[pyclass]
pub struct PullKernel {
    json: Template,
    rocketmq: Template,
    msgpack: Template,
    /// Where the records of the current response lie in their segment.
    pieces: Vec<(usize, usize)>,
    header: Vec<u8>,
    is_broken: bool,
}

/// What one read may return, see `PlainRead` in `broker/store/messages/reader.py`.
#[derive(FromPyObject)]
struct Limits(i64, i64, i64, i64, i64);

/// Entries of a consume queue: its file, and where the entries begin and end in it.
type Entries = (Mapping, usize, usize);
/// A segment of the log: its file, the log position where it begins, and the end of its records.
type Segment = (Mapping, i64, i64);

/// What a read has found.
#[derive(Default)]
struct Found {
    scanned: i64,
    count: i64,
    bytes: i64,
}

#[pymethods]
impl PullKernel {
    /// Args: see `NativePullKernel` in `protocol/remoting/speedups.py`.
    #[new]
    #[pyo3(signature = (*, json, rocketmq, msgpack))]
    fn new(json: Vec<Vec<u8>>, rocketmq: Vec<Vec<u8>>, msgpack: Vec<Vec<u8>>) -> PyResult<Self> {
        let template = |header_type, pieces| {
            // The next, the lowest and the highest offset.
            Template::new(header_type, pieces, 3)
                .ok_or_else(|| PyValueError::new_err("the template of a response has other values"))
        };
        Ok(PullKernel {
            json: template(HeaderType::Json, json)?,
            rocketmq: template(HeaderType::RocketMq, rocketmq)?,
            msgpack: template(HeaderType::Msgpack, msgpack)?,
            pieces: Vec::new(),
            header: Vec::new(),
            is_broken: false,
        })
    }

    /// Reads the pull at `position`; None if there is none, or Python must decode it.
    fn parse<'a>(&mut self, data: &'a [u8], position: usize) -> Option<Request<'a>> {
        if self.is_broken {
            return None;
        }
        let read = catch_unwind(|| read_pull(data.get(position..)?));
        let Ok(read) = read else {
            // A defect: Python handles this frame, and every later one.
            self.is_broken = true;
            return None;
        };
        let (request, length) = read?;
        let fields = (
            request.consumer_group,
            request.topic,
            request.queue_id,
            request.queue_offset,
            request.max_msg_nums,
            request.sys_flag,
            request.commit_offset,
            request.suspend_timeout_millis,
            request.sub_version,
            request.subscription,
            request.expression_type,
        );
        let header_type = request.header_type as u8;
        Some((position + length, header_type, request.opaque, fields))
    }

    /// Writes the response; None if no message is found, or Python must read.
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        header_type: u8,
        opaque: i32,
        offsets: (i64, i64, i64),
        tag_codes: Option<&Bound<'py, PyFrozenSet>>,
        entries: Entries,
        segment: Segment,
        limits: Limits,
    ) -> PyResult<Option<Response<'py>>> {
        if self.is_broken {
            return Ok(None);
        }
        let tags = match tag_codes {
            None => None,
            Some(codes) if codes.len() > MAX_TAGS => return Ok(None),
            Some(codes) => Some(
                codes
                    .iter()
                    .map(|code| code.extract())
                    .collect::<PyResult<Vec<i64>>>()?,
            ),
        };
        let written = catch_unwind(AssertUnwindSafe(|| {
            let found = self.collect(py, &entries, tags.as_deref(), &segment, &limits)?;
            self.write_response(py, header_type, opaque, offsets, &found, &segment.0)
        }));
        let Ok(written) = written else {
            self.is_broken = true;
            return Ok(None);
        };
        written.transpose()
    }
}

impl PullKernel {
    /// Finds the records of the response, as `MessageReader._collect` does; they must lie in one segment.
    fn collect(
        &mut self,
        py: Python<'_>,
        (entries, first, end): &Entries,
        tags: Option<&[i64]>,
        (_, base, limit): &Segment,
        limits: &Limits,
    ) -> Option<Found> {
        let &Limits(cold_before, hot_count, cold_count, hot_bytes, cold_bytes) = limits;
        let mut found = Found::default();
        self.pieces.clear();
        let mut bytes = [0; ENTRY_BYTES];
        for at in (*first..*end).step_by(ENTRY_BYTES) {
            entries.copy(py, at, &mut bytes)?;
            let physical = i64::from_be_bytes(bytes[..8].try_into().ok()?);
            let size = i64::from(i32::from_be_bytes(bytes[8..12].try_into().ok()?));
            if found.count > 0 {
                let (most, most_bytes) = match physical < cold_before {
                    true => (cold_count, cold_bytes),
                    false => (hot_count, hot_bytes),
                };
                if found.count >= most || found.bytes + size > most_bytes {
                    break;
                }
            }
            found.scanned += 1;
            let tags_code = i64::from_be_bytes(bytes[12..].try_into().ok()?);
            if tags.is_some_and(|tags| !tags.contains(&tags_code)) {
                continue;
            }
            let end = physical.checked_add(size)?;
            if size <= 0 || physical < *base || end > *limit {
                return None;
            }
            let start = usize::try_from(physical - base).ok()?;
            let end = usize::try_from(end - base).ok()?;
            // Adjacent records are copied in one piece.
            match self.pieces.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => self.pieces.push((start, end)),
            }
            found.count += 1;
            found.bytes += size;
        }
        (found.count > 0).then_some(found)
    }

    fn write_response<'py>(
        &mut self,
        py: Python<'py>,
        header_type: u8,
        opaque: i32,
        (offset, min_offset, max_offset): (i64, i64, i64),
        found: &Found,
        log: &Mapping,
    ) -> Option<PyResult<Response<'py>>> {
        let template = match header_type {
            0 => &self.json,
            1 => &self.rocketmq,
            2 => &self.msgpack,
            _ => return None,
        };
        let values = [
            Value::Number(offset.checked_add(found.scanned)?),
            Value::Number(min_offset),
            Value::Number(max_offset),
        ];
        let size = usize::try_from(found.bytes).ok()?;
        self.header.clear();
        template.append(opaque, &values, size, &mut self.header)?;
        let total = self.header.len() + size;
        let is_mapped = self.pieces.iter().all(|&(_, end)| end <= log.len());
        if total > MAX_FRAME_BYTES || !is_mapped {
            return None;
        }
        let frame = PyBytes::new_with(py, total, |out| {
            let (head, mut rest) = out.split_at_mut(self.header.len());
            head.copy_from_slice(&self.header);
            for &(start, end) in &self.pieces {
                let (target, behind) = rest.split_at_mut(end - start);
                log.copy(py, start, target)
                    .ok_or_else(|| PyValueError::new_err("a record lies outside of its segment"))?;
                rest = behind;
            }
            Ok(())
        });
        let count = usize::try_from(found.count).ok()?;
        Some(frame.map(|frame| (frame, count, size)))
    }
}
