//! Writes records of the commit log and entries of consume queues (docs/spec/store.md 3 and 4).
#![forbid(unsafe_code)]

const MAGIC_V1: u32 = 0xDAA3_20A7;
const CRC_MASK: u32 = 0x7FFF_FFFF;
pub const BORN_HOST_V6: i32 = 1 << 4;
pub const STORE_HOST_V6: i32 = 1 << 5;
const HOST_FLAGS: i32 = BORN_HOST_V6 | STORE_HOST_V6;
const V6_HOST_BYTES: usize = 20;
const SIZE_BYTES: usize = 4;

/// Where and when a record is stored.
pub struct Place<'a> {
    pub queue_offset: i64,
    pub physical_offset: i64,
    pub timestamp: i64,
    pub born_host: &'a [u8],
    pub store_host: &'a [u8],
    /// The topic as records have it: a length byte, and the name.
    pub topic_field: &'a [u8],
    pub extra_sys_flag: i32,
}

/// A message to store.
pub struct Message<'a> {
    pub queue_id: i32,
    pub sys_flag: i32,
    pub born_timestamp: i64,
    pub flag: i32,
    pub reconsume_times: i32,
    pub body: &'a [u8],
    pub properties: &'a [u8],
}

/// Appends a record to `out` and returns its size.
///
/// None if a length does not fit into its field; `out` may then have a part of the record.
pub fn append(message: &Message, place: &Place, out: &mut Vec<u8>) -> Option<i32> {
    let start = out.len();
    let mut sys_flag = (message.sys_flag | place.extra_sys_flag) & !HOST_FLAGS;
    if place.born_host.len() == V6_HOST_BYTES {
        sys_flag |= BORN_HOST_V6;
    }
    if place.store_host.len() == V6_HOST_BYTES {
        sys_flag |= STORE_HOST_V6;
    }
    // The size follows below.
    out.extend_from_slice(&[0; SIZE_BYTES]);
    out.extend_from_slice(&MAGIC_V1.to_be_bytes());
    out.extend_from_slice(&(crc32fast::hash(message.body) & CRC_MASK).to_be_bytes());
    out.extend_from_slice(&message.queue_id.to_be_bytes());
    out.extend_from_slice(&message.flag.to_be_bytes());
    out.extend_from_slice(&place.queue_offset.to_be_bytes());
    out.extend_from_slice(&place.physical_offset.to_be_bytes());
    out.extend_from_slice(&sys_flag.to_be_bytes());
    out.extend_from_slice(&message.born_timestamp.to_be_bytes());
    out.extend_from_slice(place.born_host);
    out.extend_from_slice(&place.timestamp.to_be_bytes());
    out.extend_from_slice(place.store_host);
    out.extend_from_slice(&message.reconsume_times.to_be_bytes());
    // The log position of a half message: none.
    out.extend_from_slice(&0_i64.to_be_bytes());
    out.extend_from_slice(&i32::try_from(message.body.len()).ok()?.to_be_bytes());
    out.extend_from_slice(message.body);
    out.extend_from_slice(place.topic_field);
    out.extend_from_slice(&u16::try_from(message.properties.len()).ok()?.to_be_bytes());
    out.extend_from_slice(message.properties);
    let size = i32::try_from(out.len() - start).ok()?;
    out.get_mut(start..start + SIZE_BYTES)?
        .copy_from_slice(&size.to_be_bytes());
    Some(size)
}

pub fn append_entry(physical_offset: i64, size: i32, tags_code: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&physical_offset.to_be_bytes());
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(&tags_code.to_be_bytes());
}
