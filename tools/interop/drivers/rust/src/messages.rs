//! Messages, queues and results, as the library and as the suite describe them.

use std::collections::HashMap;

use cheetah_string::CheetahString;
use rocketmq_client_rust::{ClientResult, SendResult};
use rocketmq_model::common::message::MessageTrait;
use rocketmq_model::common::message::message_client_id_setter::MessageClientIDSetter;
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_queue::MessageQueue;
use rocketmq_model::common::message::message_single::Message;
use serde_json::{Map, Value, json};

use crate::lines::{failure, refusal};

/// Makes the library's message of the suite's.
pub fn message(told: &Value) -> Result<Message, Value> {
    let text = |name: &str| told[name].as_str().unwrap_or_default();
    let mut builder = Message::builder().topic(text("topic")).body_slice(text("body").as_bytes());
    if !text("tags").is_empty() {
        builder = builder.tags(text("tags"));
    }
    if !text("keys").is_empty() {
        builder = builder.keys(text("keys").split(' ').map(str::to_owned).collect());
    }
    if let Some(level) = told["delay_level"].as_i64().filter(|&level| level != 0) {
        builder = builder.delay_level(i32::try_from(level).map_err(refusal)?);
    }
    for (name, value) in told["properties"].as_object().unwrap_or(&Map::new()) {
        let value = value.as_str().unwrap_or_default();
        builder = builder.raw_property(name.as_str(), value).map_err(refusal)?;
    }
    builder.build().map_err(refusal)
}

/// Makes a message with the properties of a delivered one, to reply to.
pub fn request_to_reply_to(delivered: &Value) -> Message {
    let mut made = Message::default();
    for (name, value) in delivered["properties"].as_object().unwrap_or(&Map::new()) {
        made.put_property(name.as_str().into(), value.as_str().unwrap_or_default().into());
    }
    made
}

pub fn queue(told: &Value) -> MessageQueue {
    let text = |name: &str| told[name].as_str().unwrap_or_default();
    let number = told["queue"].as_i64().unwrap_or_default();
    MessageQueue::from_parts(text("topic"), text("broker"), number as i32)
}

pub fn describe_queue(queue: &MessageQueue) -> Value {
    json!({
        "topic": queue.topic().as_str(), "broker": queue.broker_name().as_str(), "queue": queue.queue_id(),
    })
}

pub fn describe_result(result: ClientResult<Option<SendResult>>) -> Value {
    match result {
        Ok(Some(result)) => described(&result),
        Ok(None) => json!({"error": refusal("the library returned no result")}),
        Err(error) => json!({"error": failure(error)}),
    }
}

pub fn described(result: &SendResult) -> Value {
    let queue = result.message_queue.as_ref();
    json!({
        "status": result.send_status,
        "id": result.msg_id.as_ref().map(CheetahString::as_str),
        "offset_id": result.offset_msg_id,
        "broker": queue.map(|queue| queue.broker_name().as_str()),
        "queue": queue.map(MessageQueue::queue_id),
        "offset": result.queue_offset,
        "region": result.region_id,
        "transaction_state": null,
    })
}

pub fn describe_message(message: &MessageExt) -> Value {
    let mut told = describe_reply(message);
    told["broker"] = json!(message.broker_name());
    told["queue"] = json!(message.queue_id());
    told["offset"] = json!(message.queue_offset());
    // The library's msg_id is the offset id, another one for each delivery.
    told["id"] = json!(id(message).as_str());
    told["offset_id"] = json!(message.msg_id().as_str());
    told["reconsume_times"] = json!(message.reconsume_times());
    told["born_ms"] = json!(message.born_timestamp());
    told["store_ms"] = json!(message.store_timestamp());
    told["store_host"] = json!(message.store_host().to_string());
    told["sys_flag"] = json!(message.sys_flag());
    told
}

/// Returns the id that the producer gave the message.
pub fn id(message: &MessageExt) -> CheetahString {
    MessageClientIDSetter::get_uniq_id(message).unwrap_or_else(|| message.msg_id().clone())
}

/// Describes a reply, of which the library returns little.
pub fn describe_reply(message: &dyn MessageTrait) -> Value {
    let body = message.get_body().map(|body| String::from_utf8_lossy(body).into_owned());
    json!({
        "topic": message.topic().as_str(),
        "body": body.unwrap_or_default(),
        "tags": message.tags().map(|tags| tags.to_string()),
        "keys": message.get_keys().map(|keys| keys.to_string()),
        "properties": texts(message.get_properties()),
        "broker": null, "queue": null, "offset": null, "id": null, "offset_id": null,
        "reconsume_times": null, "born_ms": null, "store_ms": null, "store_host": null, "sys_flag": null,
    })
}

fn texts(properties: &HashMap<CheetahString, CheetahString>) -> Value {
    let text = |(name, value): (&CheetahString, &CheetahString)| (name.to_string(), json!(value.as_str()));
    Value::Object(properties.iter().map(text).collect())
}
