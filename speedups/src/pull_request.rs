//! Reads PULL_MESSAGE (11) as clients write it; every other frame is left to Python.
#![forbid(unsafe_code)]

use crate::frame::{Fields, Frame, HeaderType};
use crate::text::{integer, Reader};

const CODE: i32 = 11;
const CONSUMER_GROUP: u8 = 0;
const TOPIC: u8 = 1;
const SUBSCRIPTION: u8 = 9;
const EXPRESSION_TYPE: u8 = 10;
const MAX_MSG_BYTES: u8 = 11;
const REQUEST_SOURCE: u8 = 12;
/// The ext fields by number. A field behind REQUEST_SOURCE is not used.
const NAMES: [&[u8]; 15] = [
    b"consumerGroup",
    b"topic",
    b"queueId",
    b"queueOffset",
    b"maxMsgNums",
    b"sysFlag",
    b"commitOffset",
    b"suspendTimeoutMillis",
    b"subVersion",
    b"subscription",
    b"expressionType",
    b"maxMsgBytes",
    b"requestSource",
    b"bname",
    b"ReqT",
];
// All fields before the subscription.
const REQUIRED: u32 = (1 << SUBSCRIPTION) - 1;

/// A request of which every field has its usual form.
pub struct PullRequest<'a> {
    pub header_type: HeaderType,
    pub opaque: i32,
    pub consumer_group: &'a str,
    pub topic: &'a str,
    pub queue_id: i32,
    pub queue_offset: i64,
    pub max_msg_nums: i32,
    pub sys_flag: i32,
    pub commit_offset: i64,
    pub suspend_timeout_millis: i64,
    pub sub_version: i64,
    pub subscription: Option<&'a str>,
    pub expression_type: Option<&'a str>,
}

/// Reads the first frame of `data`; returns it with its length in bytes.
///
/// None if the frame is incomplete, another request or not plain.
pub fn read_pull(data: &[u8]) -> Option<(PullRequest<'_>, usize)> {
    let frame = Frame::read(data)?;
    if frame.code != CODE || !frame.body.is_empty() {
        return None;
    }
    let mut fields = PullFields::default();
    let opaque = frame.read_fields(&mut fields)?;
    if fields.seen & REQUIRED != REQUIRED {
        return None;
    }
    let int32 = |number: u8| i32::try_from(fields.numbers[usize::from(number)]).ok();
    let request = PullRequest {
        header_type: frame.header_type,
        opaque,
        consumer_group: fields.texts[0]?,
        topic: fields.texts[1]?,
        queue_id: int32(2)?,
        queue_offset: fields.numbers[3],
        max_msg_nums: int32(4)?,
        sys_flag: int32(5)?,
        commit_offset: fields.numbers[6],
        suspend_timeout_millis: fields.numbers[7],
        sub_version: fields.numbers[8],
        subscription: fields.texts[2],
        expression_type: fields.texts[3],
    };
    int32(MAX_MSG_BYTES)?;
    int32(REQUEST_SOURCE)?;
    Some((request, frame.length))
}

#[derive(Default)]
struct PullFields<'a> {
    seen: u32,
    /// The group, the topic, the subscription and its type.
    texts: [Option<&'a str>; 4],
    /// By the number of the field.
    numbers: [i64; REQUEST_SOURCE as usize + 1],
}

impl<'a> PullFields<'a> {
    fn set_used_text(&mut self, field: u8, text: &'a [u8]) -> Option<()> {
        let place = match field {
            CONSUMER_GROUP => 0,
            TOPIC => 1,
            // Python's decoder may take this text for an absent field.
            _ if text.eq_ignore_ascii_case(b"null") => return None,
            SUBSCRIPTION => 2,
            _ => 3,
        };
        self.texts[place] = Some(std::str::from_utf8(text).ok()?);
        Some(())
    }
}

impl<'a> Fields<'a> for PullFields<'a> {
    fn note(&mut self, name: &[u8]) -> Option<u8> {
        let field = NAMES.iter().position(|&known| known == name)?;
        let bit = 1 << field;
        if self.seen & bit != 0 {
            return None;
        }
        self.seen |= bit;
        u8::try_from(field).ok()
    }

    fn set_text(&mut self, field: u8, text: &'a [u8]) -> Option<()> {
        match field {
            CONSUMER_GROUP | TOPIC | SUBSCRIPTION | EXPRESSION_TYPE => {
                self.set_used_text(field, text)
            }
            ..=REQUEST_SOURCE => {
                *self.numbers.get_mut(usize::from(field))? = integer(text)?;
                Some(())
            }
            _ => Some(()),
        }
    }

    fn read_msgpack(&mut self, field: u8, reader: &mut Reader<'a>) -> Option<()> {
        match field {
            CONSUMER_GROUP | TOPIC | SUBSCRIPTION | EXPRESSION_TYPE => {
                self.set_used_text(field, reader.msgpack_text()?)
            }
            ..=REQUEST_SOURCE => {
                *self.numbers.get_mut(usize::from(field))? = reader.msgpack_integer()?;
                Some(())
            }
            _ => reader.msgpack_text().map(|_| ()),
        }
    }
}
