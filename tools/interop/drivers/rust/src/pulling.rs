//! Lite pull and pull consumers.

// The library keeps its pull consumer, and recommends the other one for new programs.
#![allow(deprecated)]

use std::sync::Arc;
use std::time::Duration;

use rocketmq_client_rust::{DefaultLitePullConsumer, DefaultMQPullConsumer, MessageSelector, PullOptions, PullStatus};
use serde_json::{Value, json};

use crate::lines::{Answer, Registry, Request, failure};
use crate::messages::{describe_message, describe_queue, queue};
use crate::setup::{PATIENT_MS, Setup, from_where};

pub struct LiteConsumers {
    setup: Arc<Setup>,
    started: Registry<Arc<DefaultLitePullConsumer>>,
}

impl LiteConsumers {
    pub const OPS: [&str; 4] = ["lite.start", "lite.poll", "lite.commit", "lite.stop"];

    pub fn new(setup: Arc<Setup>) -> Self {
        Self { setup, started: Registry::new() }
    }

    pub async fn answer(&self, request: &Request) -> Answer {
        let name = request.text("consumer");
        match request.text("op") {
            "lite.start" => self.start(request).await,
            "lite.poll" => {
                let timeout = request.number("timeout_ms").unwrap_or(0) as u64;
                let polled = self.started.find(name)?.poll_with_timeout(timeout).await;
                let messages: Vec<_> = polled.iter().map(describe_message).collect();
                Ok(json!({"messages": messages}))
            }
            "lite.commit" => {
                self.started.find(name)?.commit_all().await.map_err(failure)?;
                Ok(json!({}))
            }
            _ => {
                self.started.take(name)?.shutdown().await;
                Ok(json!({}))
            }
        }
    }

    async fn start(&self, request: &Request) -> Answer {
        let consumer = DefaultLitePullConsumer::builder(self.setup.runtime())
            .client_options(self.setup.options(request))
            .consumer_group(request.text("group"))
            .consume_from_where(from_where(request))
            .auto_commit(false)
            .build()
            .map_err(failure)?;
        let (topic, expression) = (request.text("topic"), request.text("expression"));
        consumer.subscribe_with_expression(topic, expression).await.map_err(failure)?;
        consumer.start().await.map_err(failure)?;
        self.started.add(request.text("name"), Arc::new(consumer));
        Ok(json!({}))
    }

    pub async fn shutdown(&self) {
        for consumer in self.started.take_all() {
            consumer.shutdown().await;
        }
    }
}

/// The pull consumers. They have no `pull.commit`: the library stores an offset in memory, and only its timer
/// sends it to the broker.
pub struct PullConsumers {
    setup: Arc<Setup>,
    started: Registry<Arc<DefaultMQPullConsumer>>,
}

impl PullConsumers {
    pub const OPS: [&str; 6] =
        ["pull.start", "pull.queues", "pull.offsets", "pull.pull", "pull.committed", "pull.stop"];

    pub fn new(setup: Arc<Setup>) -> Self {
        Self { setup, started: Registry::new() }
    }

    pub async fn answer(&self, request: &Request) -> Answer {
        let name = request.text("consumer");
        match request.text("op") {
            "pull.start" => self.start(request).await,
            "pull.queues" => {
                let found = self.started.find(name)?;
                let mut queues = found.fetch_subscribe_message_queues(request.text("topic")).await.map_err(failure)?;
                queues.sort_by_key(|queue| queue.queue_id());
                Ok(json!({"queues": queues.iter().map(describe_queue).collect::<Vec<_>>()}))
            }
            "pull.offsets" => offsets(&*self.started.find(name)?, request).await,
            "pull.pull" => pull(&*self.started.find(name)?, request).await,
            "pull.committed" => {
                let queue = queue(&request.0["queue"]);
                let offset = self.started.find(name)?.fetch_consume_offset(&queue, true).await;
                Ok(json!({"offset": offset.map_err(failure)?}))
            }
            _ => {
                self.started.take(name)?.shutdown().await.map_err(failure)?;
                Ok(json!({}))
            }
        }
    }

    async fn start(&self, request: &Request) -> Answer {
        let consumer = DefaultMQPullConsumer::builder(self.setup.runtime())
            .client_options(self.setup.options(request))
            .consumer_group(request.text("group"))
            .consumer_pull_timeout(Duration::from_millis(u64::from(PATIENT_MS)))
            .build()
            .map_err(failure)?;
        consumer.start().await.map_err(failure)?;
        self.started.add(request.text("name"), Arc::new(consumer));
        Ok(json!({}))
    }

    pub async fn shutdown(&self) {
        for consumer in self.started.take_all() {
            let _ = consumer.shutdown().await;
        }
    }
}

async fn offsets(consumer: &DefaultMQPullConsumer, request: &Request) -> Answer {
    let queue = queue(&request.0["queue"]);
    let mut told = json!({
        "min": consumer.min_offset(&queue).await.map_err(failure)?,
        "max": consumer.max_offset(&queue).await.map_err(failure)?,
    });
    if let Some(timestamp) = request.number("timestamp") {
        let searched = consumer.search_offset(&queue, timestamp as u64).await;
        told["searched"] = json!(searched.map_err(failure)?);
    }
    Ok(told)
}

async fn pull(consumer: &DefaultMQPullConsumer, request: &Request) -> Answer {
    let selector = MessageSelector::by_tag(request.text("expression"));
    let (offset, most) = (request.number("offset").unwrap_or(0), request.number("max").unwrap_or(32));
    let options = PullOptions::new(queue(&request.0["queue"]), selector, offset, most as i32).map_err(failure)?;
    let patient = options.timeout(Duration::from_millis(u64::from(PATIENT_MS)));
    let result = consumer.pull_with_options(patient).await.map_err(failure)?;
    let messages: Vec<Value> = result.msg_found_list().unwrap_or_default().iter().map(describe_message).collect();
    Ok(json!({
        "status": match result.pull_status() {
            PullStatus::Found => "FOUND",
            PullStatus::NoNewMsg => "NO_NEW_MSG",
            PullStatus::NoMatchedMsg => "NO_MATCHED_MSG",
            PullStatus::OffsetIllegal => "OFFSET_ILLEGAL",
        },
        "next": result.next_begin_offset(),
        "min": result.min_offset(),
        "max": result.max_offset(),
        "messages": messages,
    }))
}
