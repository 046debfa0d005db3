//! The library's runtime, and the settings that all clients share.

use std::sync::Arc;
use std::time::Duration;

use rocketmq_client_rust::{ClientConfig, ClientOptions, ClientRuntime, ClientRuntimeConfig};
use rocketmq_model::common::consumer::consume_from_where::ConsumeFromWhere;
use rocketmq_observability::{TelemetryBootstrapConfig, TelemetryRuntimeGuard, install_global};
use rocketmq_protocol::protocol::heartbeat::message_model::MessageModel;
use rocketmq_runtime::{BlockingPoolPolicy, RuntimeConfig, RuntimeOwner};

use crate::lines::Request;

/// The time limit of every request, in milliseconds: a busy machine may answer late.
pub const PATIENT_MS: u32 = 200_000;
// The library accepts no more for the requests that are not sends.
const LONGEST_MS: u64 = 60_000;
const PATIENT: Duration = Duration::from_millis(PATIENT_MS as u64);
// Listeners run on threads of this pool, and a listener may wait for the suite.
const LISTENERS: usize = 256;

pub struct Setup {
    owner: RuntimeOwner,
    runtime: Arc<ClientRuntime>,
    _telemetry: TelemetryRuntimeGuard,
}

impl Setup {
    pub fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let owner = RuntimeOwner::plan(runtime_config()?)?.build()?;
        let telemetry = install_global(&TelemetryBootstrapConfig::default())?;
        let context = owner.root_context().component("client");
        let runtime = ClientRuntime::try_new(context, ClientRuntimeConfig::default(), telemetry.handle());
        let runtime = runtime.map_err(|error| format!("{error}: {error:?}"))?;
        Ok(Self { owner, runtime, _telemetry: telemetry })
    }

    pub fn runtime(&self) -> Arc<ClientRuntime> {
        Arc::clone(&self.runtime)
    }

    /// Returns the settings of a client of its own: clients with the same name share their connections.
    pub fn client(&self, request: &Request) -> ClientConfig {
        ClientConfig {
            namesrv_addr: Some(request.text("namesrv").into()),
            instance_name: request.text("name").into(),
            mq_client_api_timeout: LONGEST_MS,
            enable_trace: request.is_set("trace"),
            ..ClientConfig::default()
        }
    }

    pub fn options(&self, request: &Request) -> ClientOptions {
        ClientOptions::legacy(self.client(request))
    }

    pub async fn shutdown(self) {
        self.runtime.shutdown().await;
        self.owner.shutdown_tasks().await;
        self.owner.shutdown_background();
    }
}

/// The default has four threads for all listeners; a call that waits 5 s for one of them fails.
fn runtime_config() -> Result<RuntimeConfig, Box<dyn std::error::Error>> {
    let mut config = RuntimeConfig::default().with_max_blocking_threads(LISTENERS + LISTENERS)?;
    config.blocking_lane_policies.metadata_io = BlockingPoolPolicy {
        max_concurrency: LISTENERS,
        max_queue_depth: 1 << 16,
        queue_timeout: PATIENT,
        task_timeout: PATIENT,
        ..config.blocking_lane_policies.metadata_io.clone()
    };
    Ok(config)
}

pub fn from_where(request: &Request) -> ConsumeFromWhere {
    match request.text("from") {
        "first" => ConsumeFromWhere::ConsumeFromFirstOffset,
        _ => ConsumeFromWhere::ConsumeFromLastOffset,
    }
}

pub fn message_model(request: &Request) -> MessageModel {
    match request.text("model") {
        "BROADCASTING" => MessageModel::Broadcasting,
        _ => MessageModel::Clustering,
    }
}
