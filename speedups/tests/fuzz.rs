//! Mutates requests, and gives them to everything that reads bytes of a peer: nothing panics, and what is read lies
//! within the bytes. `cargo test` checks overflows; docs/speedups.md says how to run it with AddressSanitizer.
//!
//! REWINDMQ_FUZZ_SECONDS sets how long it runs; REWINDMQ_FUZZ_SEED where it begins.
#![allow(dead_code)]

#[path = "../src/batch.rs"]
mod batch;
#[path = "../src/frame.rs"]
mod frame;
#[path = "../src/properties.rs"]
mod properties;
#[path = "../src/pull_request.rs"]
mod pull_request;
#[path = "../src/record.rs"]
mod record;
#[path = "../src/response.rs"]
mod response;
#[path = "../src/send_request.rs"]
mod send_request;
#[path = "../src/text.rs"]
mod text;

use std::time::{Duration, Instant};

use frame::HeaderType;
use response::{Template, Value};
use send_request::{SEND, SEND_BATCH};

const SECONDS: u64 = 2;
const ADDED: &[u8] = b"MSG_REGION\x01r\x02TRACE_ON\x01true\x02CLUSTER\x01c";
const OWN: &[u8] = b"UNIQ_KEY\x01FD00\x02WAIT\x01true\x02TAGS\x01TagA";
// Bytes at which readers branch.
const BYTES: &[u8] = b"\x00\x01\x02\x7F\x80\x97\xA0\xC0\xC3\xCD\xD3\xD9\xFF\"\\{}:,-0129aefimu ";

/// Xorshift: every seed gives its own sequence, the same on every machine.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

fn framed(header_type: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut data = ((4 + header.len() + body.len()) as u32)
        .to_be_bytes()
        .to_vec();
    data.extend(((u32::from(header_type) << 24) | header.len() as u32).to_be_bytes());
    data.extend_from_slice(header);
    data.extend_from_slice(body);
    data
}

fn inner(body: &[u8], properties: &[u8]) -> Vec<u8> {
    let mut data = ((22 + body.len() + properties.len()) as u32)
        .to_be_bytes()
        .to_vec();
    data.extend_from_slice(&[0; 12]);
    data.extend((body.len() as u32).to_be_bytes());
    data.extend_from_slice(body);
    data.extend((properties.len() as u16).to_be_bytes());
    data.extend_from_slice(properties);
    data
}

fn json(code: i32, fields: &[(&str, &str)]) -> Vec<u8> {
    let pairs: Vec<_> = fields
        .iter()
        .map(|(name, text)| format!("\"{name}\":\"{}\"", text.escape_default()))
        .collect();
    let fields = pairs.join(",").replace("\\u{", "\\u000").replace('}', "");
    format!("{{\"code\":{code},\"extFields\":{{{fields}}},\"flag\":0,\"language\":\"JAVA\",\"opaque\":7,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":401}}")
        .into_bytes()
}

fn rocketmq(code: i32, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut ext = Vec::new();
    for (name, text) in fields {
        ext.extend((name.len() as u16).to_be_bytes());
        ext.extend_from_slice(name.as_bytes());
        ext.extend((text.len() as u32).to_be_bytes());
        ext.extend_from_slice(text.as_bytes());
    }
    let mut header = (code as u16).to_be_bytes().to_vec();
    header.extend_from_slice(b"\x00\x01\x91\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00");
    header.extend((ext.len() as u32).to_be_bytes());
    header.extend(ext);
    header
}

fn msgpack(code: i32, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut header = vec![0x97, 0xCD];
    header.extend((code as u16).to_be_bytes());
    header.extend_from_slice(b"\x0C\xCD\x01\x91\x07\x00\xC0");
    header.push(0x80 | fields.len() as u8);
    let text = |text: &str, out: &mut Vec<u8>| {
        out.extend_from_slice(&[0xD9, text.len() as u8]);
        out.extend_from_slice(text.as_bytes());
    };
    for (name, value) in fields {
        text(name, &mut header);
        match (*name, value.parse::<i64>()) {
            ("k" | "m", _) => header.push(if *value == "true" { 0xC3 } else { 0xC2 }),
            (_, Ok(number)) => {
                header.push(0xD3);
                header.extend(number.to_be_bytes());
            }
            _ => text(value, &mut header),
        }
    }
    header
}

/// Requests as clients write them, each with its code.
fn requests() -> Vec<(i32, Vec<u8>)> {
    let own = std::str::from_utf8(OWN).unwrap();
    let send = |is_batch| {
        [
            ("a", "PG"),
            ("b", "T"),
            ("c", "TBW102"),
            ("d", "4"),
            ("e", "0"),
            ("f", "0"),
            ("g", "1795323546451"),
            ("h", "0"),
            ("i", own),
            ("j", "0"),
            ("k", "false"),
            ("m", is_batch),
            ("n", "broker-a"),
        ]
    };
    let pull = [
        ("consumerGroup", "G"),
        ("topic", "T"),
        ("queueId", "0"),
        ("queueOffset", "12"),
        ("maxMsgNums", "32"),
        ("sysFlag", "3"),
        ("commitOffset", "5"),
        ("suspendTimeoutMillis", "15000"),
        ("subVersion", "0"),
        ("subscription", "TagA || TagB"),
        ("expressionType", "TAG"),
        ("bname", "broker-a"),
    ];
    let batch = [
        inner(b"one", OWN),
        inner(b"", b""),
        inner(&[7; 40], b"TAGS\x01B\x02"),
    ]
    .concat();
    let mut found = Vec::new();
    for (code, fields, body) in [
        (SEND, &send("false")[..], &b"hello"[..]),
        (SEND_BATCH, &send("true")[..], &batch[..]),
        (11, &pull[..], &b""[..]),
    ] {
        found.push((code, framed(0, &json(code, fields), body)));
        found.push((code, framed(1, &rocketmq(code, fields), body)));
        found.push((code, framed(2, &msgpack(code, fields), body)));
    }
    found
}

fn mutate(data: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..chance.below(4) {
        if data.is_empty() {
            return;
        }
        let at = chance.below(data.len());
        let byte = BYTES[chance.below(BYTES.len())];
        match chance.below(6) {
            0 => data[at] = byte,
            1 => data.insert(at, byte),
            2 => drop(data.remove(at)),
            3 => data.truncate(at + 1),
            4 => data[at] ^= 1 << chance.below(8),
            _ => {
                let end = (at + chance.below(16)).min(data.len());
                let copied = data[at..end].to_vec();
                let to = chance.below(data.len());
                data.splice(to..to, copied);
            }
        }
    }
    // Half of the changed frames have the right length again, so that readers get to their content.
    if data.len() > 8 && chance.below(2) == 0 {
        let length = (data.len() - 4) as u32;
        data[..4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Whether a slice of the peer's bytes is one.
fn lies_within(part: &[u8], whole: &[u8]) -> bool {
    part.is_empty() || {
        let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
        whole.start <= part.start && part.end <= whole.end
    }
}

/// Reads a send and does what the kernel does with it; returns whether it is plain.
fn try_send(code: i32, data: &[u8], properties: &mut Vec<u8>) -> bool {
    let Some((request, length)) = send_request::read_send(data, code, properties) else {
        return false;
    };
    assert!(length <= data.len());
    assert!(lies_within(request.topic, data) && lies_within(request.body, data));
    let mut stored = Vec::new();
    if request.is_batch {
        let Some(shared) = batch::Shared::parse(properties, ADDED) else {
            return false;
        };
        let mut reader = text::Reader::new(request.body);
        while !reader.is_at_end() {
            let Some(message) = batch::next_message(&mut reader) else {
                return false;
            };
            assert!(lies_within(message.body, data) && lies_within(message.properties, data));
            stored.clear();
            if shared
                .append_stored(message.properties, &mut stored)
                .is_none()
            {
                return false;
            }
            store(&request, message.body, &stored, message.flag);
        }
        return true;
    }
    if properties::append_stored(properties, ADDED, false, &mut stored).is_none() {
        return false;
    }
    store(&request, request.body, &stored, request.flag);
    true
}

fn store(request: &send_request::SendRequest, body: &[u8], properties: &[u8], flag: i32) {
    let message = record::Message {
        queue_id: request.queue_id,
        sys_flag: request.sys_flag,
        born_timestamp: request.born_timestamp,
        flag,
        reconsume_times: request.reconsume_times,
        body,
        properties,
    };
    let place = record::Place {
        queue_offset: i64::MAX,
        physical_offset: i64::MAX,
        timestamp: i64::MIN,
        born_host: &[1; 20],
        store_host: &[2; 8],
        topic_field: b"\x01T",
        extra_sys_flag: 0,
    };
    let mut out = vec![9; 3];
    let size = record::append(&message, &place, &mut out);
    assert_eq!(size, i32::try_from(out.len() - 3).ok());
}

fn try_pull(data: &[u8], templates: &[Template; 3]) -> bool {
    let Some((request, length)) = pull_request::read_pull(data) else {
        return false;
    };
    assert!(length <= data.len());
    assert!(lies_within(request.topic.as_bytes(), data));
    let values = [
        Value::Number(request.queue_offset),
        Value::Number(request.commit_offset),
        Value::Text(request.topic.as_bytes()),
    ];
    let mut out = Vec::new();
    let template = &templates[request.header_type as usize];
    if template
        .append(request.opaque, &values, 17, &mut out)
        .is_some()
    {
        let told = u32::from_be_bytes(out[..4].try_into().unwrap()) as usize;
        assert_eq!(told + 4, out.len() + 17);
    }
    true
}

fn templates() -> [Template; 3] {
    let json = [
        &b"{\"a\":"[..],
        b",\"b\":",
        b",\"c\":\"",
        b"\",\"opaque\":",
        b"}",
    ];
    let mut first = vec![0; 13];
    first.extend_from_slice(b"\x00\x00\x00\x05FOUND\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x01");
    let rocketmq = [
        &first[..],
        b"\x00\x01b\x00\x00\x00\x01",
        b"\x00\x01c\x00\x00\x00\x01",
        b"",
    ];
    let msgpack = [&b"\x97\x00"[..], b"\x83\xA1a", b"\xA1b", b"\xA1c\xA1", b""];
    let made = |header_type, pieces: &[&[u8]]| {
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        Template::new(header_type, pieces, 3).expect("as many pieces as values need")
    };
    [
        made(HeaderType::Json, &json),
        made(HeaderType::RocketMq, &rocketmq),
        made(HeaderType::Msgpack, &msgpack),
    ]
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

#[test]
fn no_bytes_of_a_peer_lead_to_a_panic_or_beyond_them() {
    let requests = requests();
    let templates = templates();
    let mut properties = Vec::new();
    for (code, data) in &requests {
        let is_plain = match *code {
            11 => try_pull(data, &templates),
            code => try_send(code, data, &mut properties),
        };
        assert!(is_plain, "{code} of {:?}", String::from_utf8_lossy(data));
    }
    let end = Instant::now() + Duration::from_secs(number("REWINDMQ_FUZZ_SECONDS", SECONDS));
    let mut chance = Chance(number("REWINDMQ_FUZZ_SEED", 1) | 1 << 40);
    let (mut tried, mut plain) = (0_u64, 0_u64);
    while Instant::now() < end {
        for _ in 0..1_000 {
            let mut data = requests[chance.below(requests.len())].1.clone();
            mutate(&mut data, &mut chance);
            tried += 1;
            plain += u64::from(try_pull(&data, &templates));
            for code in [SEND, SEND_BATCH] {
                plain += u64::from(try_send(code, &data, &mut properties));
            }
        }
    }
    println!("{tried} frames, {plain} of them plain");
    assert!(plain > tried / 100 && plain < tried);
}
