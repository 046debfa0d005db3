//! The properties text of a message, as `broker/send/sender.py` changes it before it is stored.
#![forbid(unsafe_code)]

use memchr::memmem;

pub const MAX_BYTES: usize = 32_767;
pub const SEPARATOR: u8 = 2;
const WAIT_TRUE: &[u8] = b"\x02WAIT\x01true";
const WAIT_TRUE_INSIDE: &[u8] = b"\x02WAIT\x01true\x02";
const WAIT_MARK: &[u8] = b"WAIT\x01";
const TAGS_MARK: &[u8] = b"TAGS\x01";
const UNIQUE_KEY_MARK: &[u8] = b"UNIQ_KEY\x01";
// Messages with these are not stored where they were sent, or refused.
const SPECIAL: [&[u8]; 3] = [b"DELAY\x01", b"TRAN_MSG\x01", b"TIMER_DE"];

/// Appends the text to store, with the `added` properties, to `out`; returns the tagsCode.
///
/// None if the message is special, or WAIT is not as clients write it.
pub fn append_stored(
    text: &[u8],
    added: &[u8],
    keeps_wait: bool,
    out: &mut Vec<u8>,
) -> Option<i64> {
    if memchr::memchr(0, text).is_some() || SPECIAL.iter().any(|mark| contains(text, mark)) {
        return None;
    }
    let start = out.len();
    if keeps_wait {
        out.extend_from_slice(text);
    } else {
        append_without_wait(text, out)?;
    }
    let tags_code = tags_code(out.get(start..)?);
    if out.len() > start && out.last() != Some(&SEPARATOR) {
        out.push(SEPARATOR);
    }
    out.extend_from_slice(added);
    (out.len() - start <= MAX_BYTES).then_some(tags_code)
}

fn append_without_wait(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    if let Some(kept) = text.strip_suffix(WAIT_TRUE) {
        out.extend_from_slice(kept);
    } else if let Some(at) = memmem::find(text, WAIT_TRUE_INSIDE) {
        out.extend_from_slice(text.get(..at)?);
        out.extend_from_slice(text.get(at + WAIT_TRUE.len()..)?);
    } else {
        out.extend_from_slice(text);
    }
    (!contains(out.get(start..)?, WAIT_MARK)).then_some(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

/// The last value of UNIQ_KEY that is not empty.
pub fn unique_key(text: &[u8]) -> Option<&[u8]> {
    values(text, UNIQUE_KEY_MARK)
        .filter(|value| !value.is_empty())
        .last()
}

/// Java's hash of the last TAGS in an ASCII text, 0 without one.
fn tags_code(text: &[u8]) -> i64 {
    hash_of(values(text, TAGS_MARK).last().unwrap_or_default())
}

/// Java's hash of an ASCII text.
pub fn hash_of(text: &[u8]) -> i64 {
    let hash = text.iter().fold(0_i32, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte))
    });
    i64::from(hash)
}

fn values<'a>(text: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    text.split(|&byte| byte == SEPARATOR)
        .filter_map(move |piece| piece.strip_prefix(mark))
}
