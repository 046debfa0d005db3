//! Splits a read into frames, and reads the part of their headers that all requests share.
#![forbid(unsafe_code)]

use crate::text::Reader;

const PREFIX_BYTES: usize = 8;
const LENGTH_BYTES: usize = 4;
// Below the limits of the decoder in Python, which decides about larger frames.
const MAX_HEADER_BYTES: usize = 65_536;
const MAX_BODY_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HeaderType {
    Json = 0,
    RocketMq = 1,
    Msgpack = 2,
}

/// A whole frame, of which only the request code has been read.
pub struct Frame<'a> {
    pub header_type: HeaderType,
    pub code: i32,
    pub body: &'a [u8],
    /// Of the frame, in bytes.
    pub length: usize,
    /// The header behind the request code.
    rest: Reader<'a>,
}

/// The ext fields of one kind of request. Every method returns None where a field is not plain.
pub trait Fields<'a> {
    /// Notes a field's name and returns its number; None if it is unknown, or was there before.
    fn note(&mut self, name: &[u8]) -> Option<u8>;

    /// Sets a field from its text, which is in ASCII.
    fn set_text(&mut self, field: u8, text: &'a [u8]) -> Option<()>;

    /// Reads a field's value in JSON.
    fn read_json(&mut self, field: u8, reader: &mut Reader<'a>) -> Option<()> {
        self.set_text(field, reader.json_text()?)
    }

    /// Reads a field's value in msgpack.
    fn read_msgpack(&mut self, field: u8, reader: &mut Reader<'a>) -> Option<()>;
}

impl<'a> Frame<'a> {
    /// Reads the first frame of `data`; None if it is incomplete, or its header begins in an unusual form.
    pub fn read(data: &'a [u8]) -> Option<Self> {
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
        let mut frame = Reader::new(data.get(PREFIX_BYTES..)?);
        let mut rest = Reader::new(frame.take(header_length)?);
        let body = frame.take(body_length)?;
        let code = match header_type {
            HeaderType::Json => {
                rest.expect(b"{\"code\":")?;
                rest.json_int32()?
            }
            HeaderType::RocketMq => i32::from(rest.int16()?),
            HeaderType::Msgpack => {
                // An array of seven elements.
                rest.expect(b"\x97")?;
                i32::try_from(rest.msgpack_integer()?).ok()?
            }
        };
        Some(Frame {
            header_type,
            code,
            body,
            length: length + LENGTH_BYTES,
            rest,
        })
    }

    /// Reads the rest of the header; returns the opaque.
    pub fn read_fields(&self, fields: &mut impl Fields<'a>) -> Option<i32> {
        match self.header_type {
            HeaderType::Json => read_json(self.rest.clone(), fields),
            HeaderType::RocketMq => read_rocketmq(self.rest.clone(), fields),
            HeaderType::Msgpack => read_msgpack(self.rest.clone(), fields),
        }
    }
}

fn read_json<'a>(mut reader: Reader<'a>, fields: &mut impl Fields<'a>) -> Option<i32> {
    let mut opaque = None;
    let mut seen: u32 = 0;
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
                read_json_fields(&mut reader, fields)?;
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
    opaque
}

fn read_json_fields<'a>(reader: &mut Reader<'a>, fields: &mut impl Fields<'a>) -> Option<()> {
    reader.expect(b"{")?;
    loop {
        let field = fields.note(reader.json_text()?)?;
        reader.expect(b":")?;
        fields.read_json(field, reader)?;
        match reader.byte()? {
            b',' => {}
            b'}' => return Some(()),
            _ => return None,
        }
    }
}

fn read_rocketmq<'a>(mut reader: Reader<'a>, fields: &mut impl Fields<'a>) -> Option<i32> {
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
    while !reader.is_at_end() {
        let name_length = usize::try_from(reader.int16()?).ok()?;
        let field = fields.note(reader.take(name_length)?)?;
        let length = usize::try_from(reader.int32()?).ok()?;
        let text = reader.take(length)?;
        // An empty text means that the field is absent.
        if text.is_empty() || !text.is_ascii() {
            return None;
        }
        fields.set_text(field, text)?;
    }
    Some(opaque)
}

const MSGPACK_NIL: u8 = 0xC0;

fn read_msgpack<'a>(mut reader: Reader<'a>, fields: &mut impl Fields<'a>) -> Option<i32> {
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
    for _ in 0..byte & 0x0F {
        let field = fields.note(reader.msgpack_text()?)?;
        fields.read_msgpack(field, &mut reader)?;
    }
    reader.is_at_end().then_some(opaque)
}
