//! Takes apart the body of SEND_BATCH_MESSAGE (320), and adds the batch's properties to those of its messages, as
//! `broker/send/batch_sender.py` does.
#![forbid(unsafe_code)]

use crate::properties::{self, SEPARATOR};
use crate::text::Reader;

const NAME_END: u8 = 1;
// Size, magic, body CRC, flag and body length; the length of the properties.
const OVERHEAD: usize = 22;
const UNIQUE_KEY_MARK: &[u8] = b"UNIQ_KEY\x01";
const TAGS_MARK: &[u8] = b"TAGS\x01";
// A message with one of these may be refused.
const REFUSED: [&[u8]; 2] = [b"DELAY\x01", b"TRAN_MSG\x01"];
// One bit for each property of a batch.
const MAX_SHARED: usize = 64;

/// A message as it stands in a batch.
pub struct Message<'a> {
    pub body: &'a [u8],
    pub properties: &'a [u8],
    pub flag: i32,
}

/// Reads the next message; None if its lengths do not add up.
pub fn next_message<'a>(reader: &mut Reader<'a>) -> Option<Message<'a>> {
    let size = usize::try_from(reader.int32()?).ok()?;
    let _magic = reader.int32()?;
    let _crc = reader.int32()?;
    let flag = reader.int32()?;
    let body_length = usize::try_from(reader.int32()?).ok()?;
    let body = reader.take(body_length)?;
    let properties_length = usize::try_from(reader.int16()?).ok()?;
    let properties = reader.take(properties_length)?;
    let is_whole = size == OVERHEAD + body_length + properties_length;
    is_whole.then_some(Message {
        body,
        properties,
        flag,
    })
}

/// The properties that every message of a batch gets, unless it has its own of that name.
pub struct Shared<'a> {
    /// Each with its name, whose end is NAME_END, and the length of the name.
    pairs: Vec<(&'a [u8], usize)>,
    /// The batch's own, if there is one.
    pub unique_key: Option<&'a [u8]>,
    /// The properties of each record end with a separator, as those that the broker adds.
    ends: bool,
}

impl<'a> Shared<'a> {
    /// Parses the batch's own properties, and those that the broker adds.
    ///
    /// None if a name stands twice, a pair is malformed, or the batch may be refused.
    pub fn parse(own: &'a [u8], added: &'a [u8]) -> Option<Self> {
        let mut pairs: Vec<(&[u8], usize)> = Vec::new();
        let mut unique_key = None;
        let is_given = |piece: &&[u8]| !piece.is_empty();
        let texts = own.split(|&byte| byte == SEPARATOR).filter(is_given);
        let more = added.split(|&byte| byte == SEPARATOR).filter(is_given);
        for piece in texts.chain(more) {
            let name_length = piece.iter().position(|&byte| byte == NAME_END)? + 1;
            let (name, value) = piece.split_at_checked(name_length)?;
            let is_known = pairs.iter().any(|&(pair, length)| &pair[..length] == name);
            if name_length == 1
                || value.is_empty()
                || value.contains(&NAME_END)
                || is_known
                || REFUSED.contains(&name)
                || pairs.len() == MAX_SHARED
            {
                return None;
            }
            if name == UNIQUE_KEY_MARK {
                unique_key = Some(value);
            }
            pairs.push((piece, name_length));
        }
        Some(Shared {
            pairs,
            unique_key,
            ends: added.last() == Some(&SEPARATOR),
        })
    }

    /// Appends the properties to store to `out`; returns the tagsCode.
    ///
    /// None if the message may be refused, or is not in ASCII.
    pub fn append_stored(&self, text: &[u8], out: &mut Vec<u8>) -> Option<i64> {
        if !text.is_ascii() || text.contains(&0) {
            return None;
        }
        let start = out.len();
        let mut owned: u64 = 0;
        let mut tags: &[u8] = b"";
        for piece in text.split(|&byte| byte == SEPARATOR) {
            if REFUSED.iter().any(|mark| piece.starts_with(mark)) {
                return None;
            }
            if let Some(value) = piece.strip_prefix(TAGS_MARK) {
                tags = value;
            }
            for (index, &(pair, length)) in self.pairs.iter().enumerate() {
                if piece.starts_with(&pair[..length]) {
                    owned |= 1 << index;
                }
            }
        }
        out.extend_from_slice(text);
        for (index, (pair, _)) in self.pairs.iter().enumerate() {
            if owned >> index & 1 == 0 {
                if out.len() > start && out.last() != Some(&SEPARATOR) {
                    out.push(SEPARATOR);
                }
                out.extend_from_slice(pair);
            }
        }
        if self.ends && out.len() > start && out.last() != Some(&SEPARATOR) {
            out.push(SEPARATOR);
        }
        (out.len() - start <= properties::MAX_BYTES).then(|| properties::hash_of(tags))
    }
}
