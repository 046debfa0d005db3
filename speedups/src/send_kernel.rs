//! Encodes runs of sends (SEND_MESSAGE_V2, 310) that nothing diverts; `broker/send/plain_sends.py` uses it.
//!
//! It changes nothing itself: it returns the bytes to write. Python writes them to the mapped files.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::frame::HeaderType;
use crate::properties;
use crate::record::{self, Place};
use crate::response::{Template, Value};
use crate::send_request::{read_send, SendRequest};

// Limits of a run: the event loop waits for it.
const MAX_FRAMES: usize = 256;
const MAX_RECORD_BYTES: usize = 1 << 20;

/// A consume queue to which plain sends go, and what the current run adds to it.
struct Queue {
    object: Py<PyAny>,
    key: Py<PyTuple>,
    topic_field: Vec<u8>,
    extra_sys_flag: i32,
    /// The run in which the next four fields were read or set.
    run: u64,
    /// The queue offset of the next message.
    next: i64,
    /// Up to this queue offset there is room. No higher than `next` if the queue takes no plain sends now.
    room_end: i64,
    entries: Vec<u8>,
    bytes: i64,
}

/// What a run has collected.
#[derive(Default)]
struct Run {
    records: Vec<u8>,
    responses: Vec<u8>,
    /// Indexes into `SendKernel::queues`, in the order of their first message.
    queues: Vec<usize>,
    frames: usize,
}

/// Where the records of a run begin, and what they share.
struct Start<'a> {
    offset: i64,
    room_end: i64,
    timestamp: i64,
    born_host: &'a [u8],
}

/// A queue's part of a run: the queue, its entries, their number, the bytes of their records, and the log
/// position behind the last record.
type QueueResult<'py> = (Py<PyAny>, Bound<'py, PyBytes>, usize, i64, i64);
/// The position behind the last frame, the responses, the records and the queues.
type RunResult<'py> = (
    usize,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Vec<QueueResult<'py>>,
);

/// Encodes runs of plain sends for one broker.
#[pyclass]
pub struct SendKernel {
    resolve: Py<PyAny>,
    store_host: Vec<u8>,
    /// What every message id begins with.
    id_prefix: String,
    added: Vec<u8>,
    keeps_wait: bool,
    has_transaction: bool,
    special_flags: i32,
    max_message_bytes: usize,
    entries_per_file: i64,
    json: Template,
    rocketmq: Template,
    msgpack: Template,
    queues: Vec<Queue>,
    by_topic: HashMap<Vec<u8>, HashMap<i32, usize>>,
    run: u64,
    properties: Vec<u8>,
    stored_properties: Vec<u8>,
    is_broken: bool,
}

#[pymethods]
impl SendKernel {
    /// Args: see `NativeSendKernel` in `protocol/remoting/speedups.py`.
    #[new]
    #[pyo3(signature = (*, resolve, store_host, added, keeps_wait, has_transaction, special_flags,
                        max_message_bytes, entries_per_file, json, rocketmq, msgpack))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        resolve: Py<PyAny>,
        store_host: Vec<u8>,
        added: Vec<u8>,
        keeps_wait: bool,
        has_transaction: bool,
        special_flags: i32,
        max_message_bytes: usize,
        entries_per_file: i64,
        json: Vec<Vec<u8>>,
        rocketmq: Vec<Vec<u8>>,
        msgpack: Vec<Vec<u8>>,
    ) -> PyResult<Self> {
        // The message ids, the queue id, the queue offset, and the transaction id.
        let values = 3 + usize::from(has_transaction);
        let template = |header_type, pieces| {
            Template::new(header_type, pieces, values)
                .ok_or_else(|| PyValueError::new_err("the template of a response has other values"))
        };
        Ok(SendKernel {
            resolve,
            id_prefix: store_host
                .iter()
                .map(|byte| format!("{byte:02X}"))
                .collect(),
            store_host,
            added,
            keeps_wait,
            has_transaction,
            special_flags,
            max_message_bytes,
            entries_per_file,
            json: template(HeaderType::Json, json)?,
            rocketmq: template(HeaderType::RocketMq, rocketmq)?,
            msgpack: template(HeaderType::Msgpack, msgpack)?,
            queues: Vec::new(),
            by_topic: HashMap::new(),
            run: 0,
            properties: Vec::new(),
            stored_properties: Vec::new(),
            is_broken: false,
        })
    }

    /// Forgets every queue.
    fn clear(&mut self) {
        self.queues.clear();
        self.by_topic.clear();
    }

    /// Encodes the leading plain sends of `data` from `position` on; None if there is none.
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        data: &[u8],
        position: usize,
        offset: i64,
        room_end: i64,
        timestamp: i64,
        born_host: &[u8],
        awaited: &Bound<'py, PyDict>,
    ) -> PyResult<Option<RunResult<'py>>> {
        if self.is_broken {
            return Ok(None);
        }
        let start = Start {
            offset,
            room_end,
            timestamp,
            born_host,
        };
        let encoded = catch_unwind(AssertUnwindSafe(|| {
            self.encode_run(py, data, position, &start, awaited)
        }));
        encoded.unwrap_or_else(|_| {
            // A defect: Python handles this frame, and every later one.
            self.is_broken = true;
            self.clear();
            Ok(None)
        })
    }
}

impl SendKernel {
    fn encode_run<'py>(
        &mut self,
        py: Python<'py>,
        data: &[u8],
        mut position: usize,
        start: &Start,
        awaited: &Bound<'py, PyDict>,
    ) -> PyResult<Option<RunResult<'py>>> {
        self.run += 1;
        let mut run = Run::default();
        let mut properties = std::mem::take(&mut self.properties);
        while run.frames < MAX_FRAMES && run.records.len() < MAX_RECORD_BYTES {
            let rest = data.get(position..).unwrap_or_default();
            let Some((request, length)) = read_send(rest, &mut properties) else {
                break;
            };
            let Some(index) = self.queue(py, &request, awaited)? else {
                break;
            };
            if self
                .append(&request, &properties, start, index, &mut run)
                .is_none()
            {
                break;
            }
            position += length;
            run.frames += 1;
        }
        self.properties = properties;
        if run.frames == 0 {
            return Ok(None);
        }
        let queues = run
            .queues
            .iter()
            .map(|&index| self.queue_result(py, index))
            .collect::<PyResult<_>>()?;
        Ok(Some((
            position,
            PyBytes::new(py, &run.responses),
            PyBytes::new(py, &run.records),
            queues,
        )))
    }

    /// The index of the queue of a request; None if Python must decide about it.
    fn queue(
        &mut self,
        py: Python<'_>,
        request: &SendRequest,
        awaited: &Bound<'_, PyDict>,
    ) -> PyResult<Option<usize>> {
        let known = self
            .by_topic
            .get(request.topic)
            .and_then(|queues| queues.get(&request.queue_id));
        let index = match known {
            Some(&index) => index,
            None => match self.resolve_queue(py, request)? {
                Some(index) => index,
                None => return Ok(None),
            },
        };
        let queue = &mut self.queues[index];
        if queue.run != self.run {
            let object = queue.object.bind(py);
            queue.next = object.getattr(intern!(py, "max_offset"))?.extract()?;
            let room_end: i64 = object.getattr(intern!(py, "room_end"))?.extract()?;
            let first: i64 = object.getattr(intern!(py, "active_index"))?.extract()?;
            queue.room_end = room_end.min(first + self.entries_per_file);
            if awaited.contains(queue.key.bind(py))? {
                queue.room_end = queue.next;
            }
            queue.entries.clear();
            queue.bytes = 0;
            queue.run = self.run;
        }
        Ok((queue.next < queue.room_end).then_some(index))
    }

    fn resolve_queue(&mut self, py: Python<'_>, request: &SendRequest) -> PyResult<Option<usize>> {
        let Ok(topic) = std::str::from_utf8(request.topic) else {
            return Ok(None);
        };
        let found = self.resolve.call1(py, (topic, request.queue_id))?;
        let Some((object, key, topic_field, extra_sys_flag)) =
            found.extract::<Option<(Py<PyAny>, Py<PyTuple>, Vec<u8>, i32)>>(py)?
        else {
            return Ok(None);
        };
        let index = self.queues.len();
        self.queues.push(Queue {
            object,
            key,
            topic_field,
            extra_sys_flag,
            run: 0,
            next: 0,
            room_end: 0,
            entries: Vec::new(),
            bytes: 0,
        });
        self.by_topic
            .entry(request.topic.to_vec())
            .or_default()
            .insert(request.queue_id, index);
        Ok(Some(index))
    }

    /// Adds a message to the run; None, and the run is as before, if it is not plain or there is no room.
    fn append(
        &mut self,
        request: &SendRequest,
        properties: &[u8],
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<()> {
        let (records_before, responses_before) = (run.records.len(), run.responses.len());
        let size = self.append_bytes(request, properties, start, index, run);
        let Some((size, tags_code)) = size else {
            run.records.truncate(records_before);
            run.responses.truncate(responses_before);
            return None;
        };
        let queue = &mut self.queues[index];
        if queue.entries.is_empty() {
            run.queues.push(index);
        }
        record::append_entry(
            start.offset + records_before as i64,
            size,
            tags_code,
            &mut queue.entries,
        );
        queue.next += 1;
        queue.bytes += i64::from(size);
        Some(())
    }

    fn append_bytes(
        &mut self,
        request: &SendRequest,
        properties: &[u8],
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<(i32, i64)> {
        if request.sys_flag & self.special_flags != 0 || request.body.len() > self.max_message_bytes
        {
            return None;
        }
        let queue = &self.queues[index];
        let physical_offset = start.offset + run.records.len() as i64;
        let stored = &mut self.stored_properties;
        stored.clear();
        let tags_code =
            properties::append_stored(properties, &self.added, self.keeps_wait, stored)?;
        let place = Place {
            queue_offset: queue.next,
            physical_offset,
            timestamp: start.timestamp,
            born_host: start.born_host,
            store_host: &self.store_host,
            topic_field: &queue.topic_field,
            extra_sys_flag: queue.extra_sys_flag,
        };
        let size = record::append(request, stored, &place, &mut run.records)?;
        if physical_offset + i64::from(size) > start.room_end {
            return None;
        }
        let transaction_id = match self.has_transaction {
            true => Some(properties::unique_key(properties)?),
            false => None,
        };
        let id = format!("{}{physical_offset:016X}", self.id_prefix);
        let values = [
            Value::Text(id.as_bytes()),
            Value::Number(request.queue_id.into()),
            Value::Number(queue.next),
            Value::Text(transaction_id.unwrap_or_default()),
        ];
        let template = match request.header_type {
            HeaderType::Json => &self.json,
            HeaderType::RocketMq => &self.rocketmq,
            HeaderType::Msgpack => &self.msgpack,
        };
        let values = &values[..3 + usize::from(self.has_transaction)];
        template.append(request.opaque, values, 0, &mut run.responses)?;
        Some((size, tags_code))
    }

    fn queue_result<'py>(&self, py: Python<'py>, index: usize) -> PyResult<QueueResult<'py>> {
        let queue = &self.queues[index];
        let count = queue.entries.len() / 20;
        let last = &queue.entries[queue.entries.len() - 20..];
        let offset = i64::from_be_bytes(last[..8].try_into()?);
        let size = i32::from_be_bytes(last[8..12].try_into()?);
        Ok((
            queue.object.clone_ref(py),
            PyBytes::new(py, &queue.entries),
            count,
            queue.bytes,
            offset + i64::from(size),
        ))
    }
}
