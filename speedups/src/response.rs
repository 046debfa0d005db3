//! Writes responses from templates, which Python makes with its own encoder.
#![forbid(unsafe_code)]

use std::io::Write;

use crate::frame::HeaderType;

// Positions in a header of type ROCKETMQ; the remark, its length in front, is behind the flag.
const OPAQUE_AT: usize = 5;
const REMARK_LENGTH_AT: usize = 13;
const REMARK_AT: usize = 17;
const LENGTH_BYTES: usize = 4;
const PREFIX_BYTES: usize = 8;

/// What stands between two pieces of a template.
pub enum Value<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// A response's header, split where its values stood: in msgpack the opaque, then the values, and in JSON the
/// opaque.
pub struct Template {
    header_type: HeaderType,
    pieces: Vec<Vec<u8>>,
    /// In a header of type ROCKETMQ: where the ext fields begin.
    ext_at: usize,
}

impl Template {
    /// None if the number of pieces does not fit to that of the values.
    pub fn new(header_type: HeaderType, pieces: Vec<Vec<u8>>, values: usize) -> Option<Self> {
        let is_binary = header_type == HeaderType::RocketMq;
        let mut ext_at = 0;
        if is_binary {
            let length = pieces.first()?.get(REMARK_LENGTH_AT..REMARK_AT)?;
            let remark_length = u32::from_be_bytes(length.try_into().ok()?) as usize;
            ext_at = REMARK_AT + remark_length + LENGTH_BYTES;
            if pieces.first()?.len() <= ext_at {
                return None;
            }
        }
        let expected = values + 1 + usize::from(!is_binary);
        (pieces.len() == expected).then_some(Template {
            header_type,
            pieces,
            ext_at,
        })
    }

    /// Appends the frame's length and header to `out`.
    ///
    /// None if they cannot be written; `out` may then have a part of them.
    pub fn append(
        &self,
        opaque: i32,
        values: &[Value],
        body_length: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        let header_at = out.len();
        let mut pieces = self.pieces.iter();
        if self.header_type == HeaderType::Msgpack {
            self.append_number(pieces.next()?, opaque.into(), out)?;
        }
        for value in values {
            match *value {
                Value::Number(number) => self.append_number(pieces.next()?, number, out)?,
                Value::Text(text) => self.append_text(pieces.next()?, text, out)?,
            }
        }
        if self.header_type == HeaderType::Json {
            self.append_number(pieces.next()?, opaque.into(), out)?;
        }
        out.extend_from_slice(pieces.next()?);
        let header_length = u32::try_from(out.len() - header_at).ok()?;
        if header_length > 0xFF_FFFF || pieces.next().is_some() {
            return None;
        }
        if self.header_type == HeaderType::RocketMq {
            let ext_length = u32::try_from(out.len() - header_at - self.ext_at).ok()?;
            patch(out, header_at + OPAQUE_AT, opaque.to_be_bytes())?;
            let at = header_at + self.ext_at - LENGTH_BYTES;
            patch(out, at, ext_length.to_be_bytes())?;
        }
        let length = u32::try_from(body_length + LENGTH_BYTES).ok()? + header_length;
        patch(out, start, length.to_be_bytes())?;
        let word = (self.header_type as u32) << 24 | header_length;
        patch(out, start + LENGTH_BYTES, word.to_be_bytes())
    }

    fn append_number(&self, before: &[u8], number: i64, out: &mut Vec<u8>) -> Option<()> {
        match self.header_type {
            HeaderType::Json => {
                out.extend_from_slice(before);
                write!(out, "{number}").ok()
            }
            HeaderType::RocketMq => self.append_text(before, number.to_string().as_bytes(), out),
            HeaderType::Msgpack => {
                out.extend_from_slice(before);
                append_msgpack_integer(number, out);
                Some(())
            }
        }
    }

    /// Appends a text; its length replaces that of the sample, with which `before` ends.
    fn append_text(&self, before: &[u8], text: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match self.header_type {
            HeaderType::Json => {
                // Python escapes such a text.
                if text
                    .iter()
                    .any(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F))
                {
                    return None;
                }
                out.extend_from_slice(before);
            }
            HeaderType::RocketMq => {
                let length_at = before.len().checked_sub(LENGTH_BYTES)?;
                out.extend_from_slice(before.get(..length_at)?);
                out.extend_from_slice(&u32::try_from(text.len()).ok()?.to_be_bytes());
            }
            HeaderType::Msgpack => {
                out.extend_from_slice(before.split_last()?.1);
                match text.len() {
                    // The sample has such a length, too: one byte.
                    length @ 0..=0x1F => out.push(0xA0 | length as u8),
                    length @ ..=0xFF => out.extend_from_slice(&[0xD9, length as u8]),
                    length => {
                        out.push(0xDA);
                        out.extend_from_slice(&u16::try_from(length).ok()?.to_be_bytes());
                    }
                }
            }
        }
        out.extend_from_slice(text);
        Some(())
    }
}

/// Appends an integer in its shortest form.
fn append_msgpack_integer(number: i64, out: &mut Vec<u8>) {
    match number {
        0..=0x7F => out.push(number as u8),
        0x80..=0xFF => out.extend_from_slice(&[0xCC, number as u8]),
        0x100..=0xFFFF => {
            out.push(0xCD);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..=0xFFFF_FFFF => {
            out.push(0xCE);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xCF);
            out.extend_from_slice(&number.to_be_bytes());
        }
        -0x20..=-1 => out.push(number as u8),
        -0x80..=-0x21 => out.extend_from_slice(&[0xD0, number as u8]),
        -0x8000..=-0x81 => {
            out.push(0xD1);
            out.extend_from_slice(&(number as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xD2);
            out.extend_from_slice(&(number as i32).to_be_bytes());
        }
        _ => {
            out.push(0xD3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn patch(out: &mut [u8], at: usize, bytes: [u8; 4]) -> Option<()> {
    out.get_mut(at..at + 4)?.copy_from_slice(&bytes);
    Some(())
}
