//! Reads SEND_MESSAGE_V2 (310) as clients write it; every other frame is left to Python.
#![forbid(unsafe_code)]

use crate::text::{integer, Reader};

const PREFIX_BYTES: usize = 8;
const LENGTH_BYTES: usize = 4;
// Below the limits of the decoder in Python, which decides about larger frames.
const MAX_HEADER_BYTES: usize = 65_536;
const MAX_BODY_BYTES: usize = 131_072;
const CODE: i16 = 310;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HeaderType {
    Json = 0,
    RocketMq = 1,
    Msgpack = 2,
}

/// A request of which every field has its usual form. The properties are in a buffer of the caller.
pub struct SendRequest<'a> {
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

/// Reads the first frame of `data`; returns it with its length in bytes.
///
/// `properties` becomes the properties text. None if the frame is incomplete, another request or not plain.
pub fn read_frame<'a>(
    data: &'a [u8],
    properties: &mut Vec<u8>,
) -> Option<(SendRequest<'a>, usize)> {
    let mut prefix = Reader::new(data);
    let length = usize::try_from(prefix.int32()?).ok()?;
    let word = prefix.int32()?;
    let header_type = match word >> 24 {
        0 => HeaderType::Json,
        1 => HeaderType::RocketMq,
        2 => HeaderType::Msgpack,
        _ => return None,
    };
    let header_length = (word & 0xFF_FFFF) as usize;
    let body_length = length
        .checked_sub(LENGTH_BYTES)?
        .checked_sub(header_length)?;
    if header_length > MAX_HEADER_BYTES || body_length > MAX_BODY_BYTES {
        return None;
    }
    let mut rest = Reader::new(data.get(PREFIX_BYTES..)?);
    let header = rest.take(header_length)?;
    let body = rest.take(body_length)?;
    properties.clear();
    let (opaque, fields) = match header_type {
        HeaderType::Json => read_json(header, properties)?,
        HeaderType::RocketMq => read_rocketmq(header, properties)?,
        HeaderType::Msgpack => read_msgpack(header, properties)?,
    };
    let request = SendRequest {
        header_type,
        opaque,
        topic: fields.topic?,
        queue_id: fields.queue_id?,
        sys_flag: fields.sys_flag?,
        born_timestamp: fields.born_timestamp?,
        flag: fields.flag?,
        reconsume_times: fields.reconsume_times.unwrap_or(0),
        body,
    };
    if fields.seen & REQUIRED != REQUIRED {
        return None;
    }
    Some((request, length + LENGTH_BYTES))
}

// The letters a to h, as bits of `Fields::seen`.
const REQUIRED: u32 = 0xFF;

/// The ext fields, which have one letter each.
#[derive(Default)]
struct Fields<'a> {
    seen: u32,
    topic: Option<&'a [u8]>,
    queue_id: Option<i32>,
    sys_flag: Option<i32>,
    born_timestamp: Option<i64>,
    flag: Option<i32>,
    reconsume_times: Option<i32>,
}

impl<'a> Fields<'a> {
    /// Notes a field's name; None if there is none of that name, or it was there before.
    fn name(&mut self, key: &[u8]) -> Option<u8> {
        let &[letter @ b'a'..=b'n'] = key else {
            return None;
        };
        let bit = 1 << (letter - b'a');
        if self.seen & bit != 0 {
            return None;
        }
        self.seen |= bit;
        Some(letter)
    }

    /// Sets any field except the properties (i).
    fn set(&mut self, letter: u8, text: &'a [u8]) -> Option<()> {
        match letter {
            b'b' => self.topic = Some(text),
            b'd'..=b'h' | b'j' | b'l' => self.set_number(letter, integer(text)?)?,
            b'k' if text == b"true" || text == b"false" => {}
            // Whether the body is a batch.
            b'm' if text == b"false" => {}
            b'a' | b'c' | b'n' => {}
            _ => return None,
        }
        Some(())
    }

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

fn read_json<'a>(header: &'a [u8], properties: &mut Vec<u8>) -> Option<(i32, Fields<'a>)> {
    let mut reader = Reader::new(header);
    let mut fields = Fields::default();
    let mut opaque = None;
    let mut seen: u32 = 0;
    reader.expect(b"{\"code\":310")?;
    loop {
        match reader.byte()? {
            b',' => {}
            b'}' if reader.is_at_end() => break,
            _ => return None,
        }
        let key = reader.json_text()?;
        reader.expect(b":")?;
        let bit = match key {
            b"extFields" => {
                read_json_fields(&mut reader, &mut fields, properties)?;
                1
            }
            // A response, or a oneway request.
            b"flag" if reader.json_int32()? == 0 => 2,
            b"language" => {
                reader.json_text()?;
                4
            }
            b"opaque" => {
                opaque = Some(reader.json_int32()?);
                8
            }
            b"remark" => {
                reader.json_text()?;
                16
            }
            b"serializeTypeCurrentRPC" => {
                reader.json_text()?;
                32
            }
            b"version" => {
                reader.json_int32()?;
                64
            }
            _ => return None,
        };
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
    }
    Some((opaque?, fields))
}

fn read_json_fields<'a>(
    reader: &mut Reader<'a>,
    fields: &mut Fields<'a>,
    properties: &mut Vec<u8>,
) -> Option<()> {
    reader.expect(b"{")?;
    loop {
        let letter = fields.name(reader.json_text()?)?;
        reader.expect(b":")?;
        if letter == b'i' {
            reader.json_escaped_text(properties)?;
        } else {
            fields.set(letter, reader.json_text()?)?;
        }
        match reader.byte()? {
            b',' => {}
            b'}' => return Some(()),
            _ => return None,
        }
    }
}

fn read_rocketmq<'a>(header: &'a [u8], properties: &mut Vec<u8>) -> Option<(i32, Fields<'a>)> {
    let mut reader = Reader::new(header);
    if reader.int16()? != CODE {
        return None;
    }
    let _language = reader.byte()?;
    let _version = reader.int16()?;
    let opaque = reader.int32()?;
    let flag = reader.int32()?;
    let remark_length = reader.int32()?;
    let ext_length = usize::try_from(reader.int32()?).ok()?;
    if flag != 0 || remark_length != 0 {
        return None;
    }
    let mut reader = Reader::new(reader.take(ext_length).filter(|_| reader.is_at_end())?);
    let mut fields = Fields::default();
    while !reader.is_at_end() {
        let key_length = usize::try_from(reader.int16()?).ok()?;
        let letter = fields.name(reader.take(key_length)?)?;
        let length = usize::try_from(reader.int32()?).ok()?;
        let text = reader.take(length)?;
        // An empty text means that the field is absent.
        if text.is_empty() || !text.is_ascii() {
            return None;
        }
        if letter == b'i' {
            properties.extend_from_slice(text);
        } else {
            fields.set(letter, text)?;
        }
    }
    Some((opaque, fields))
}

const MSGPACK_NIL: u8 = 0xC0;
const MSGPACK_FALSE: u8 = 0xC2;
const MSGPACK_TRUE: u8 = 0xC3;

fn read_msgpack<'a>(header: &'a [u8], properties: &mut Vec<u8>) -> Option<(i32, Fields<'a>)> {
    let mut reader = Reader::new(header);
    // An array of seven elements, and the code.
    reader.expect(b"\x97\xCD\x01\x36")?;
    let _language = i32::try_from(reader.msgpack_integer()?)
        .ok()
        .filter(|&number| number >= 0)?;
    let _version = i32::try_from(reader.msgpack_integer()?)
        .ok()
        .filter(|&number| number >= 0)?;
    let opaque = i32::try_from(reader.msgpack_integer()?).ok()?;
    // Neither a response nor oneway; no remark.
    reader.expect(&[0, MSGPACK_NIL])?;
    let byte @ 0x80..=0x8F = reader.byte()? else {
        return None;
    };
    let mut fields = Fields::default();
    for _ in 0..byte & 0x0F {
        let letter = fields.name(reader.msgpack_text()?)?;
        match letter {
            b'i' => properties.extend_from_slice(reader.msgpack_text()?),
            b'a' | b'b' | b'c' | b'n' => fields.set(letter, reader.msgpack_text()?)?,
            b'k' => match reader.byte()? {
                MSGPACK_FALSE | MSGPACK_TRUE => {}
                _ => return None,
            },
            b'm' => reader.expect(&[MSGPACK_FALSE])?,
            _ => fields.set_number(letter, reader.msgpack_integer()?)?,
        }
    }
    reader.is_at_end().then_some((opaque, fields))
}
