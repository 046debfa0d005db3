//! Reads SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320) as clients write them; every other frame is left to
//! Python.
#![forbid(unsafe_code)]

use crate::frame::{Fields, Frame, HeaderType};
use crate::text::{integer, Reader};

pub const SEND: i32 = 310;
pub const SEND_BATCH: i32 = 320;
// With a larger message, the rest of a send takes little of the time.
const MAX_MESSAGE_BYTES: usize = 131_072;
// The letters a to h, as bits of `SendFields::seen`.
const REQUIRED: u32 = 0xFF;
const MSGPACK_FALSE: u8 = 0xC2;
const MSGPACK_TRUE: u8 = 0xC3;

/// A request of which every field has its usual form. The properties are in a buffer of the caller.
pub struct SendRequest<'a> {
    pub is_batch: bool,
    pub header_type: HeaderType,
    pub opaque: i32,
    pub topic: &'a [u8],
    pub queue_id: i32,
    pub sys_flag: i32,
    pub born_timestamp: i64,
    pub flag: i32,
    pub reconsume_times: i32,
    pub body: &'a [u8],
}

/// Reads the first frame of `data`, a request with this code; returns it with its length in bytes.
///
/// `properties` becomes the properties text. None if the frame is incomplete, another request or not plain.
pub fn read_send<'a>(
    data: &'a [u8],
    code: i32,
    properties: &mut Vec<u8>,
) -> Option<(SendRequest<'a>, usize)> {
    let frame = Frame::read(data)?;
    let is_batch = code == SEND_BATCH;
    if frame.code != code || (!is_batch && frame.body.len() > MAX_MESSAGE_BYTES) {
        return None;
    }
    properties.clear();
    let mut fields = SendFields {
        properties,
        seen: 0,
        says_batch: false,
        topic: None,
        queue_id: None,
        sys_flag: None,
        born_timestamp: None,
        flag: None,
        reconsume_times: None,
    };
    let opaque = frame.read_fields(&mut fields)?;
    if fields.seen & REQUIRED != REQUIRED {
        return None;
    }
    // SEND_BATCH_MESSAGE (320) is a batch whatever its header says.
    if fields.says_batch && !is_batch {
        return None;
    }
    let request = SendRequest {
        is_batch,
        header_type: frame.header_type,
        opaque,
        topic: fields.topic?,
        queue_id: fields.queue_id?,
        sys_flag: fields.sys_flag?,
        born_timestamp: fields.born_timestamp?,
        flag: fields.flag?,
        reconsume_times: fields.reconsume_times.unwrap_or(0),
        body: frame.body,
    };
    Some((request, frame.length))
}

/// The ext fields, which have one letter each.
struct SendFields<'a, 'p> {
    properties: &'p mut Vec<u8>,
    seen: u32,
    says_batch: bool,
    topic: Option<&'a [u8]>,
    queue_id: Option<i32>,
    sys_flag: Option<i32>,
    born_timestamp: Option<i64>,
    flag: Option<i32>,
    reconsume_times: Option<i32>,
}

impl<'a> Fields<'a> for SendFields<'a, '_> {
    fn note(&mut self, name: &[u8]) -> Option<u8> {
        let &[letter @ b'a'..=b'n'] = name else {
            return None;
        };
        let bit = 1 << (letter - b'a');
        if self.seen & bit != 0 {
            return None;
        }
        self.seen |= bit;
        Some(letter)
    }

    fn set_text(&mut self, letter: u8, text: &'a [u8]) -> Option<()> {
        match letter {
            b'b' => self.topic = Some(text),
            b'd'..=b'h' | b'j' | b'l' => self.set_number(letter, integer(text)?)?,
            b'i' => self.properties.extend_from_slice(text),
            b'k' if text == b"true" || text == b"false" => {}
            // Whether the body is a batch.
            b'm' if text == b"true" || text == b"false" => self.says_batch = text == b"true",
            b'a' | b'c' | b'n' => {}
            _ => return None,
        }
        Some(())
    }

    fn read_json(&mut self, letter: u8, reader: &mut Reader<'a>) -> Option<()> {
        match letter {
            b'i' => reader.json_escaped_text(self.properties),
            _ => self.set_text(letter, reader.json_text()?),
        }
    }

    fn read_msgpack(&mut self, letter: u8, reader: &mut Reader<'a>) -> Option<()> {
        match letter {
            b'a' | b'b' | b'c' | b'i' | b'n' => self.set_text(letter, reader.msgpack_text()?),
            b'k' => match reader.byte()? {
                MSGPACK_FALSE | MSGPACK_TRUE => Some(()),
                _ => None,
            },
            b'm' => match reader.byte()? {
                flag @ (MSGPACK_FALSE | MSGPACK_TRUE) => {
                    self.says_batch = flag == MSGPACK_TRUE;
                    Some(())
                }
                _ => None,
            },
            _ => self.set_number(letter, reader.msgpack_integer()?),
        }
    }
}

impl SendFields<'_, '_> {
    fn set_number(&mut self, letter: u8, number: i64) -> Option<()> {
        if letter == b'g' {
            self.born_timestamp = Some(number);
            return Some(());
        }
        let number = i32::try_from(number).ok()?;
        match letter {
            b'e' => self.queue_id = Some(number),
            b'f' => self.sys_flag = Some(number),
            b'h' => self.flag = Some(number),
            b'j' => self.reconsume_times = Some(number),
            b'd' | b'l' => {}
            _ => return None,
        }
        Some(())
    }
}
