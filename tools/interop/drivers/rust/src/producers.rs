//! The producers.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rocketmq_client_rust::{
    ClientError, DefaultMQProducer, LocalTransactionState, MessageUtil, SendResult, TransactionListener,
    TransactionMQProducer,
};
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_queue::MessageQueue;
use rocketmq_model::common::message::{MessageConst, MessageTrait};
use serde_json::{Value, json};
use tokio::sync::{RwLock, oneshot};

use crate::lines::{Answer, Registry, Request, failure, locked, refusal, say};
use crate::messages::{describe_message, describe_reply, describe_result, described, message, request_to_reply_to};
use crate::setup::{PATIENT_MS, Setup};

// The library accepts no more; no body is as large.
const MOST_COMPRESS_OVER: i64 = 64 << 20;

/// A producer of either kind.
enum Library {
    Plain(DefaultMQProducer),
    Transactional(TransactionMQProducer, Arc<Transactions>),
}

impl Library {
    fn plain(&self) -> Result<&DefaultMQProducer, Value> {
        match self {
            Self::Plain(library) => Ok(library),
            Self::Transactional(..) => Err(refusal("the producer is transactional")),
        }
    }

    async fn shutdown(&mut self) {
        match self {
            Self::Plain(library) => library.shutdown().await,
            Self::Transactional(library, _) => library.shutdown().await,
        }
    }
}

/// A send counts as a reader, the shutdown as the writer.
type Sender = Arc<RwLock<Library>>;

pub struct Producers {
    setup: Arc<Setup>,
    started: Registry<Sender>,
}

impl Producers {
    pub const OPS: [&str; 11] = [
        "producer.start",
        "producer.stop",
        "send.sync",
        "send.delayed",
        "send.ordered",
        "send.async",
        "send.oneway",
        "send.batch",
        "send.transaction",
        "send.request",
        "send.reply",
    ];

    pub fn new(setup: Arc<Setup>) -> Self {
        Self { setup, started: Registry::new() }
    }

    pub async fn answer(&self, request: &Request) -> Answer {
        let name = request.text("producer");
        match request.text("op") {
            "producer.start" => return self.start(request).await,
            "producer.stop" => {
                self.started.take(name)?.write().await.shutdown().await;
                return Ok(json!({}));
            }
            _ => {}
        }
        let sender = self.started.find(name)?;
        let library = sender.read().await;
        match request.text("op") {
            "send.sync" | "send.delayed" => send(library.plain()?, request).await,
            "send.ordered" => send_ordered(library.plain()?, request).await,
            "send.async" => send_at_once(library.plain()?, request).await,
            "send.oneway" => send_oneway(library.plain()?, request).await,
            "send.batch" => send_batch(library.plain()?, request).await,
            "send.request" => send_request(library.plain()?, request).await,
            "send.reply" => send_reply(library.plain()?, request).await,
            _ => match &*library {
                Library::Transactional(library, checks) => send_transaction(library, checks, request).await,
                Library::Plain(_) => Err(refusal("the producer is not transactional")),
            },
        }
    }

    async fn start(&self, request: &Request) -> Answer {
        let name = request.text("name");
        let started = if request.is_set("transactional") {
            let checks = Arc::new(Transactions::new(name));
            let mut library = TransactionMQProducer::builder(self.setup.runtime())
                .client_config(self.setup.client(request))
                .producer_group(request.text("group"))
                .send_msg_timeout(PATIENT_MS)
                .transaction_listener(Listener(Arc::clone(&checks)))
                .build();
            library.start().await.map_err(failure)?;
            Library::Transactional(library, checks)
        } else {
            Library::Plain(self.start_plain(request).await?)
        };
        self.started.add(name, Arc::new(RwLock::new(started)));
        Ok(json!({}))
    }

    async fn start_plain(&self, request: &Request) -> Result<DefaultMQProducer, Value> {
        let mut builder = DefaultMQProducer::builder(self.setup.runtime())
            .client_config(self.setup.client(request))
            .producer_group(request.text("group"))
            .send_msg_timeout(PATIENT_MS);
        if let Some(bytes) = request.number("compress_over") {
            builder = builder.compress_msg_body_over_howmuch(bytes.min(MOST_COMPRESS_OVER) as u32);
        }
        if let Some(bytes) = request.number("max_message_size") {
            builder = builder.max_message_size(bytes as u32);
        }
        let mut library = builder.build();
        library.start().await.map_err(failure)?;
        Ok(library)
    }

    pub async fn shutdown(&self) {
        for sender in self.started.take_all() {
            sender.write().await.shutdown().await;
        }
    }
}

async fn send(library: &DefaultMQProducer, request: &Request) -> Answer {
    let mut results = Vec::new();
    for told in request.list("messages") {
        results.push(describe_result(library.send(message(told)?).await));
    }
    Ok(json!({"results": results}))
}

async fn send_ordered(library: &DefaultMQProducer, request: &Request) -> Answer {
    let mut results = Vec::new();
    for told in request.list("messages") {
        let key = told["sharding_key"].as_str().unwrap_or_default();
        let key: usize = key.parse().map_err(refusal)?;
        let by_key = |queues: &[MessageQueue], _: &_, key: &usize| queues.get(key % queues.len()).cloned();
        results.push(describe_result(library.send_with_selector(message(told)?, by_key, key).await));
    }
    Ok(json!({"results": results}))
}

async fn send_at_once(library: &DefaultMQProducer, request: &Request) -> Answer {
    let mut waiting = Vec::new();
    for told in request.list("messages") {
        let (done, result) = oneshot::channel();
        let done = Mutex::new(Some(done));
        let callback = move |result: Option<&SendResult>, error: Option<&ClientError>| {
            // Only the first call counts.
            if let Some(done) = locked(&done).take() {
                let told = match (result, error) {
                    (Some(result), _) => described(result),
                    (None, Some(error)) => json!({"error": failure(error.clone())}),
                    (None, None) => json!({"error": refusal("the library returned no result")}),
                };
                let _ = done.send(told);
            }
        };
        let sent = library.send_with_callback(message(told)?, callback).await;
        waiting.push((sent, result));
    }
    let mut results = Vec::new();
    for (sent, result) in waiting {
        results.push(match sent {
            Ok(()) => result.await.map_err(|_| refusal("the library dropped the callback"))?,
            Err(error) => json!({"error": failure(error)}),
        });
    }
    Ok(json!({"results": results}))
}

async fn send_oneway(library: &DefaultMQProducer, request: &Request) -> Answer {
    for told in request.list("messages") {
        library.send_oneway(message(told)?).await.map_err(failure)?;
    }
    Ok(json!({}))
}

async fn send_batch(library: &DefaultMQProducer, request: &Request) -> Answer {
    let messages: Result<Vec<_>, _> = request.list("messages").iter().map(message).collect();
    let result = library.send_batch(messages?).await;
    Ok(json!({"results": [describe_result(result.map(Some))]}))
}

async fn send_request(library: &DefaultMQProducer, request: &Request) -> Answer {
    let timeout = request.number("timeout_ms").unwrap_or(i64::from(PATIENT_MS)) as u64;
    let reply = library.request(message(&request.0["message"])?, timeout).await.map_err(failure)?;
    Ok(json!({"message": describe_reply(&*reply)}))
}

async fn send_reply(library: &DefaultMQProducer, request: &Request) -> Answer {
    let body = request.text("body").as_bytes();
    let reply = MessageUtil::create_reply_message(&request_to_reply_to(&request.0["request"]), body);
    let sent = library.send(reply.map_err(failure)?).await.map_err(failure)?;
    Ok(json!({"results": [describe_result(Ok(sent))]}))
}

async fn send_transaction(library: &TransactionMQProducer, transactions: &Transactions, request: &Request) -> Answer {
    let mut results = Vec::new();
    for told in request.list("messages") {
        let made = message(told)?;
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        transactions.expect(&text("body"), text("local"), text("check"));
        let sent = library.send_message_in_transaction::<(), _>(made, None).await;
        results.push(match sent {
            Ok(sent) => {
                let mut result = describe_result(Ok(sent.send_result));
                result["transaction_state"] = json!(sent.local_transaction_state);
                result
            }
            Err(error) => json!({"error": failure(error)}),
        });
    }
    Ok(json!({"results": results}))
}

/// The states that the suite named when it sent the messages, by body and by unique key.
struct Transactions {
    producer: String,
    locals: Mutex<HashMap<String, (String, String)>>,
    checks: Mutex<HashMap<String, String>>,
}

impl Transactions {
    fn new(producer: &str) -> Self {
        Self { producer: producer.to_owned(), locals: Mutex::default(), checks: Mutex::default() }
    }

    fn expect(&self, body: &str, local: String, check: String) {
        locked(&self.locals).insert(body.to_owned(), (local, check));
    }
}

fn state(name: &str) -> LocalTransactionState {
    match name {
        "commit" => LocalTransactionState::CommitMessage,
        "rollback" => LocalTransactionState::RollbackMessage,
        _ => LocalTransactionState::Unknown,
    }
}

fn unique_key(message: &dyn MessageTrait) -> String {
    let name = MessageConst::PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX;
    message.property(&name.into()).unwrap_or_default().to_string()
}

struct Listener(Arc<Transactions>);

impl TransactionListener for Listener {
    fn execute_local_transaction(
        &self,
        message: &dyn MessageTrait,
        _: Option<&(dyn Any + Send + Sync)>,
    ) -> LocalTransactionState {
        let body = message.get_body().map(|body| String::from_utf8_lossy(body).into_owned());
        let expected = locked(&self.0.locals).remove(&body.unwrap_or_default());
        let (local, check) = expected.unwrap_or_default();
        locked(&self.0.checks).insert(unique_key(message), check);
        state(&local)
    }

    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState {
        say(&json!({
            "event": "checked", "producer": self.0.producer, "message": describe_message(message),
        }));
        state(&locked(&self.0.checks).get(&unique_key(message)).cloned().unwrap_or_default())
    }
}
