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

/// A response's header, split where its values stood: the log position, the queue id, the queue offset, the
/// transaction id if there is one, and in JSON the opaque.
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
        let is_json = header_type == HeaderType::Json;
        let expected = 4 + usize::from(has_transaction) + usize::from(is_json);
        (pieces.len() == expected && (is_json || pieces[0].len() > EXT_AT)).then_some(Template {
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
        out.extend_from_slice(pieces.next()?);
        write!(out, "{:016X}", stored.physical_offset).ok()?;
        let mut value = Vec::with_capacity(20);
        write!(value, "{}", stored.queue_id).ok()?;
        self.append_value(pieces.next()?, &value, out)?;
        value.clear();
        write!(value, "{}", stored.queue_offset).ok()?;
        self.append_value(pieces.next()?, &value, out)?;
        if let Some(text) = stored.transaction_id {
            self.append_value(pieces.next()?, text, out)?;
        }
        if self.header_type == HeaderType::Json {
            out.extend_from_slice(pieces.next()?);
            write!(out, "{}", stored.opaque).ok()?;
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

    fn append_value(&self, before: &[u8], value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match self.header_type {
            HeaderType::Json => {
                // Python escapes such a text.
                if value
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
                out.extend_from_slice(&u32::try_from(value.len()).ok()?.to_be_bytes());
            }
        }
        out.extend_from_slice(value);
        Some(())
    }
}

fn patch(out: &mut [u8], at: usize, bytes: [u8; 4]) -> Option<()> {
    out.get_mut(at..at + 4)?.copy_from_slice(&bytes);
    Some(())
}
