//! The lines that the suite and the driver write to each other.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, MutexGuard};

use rocketmq_client_rust::ClientError;
use serde_json::{Value, json};

/// What an operation returns: the `ok` of the answer, or the `error`.
pub type Answer = Result<Value, Value>;

/// Locks a mutex; a panic of another thread does not matter here.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Writes one line to the suite.
pub fn say(line: &Value) {
    let mut out = std::io::stdout().lock();
    // If the suite has gone, standard input ends, too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Describes an error of the library: the name of its kind, and RocketMQ's response code.
pub fn failure(error: ClientError) -> Value {
    let shared = error.shared_error();
    let mut text = shared.to_string();
    let mut cause = shared.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    json!({
        "type": error.descriptor().code().to_string(),
        "code": error.broker_response_code(),
        "text": text,
    })
}

/// Describes an error of the driver.
pub fn refusal(text: impl Display) -> Value {
    json!({"type": "driver", "code": null, "text": text.to_string()})
}

/// A request of the suite: one JSON object.
pub struct Request(pub Value);

impl Request {
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.0[name].as_i64()
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.0[name].as_bool().unwrap_or(false)
    }

    pub fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Producers or consumers, by the names that the suite gave them.
pub struct Registry<T>(Mutex<HashMap<String, T>>);

impl<T: Clone> Registry<T> {
    pub fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    pub fn add(&self, name: &str, member: T) {
        locked(&self.0).insert(name.to_owned(), member);
    }

    pub fn find(&self, name: &str) -> Result<T, Value> {
        let found = locked(&self.0).get(name).cloned();
        found.ok_or_else(|| refusal(format!("nothing was started as {name:?}")))
    }

    pub fn take(&self, name: &str) -> Result<T, Value> {
        let found = locked(&self.0).remove(name);
        found.ok_or_else(|| refusal(format!("nothing was started as {name:?}")))
    }

    pub fn take_all(&self) -> Vec<T> {
        locked(&self.0).drain().map(|(_, member)| member).collect()
    }
}
