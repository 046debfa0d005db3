//! Drives rocketmq-client-rust; ../../README.md describes the lines it reads and writes.

#![recursion_limit = "512"]

mod consumers;
mod lines;
mod messages;
mod producers;
mod pulling;
mod setup;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

use consumers::Consumers;
use lines::{Answer, Request, refusal, say};
use producers::Producers;
use pulling::{LiteConsumers, PullConsumers};
use setup::Setup;

const LIBRARY: &str = "rocketmq-client-rust";

struct Driver {
    producers: Producers,
    consumers: Consumers,
    lites: LiteConsumers,
    pulls: PullConsumers,
}

impl Driver {
    async fn answer(&self, request: &Request) -> Answer {
        let op = request.text("op");
        if Producers::OPS.contains(&op) {
            self.producers.answer(request).await
        } else if Consumers::OPS.contains(&op) {
            self.consumers.answer(request).await
        } else if LiteConsumers::OPS.contains(&op) {
            self.lites.answer(request).await
        } else if PullConsumers::OPS.contains(&op) {
            self.pulls.answer(request).await
        } else {
            Err(refusal(format!("no operation {op:?}")))
        }
    }

    async fn shutdown(&self) {
        self.consumers.shutdown().await;
        self.lites.shutdown().await;
        self.pulls.shutdown().await;
        self.producers.shutdown().await;
    }
}

/// Returns the library's version in the lock file, which the build was bound to.
fn library_version() -> &'static str {
    let mut lines = include_str!("../Cargo.lock").lines();
    let name = format!("name = {LIBRARY:?}");
    lines.find(|line| **line == *name);
    lines.next().and_then(|line| line.split('"').nth(1)).unwrap_or_default()
}

fn ready() -> Value {
    let ops = [&Producers::OPS[..], &Consumers::OPS, &LiteConsumers::OPS, &PullConsumers::OPS].concat();
    json!({"ready": {"client": LIBRARY, "version": library_version(), "ops": ops}})
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let setup = Arc::new(Setup::new()?);
    let driver = Arc::new(Driver {
        producers: Producers::new(Arc::clone(&setup)),
        consumers: Consumers::new(Arc::clone(&setup)),
        lites: LiteConsumers::new(Arc::clone(&setup)),
        pulls: PullConsumers::new(Arc::clone(&setup)),
    });
    say(&ready());
    let mut running = JoinSet::new();
    let mut requests = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = requests.next_line().await? {
        let request = Request(serde_json::from_str(&line)?);
        let driver = Arc::clone(&driver);
        running.spawn(async move {
            let id = &request.0["id"];
            match driver.answer(&request).await {
                Ok(told) => say(&json!({"id": id, "ok": told})),
                Err(error) => say(&json!({"id": id, "error": error})),
            }
        });
    }
    running.join_all().await;
    driver.shutdown().await;
    drop(driver);
    if let Ok(setup) = Arc::try_unwrap(setup).map_err(drop) {
        setup.shutdown().await;
    }
    Ok(())
}
