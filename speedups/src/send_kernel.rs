//! Encodes runs of sends (SEND_MESSAGE_V2, 310; SEND_BATCH_MESSAGE, 320) that nothing diverts; `broker/send/plain_sends.py` uses it.
//!
//! It changes nothing itself: it returns the bytes to write. Python writes them to the mapped files.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch::{self, Shared};
use crate::frame::HeaderType;
use crate::properties;
use crate::record::{self, Message, Place};
use crate::response::{Template, Value};
use crate::send_request::{read_send, SendRequest, SEND, SEND_BATCH};
use crate::text::Reader;

// Limits of a run: the event loop waits for it.
const MAX_FRAMES: usize = 256;
const MAX_RECORD_BYTES: usize = 1 << 20;
/// Memory of the records that a kernel keeps for its next run.
const KEPT_BYTES: usize = 1 << 20;
// Messages of a batch: all their ids fit into a header.
const MAX_BATCH: usize = 1_024;
const ENTRY_BYTES: usize = 20;

/// A consume queue to which plain sends go, and what the current run adds to it.
struct Queue {
    object: Py<PyAny>,
    key: Py<PyTuple>,
    topic_field: Vec<u8>,
    extra_sys_flag: i32,
    /// The run in which the next fields were read or set.
    run: u64,
    /// The queue offset of the run's first message.
    first: i64,
    /// The queue offset of the next message.
    next: i64,
    /// Up to this queue offset there is room. No higher than `first` if the queue takes no plain sends now.
    room_end: i64,
    entries: Vec<u8>,
    bytes: i64,
    requests: usize,
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

/// A queue's part of a run: the queue, its entries, the number of requests, their messages beyond one for each, the bytes of
/// their records, and the log position behind the last record.
type QueueResult<'py> = (Py<PyAny>, Bound<'py, PyBytes>, usize, usize, i64, i64);
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
    /// Empty between two runs.
    records: Vec<u8>,
    properties: Vec<u8>,
    stored_properties: Vec<u8>,
    /// The message ids of the current request.
    ids: Vec<u8>,
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
            records: Vec::new(),
            properties: Vec::new(),
            stored_properties: Vec::new(),
            ids: Vec::new(),
            is_broken: false,
        })
    }

    /// Forgets every queue.
    fn clear(&mut self) {
        self.queues.clear();
        self.by_topic.clear();
    }

    /// Encodes the leading plain sends with a request code of `data` from `position` on; None if there is none.
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        code: i32,
        data: &[u8],
        position: usize,
        offset: i64,
        room_end: i64,
        timestamp: i64,
        born_host: &[u8],
        awaited: &Bound<'py, PyDict>,
    ) -> PyResult<Option<RunResult<'py>>> {
        if self.is_broken || (code != SEND && code != SEND_BATCH) {
            return Ok(None);
        }
        let start = Start {
            offset,
            room_end,
            timestamp,
            born_host,
        };
        let encoded = catch_unwind(AssertUnwindSafe(|| {
            self.encode_run(py, code, data, position, &start, awaited)
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
        code: i32,
        data: &[u8],
        mut position: usize,
        start: &Start,
        awaited: &Bound<'py, PyDict>,
    ) -> PyResult<Option<RunResult<'py>>> {
        self.run += 1;
        let mut run = Run {
            records: std::mem::take(&mut self.records),
            ..Run::default()
        };
        let mut properties = std::mem::take(&mut self.properties);
        while run.frames < MAX_FRAMES && run.records.len() < MAX_RECORD_BYTES {
            let rest = data.get(position..).unwrap_or_default();
            let Some((request, length)) = read_send(rest, code, &mut properties) else {
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
            self.records = run.records;
            return Ok(None);
        }
        let queues = run
            .queues
            .iter()
            .map(|&index| self.queue_result(py, index))
            .collect::<PyResult<_>>()?;
        let records = PyBytes::new(py, &run.records);
        run.records.clear();
        run.records.shrink_to(KEPT_BYTES);
        self.records = run.records;
        let responses = PyBytes::new(py, &run.responses);
        Ok(Some((position, responses, records, queues)))
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
            queue.first = queue.next;
            queue.entries.clear();
            queue.bytes = 0;
            queue.requests = 0;
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
            first: 0,
            next: 0,
            room_end: 0,
            entries: Vec::new(),
            bytes: 0,
            requests: 0,
        });
        self.by_topic
            .entry(request.topic.to_vec())
            .or_default()
            .insert(request.queue_id, index);
        Ok(Some(index))
    }

    /// Adds a request to the run; None, and the run is as before, if it is not plain or there is no room.
    fn append(
        &mut self,
        request: &SendRequest,
        properties: &[u8],
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<()> {
        if request.sys_flag & self.special_flags != 0 {
            return None;
        }
        let before = run.records.len();
        let responses_before = run.responses.len();
        let entries_before = self.queues[index].entries.len();
        let appended = match request.is_batch {
            true => self.append_batch(request, properties, start, index, run),
            false => self.append_single(request, properties, start, index, run),
        };
        let queue = &mut self.queues[index];
        if appended.is_none() {
            run.records.truncate(before);
            run.responses.truncate(responses_before);
            queue.entries.truncate(entries_before);
            return None;
        }
        if entries_before == 0 {
            run.queues.push(index);
        }
        queue.next += ((queue.entries.len() - entries_before) / ENTRY_BYTES) as i64;
        queue.bytes += (run.records.len() - before) as i64;
        queue.requests += 1;
        Some(())
    }

    fn append_single(
        &mut self,
        request: &SendRequest,
        properties: &[u8],
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<()> {
        if request.body.len() > self.max_message_bytes {
            return None;
        }
        let mut stored = std::mem::take(&mut self.stored_properties);
        stored.clear();
        let tags_code =
            properties::append_stored(properties, &self.added, self.keeps_wait, &mut stored)?;
        self.ids.clear();
        let message = message_of(request, request.body, &stored, request.flag);
        self.append_record(&message, tags_code, start, index, run)?;
        self.stored_properties = stored;
        let transaction_id = match self.has_transaction {
            true => Some(properties::unique_key(properties)?),
            false => None,
        };
        self.append_response(request, index, transaction_id, run)
    }

    fn append_batch(
        &mut self,
        request: &SendRequest,
        properties: &[u8],
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<()> {
        let added = std::mem::take(&mut self.added);
        let shared = Shared::parse(properties, &added);
        let appended = shared.as_ref().and_then(|shared| {
            self.append_messages(request, shared, start, index, run)?;
            let transaction_id = match self.has_transaction {
                true => Some(shared.unique_key?),
                false => None,
            };
            self.append_response(request, index, transaction_id, run)
        });
        self.added = added;
        appended
    }

    fn append_messages(
        &mut self,
        request: &SendRequest,
        shared: &Shared,
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<()> {
        let before = run.records.len();
        let mut reader = Reader::new(request.body);
        let mut stored = std::mem::take(&mut self.stored_properties);
        self.ids.clear();
        let mut count = 0;
        while count == 0 || !reader.is_at_end() {
            let inner = batch::next_message(&mut reader)?;
            stored.clear();
            let tags_code = shared.append_stored(inner.properties, &mut stored)?;
            let message = message_of(request, inner.body, &stored, inner.flag);
            self.append_record(&message, tags_code, start, index, run)?;
            count += 1;
            let is_too_large = run.records.len() - before > self.max_message_bytes;
            if count > MAX_BATCH || is_too_large {
                return None;
            }
        }
        self.stored_properties = stored;
        Some(())
    }

    /// Adds a record, its queue's entry and its id.
    fn append_record(
        &mut self,
        message: &Message,
        tags_code: i64,
        start: &Start,
        index: usize,
        run: &mut Run,
    ) -> Option<()> {
        let queue = &mut self.queues[index];
        let queue_offset = queue.first + (queue.entries.len() / ENTRY_BYTES) as i64;
        let physical_offset = start.offset + run.records.len() as i64;
        let place = Place {
            queue_offset,
            physical_offset,
            timestamp: start.timestamp,
            born_host: start.born_host,
            store_host: &self.store_host,
            topic_field: &queue.topic_field,
            extra_sys_flag: queue.extra_sys_flag,
        };
        let size = record::append(message, &place, &mut run.records)?;
        if physical_offset + i64::from(size) > start.room_end || queue_offset >= queue.room_end {
            return None;
        }
        record::append_entry(physical_offset, size, tags_code, &mut queue.entries);
        if !self.ids.is_empty() {
            self.ids.push(b',');
        }
        self.ids.extend_from_slice(self.id_prefix.as_bytes());
        write!(self.ids, "{physical_offset:016X}").ok()
    }

    /// Adds the response to a request, unless it is oneway; its ids are those of the last records.
    fn append_response(
        &self,
        request: &SendRequest,
        index: usize,
        transaction_id: Option<&[u8]>,
        run: &mut Run,
    ) -> Option<()> {
        if request.is_oneway {
            return Some(());
        }
        let values = [
            Value::Text(&self.ids),
            Value::Number(request.queue_id.into()),
            Value::Number(self.queues[index].next),
            Value::Text(transaction_id.unwrap_or_default()),
        ];
        let values = &values[..3 + usize::from(self.has_transaction)];
        let template = match request.header_type {
            HeaderType::Json => &self.json,
            HeaderType::RocketMq => &self.rocketmq,
            HeaderType::Msgpack => &self.msgpack,
        };
        template.append(request.opaque, values, 0, &mut run.responses)
    }

    fn queue_result<'py>(&self, py: Python<'py>, index: usize) -> PyResult<QueueResult<'py>> {
        let queue = &self.queues[index];
        let count = queue.entries.len() / ENTRY_BYTES;
        let last = &queue.entries[queue.entries.len() - ENTRY_BYTES..];
        let offset = i64::from_be_bytes(last[..8].try_into()?);
        let size = i32::from_be_bytes(last[8..12].try_into()?);
        Ok((
            queue.object.clone_ref(py),
            PyBytes::new(py, &queue.entries),
            queue.requests,
            count - queue.requests,
            queue.bytes,
            offset + i64::from(size),
        ))
    }
}

fn message_of<'a>(
    request: &SendRequest,
    body: &'a [u8],
    properties: &'a [u8],
    flag: i32,
) -> Message<'a> {
    Message {
        queue_id: request.queue_id,
        sys_flag: request.sys_flag,
        born_timestamp: request.born_timestamp,
        flag,
        reconsume_times: request.reconsume_times,
        body,
        properties,
    }
}
