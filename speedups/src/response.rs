//! Writes the responses to sends from templates, which Python makes with its own encoder.
#![forbid(unsafe_code)]

use std::io::Write;

use crate::request::HeaderType;

// Positions in a header of type ROCKETMQ, and the length in front of a text there.
const OPAQUE_AT: usize = 5;
const EXT_LENGTH_AT: usize = 17;
const EXT_AT: usize = 21;
const TEXT_LENGTH_BYTES: usize = 4;

/// What differs between the responses of a broker.
pub struct Stored<'a> {
    pub opaque: i32,
    pub physical_offset: i64,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub transaction_id: Option<&'a [u8]>,
}

/// A response's header, split where its values stood: in msgpack the opaque; the log position, the queue id,
/// the queue offset, the transaction id if there is one; and in JSON the opaque.
pub struct Template {
    header_type: HeaderType,
    pieces: Vec<Vec<u8>>,
}

impl Template {
    /// None if the number of pieces does not fit to the values.
    pub fn new(
        header_type: HeaderType,
        pieces: Vec<Vec<u8>>,
        has_transaction: bool,
    ) -> Option<Self> {
        let is_binary = header_type == HeaderType::RocketMq;
        let expected = 4 + usize::from(has_transaction) + usize::from(!is_binary);
        let is_whole = pieces.len() == expected && (!is_binary || pieces[0].len() > EXT_AT);
        is_whole.then_some(Template {
            header_type,
            pieces,
        })
    }

    /// Appends the whole frame to `out`. None if it cannot be written; `out` may then have a part of it.
    pub fn append(&self, stored: &Stored, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        let header_at = out.len();
        let mut pieces = self.pieces.iter();
        if self.header_type == HeaderType::Msgpack {
            self.append_number(pieces.next()?, stored.opaque.into(), out)?;
        }
        out.extend_from_slice(pieces.next()?);
        write!(out, "{:016X}", stored.physical_offset).ok()?;
        self.append_number(pieces.next()?, stored.queue_id.into(), out)?;
        self.append_number(pieces.next()?, stored.queue_offset, out)?;
        if let Some(text) = stored.transaction_id {
            self.append_text(pieces.next()?, text, out)?;
        }
        if self.header_type == HeaderType::Json {
            self.append_number(pieces.next()?, stored.opaque.into(), out)?;
        }
        out.extend_from_slice(pieces.next()?);
        let header_length = u32::try_from(out.len() - header_at).ok()?;
        if self.header_type == HeaderType::RocketMq {
            let ext_length = u32::try_from(out.len() - header_at - EXT_AT).ok()?;
            patch(out, header_at + OPAQUE_AT, stored.opaque.to_be_bytes())?;
            patch(out, header_at + EXT_LENGTH_AT, ext_length.to_be_bytes())?;
        }
        patch(out, start, (header_length + 4).to_be_bytes())?;
        let word = (self.header_type as u32) << 24 | header_length;
        patch(out, start + 4, word.to_be_bytes())
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
                let length_at = before.len().checked_sub(TEXT_LENGTH_BYTES)?;
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
