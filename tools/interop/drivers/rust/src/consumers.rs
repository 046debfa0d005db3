//! The push consumers.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};

use rocketmq_client_rust::{
    ClientResult, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeOrderlyContext, ConsumeOrderlyStatus,
    DefaultMQPushConsumer, MQPushConsumer, MessageListenerConcurrently, MessageListenerOrderly, MessageSelector,
};
use rocketmq_model::common::message::message_ext::MessageExt;
use serde_json::json;
use tokio::sync::Mutex as AsyncMutex;

use crate::lines::{Answer, Registry, Request, failure, locked, say};
use crate::messages::{describe_message, id};
use crate::setup::{Setup, from_where, message_model};

type Consumer = (Arc<AsyncMutex<DefaultMQPushConsumer>>, Arc<Listening>);

pub struct Consumers {
    setup: Arc<Setup>,
    started: Registry<Consumer>,
}

impl Consumers {
    pub const OPS: [&str; 4] = ["consume.concurrent", "consume.orderly", "consume.release", "consume.stop"];

    pub fn new(setup: Arc<Setup>) -> Self {
        Self { setup, started: Registry::new() }
    }

    pub async fn answer(&self, request: &Request) -> Answer {
        let name = request.text("consumer");
        match request.text("op") {
            "consume.release" => self.started.find(name)?.1.release(),
            "consume.stop" => stop(self.started.take(name)?).await,
            _ => return self.start(request).await,
        }
        Ok(json!({}))
    }

    async fn start(&self, request: &Request) -> Answer {
        let listening = Arc::new(Listening::new(request));
        let mut consumer = self.made(request);
        let (topic, expression) = (request.text("topic"), request.text("expression"));
        if request.text("expression_type") == "SQL92" {
            let selector = MessageSelector::by_sql(expression);
            consumer.subscribe_with_selector(topic, Some(selector)).await.map_err(failure)?;
        } else {
            consumer.subscribe(topic, expression).await.map_err(failure)?;
        }
        let listener = Listener(Arc::clone(&listening));
        if request.text("op") == "consume.orderly" {
            consumer.register_message_listener_orderly(listener);
        } else {
            consumer.register_message_listener_concurrently(listener);
        }
        let consumer = Arc::new(AsyncMutex::new(consumer));
        // Registered before the start: a first message may block, and be released, while it still starts.
        self.started.add(request.text("name"), (Arc::clone(&consumer), listening));
        consumer.lock().await.start().await.map_err(failure)?;
        Ok(json!({}))
    }

    fn made(&self, request: &Request) -> DefaultMQPushConsumer {
        let mut builder = DefaultMQPushConsumer::builder(self.setup.runtime())
            .client_config(self.setup.client(request))
            .consumer_group(request.text("group"))
            .consume_from_where(from_where(request))
            .message_model(message_model(request));
        if let Some(times) = request.number("max_reconsume_times") {
            builder = builder.max_reconsume_times(times as i32);
        }
        if let Some(threads) = request.number("threads") {
            builder = builder.consume_thread_min(threads as u32).consume_thread_max(threads as u32);
        }
        builder.build()
    }

    pub async fn shutdown(&self) {
        for consumer in self.started.take_all() {
            stop(consumer).await;
        }
    }
}

async fn stop((library, listening): Consumer) {
    listening.release();
    library.lock().await.shutdown().await;
}

/// What the suite wants of a consumer's listener.
struct Listening {
    consumer: String,
    fail_times: i64,
    /// How often each message was delivered, by its id.
    calls: Mutex<HashMap<String, i64>>,
    is_held: Mutex<bool>,
    released: Condvar,
}

impl Listening {
    fn new(request: &Request) -> Self {
        Self {
            consumer: request.text("name").to_owned(),
            fail_times: request.number("fail_times").unwrap_or(0),
            calls: Mutex::default(),
            is_held: Mutex::new(request.is_set("hold")),
            released: Condvar::new(),
        }
    }

    fn release(&self) {
        *locked(&self.is_held) = false;
        self.released.notify_all();
    }

    /// Reports the call to the suite; returns whether the listener succeeds.
    fn consume(&self, messages: &[&MessageExt]) -> bool {
        let told: Vec<_> = messages.iter().map(|message| describe_message(message)).collect();
        say(&json!({"event": "delivered", "consumer": self.consumer, "messages": told}));
        let held = locked(&self.is_held);
        drop(self.released.wait_while(held, |is_held| *is_held));
        let mut calls = locked(&self.calls);
        let mut is_fine = true;
        for message in messages {
            let times = calls.entry(id(message).to_string()).or_default();
            *times += 1;
            is_fine &= *times > self.fail_times;
        }
        is_fine
    }
}

struct Listener(Arc<Listening>);

impl MessageListenerConcurrently for Listener {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        _: &ConsumeConcurrentlyContext,
    ) -> ClientResult<ConsumeConcurrentlyStatus> {
        Ok(if self.0.consume(messages) {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        } else {
            ConsumeConcurrentlyStatus::ReconsumeLater
        })
    }
}

impl MessageListenerOrderly for Listener {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        _: &mut ConsumeOrderlyContext,
    ) -> ClientResult<ConsumeOrderlyStatus> {
        Ok(if self.0.consume(messages) {
            ConsumeOrderlyStatus::Success
        } else {
            ConsumeOrderlyStatus::SuspendCurrentQueueAMoment
        })
    }
}
