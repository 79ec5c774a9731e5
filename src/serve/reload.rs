//! SIGHUP: reads the settings again, and uses what can change while we run.
//!
//! What always holds: new settings that have a mistake change nothing; what needs a restart is named, and stays as it is.

use super::logging::Level;
use super::{Arguments, encryption, expect_services, notify, tokens};
use crate::Command;
use crate::settings::{self, Given};
use access::Gate;
use access::tls::Tls;
use collector::Pipeline;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use taxonomy::Rules;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What can change while we run.
pub(super) struct Reload {
    level: Level,
    rules: Arc<Rules>,
    pipeline: Pipeline,
    gate: Arc<Gate>,
    tls: Option<Arc<Tls>>,
    asked: Option<Signal>,
    /// What is in force, by the names of the flags.
    values: BTreeMap<String, Vec<OsString>>,
}

/// Listens for SIGHUP, which would otherwise end us.
pub(super) fn listen() -> Option<Signal> {
    let asked = signal(SignalKind::hangup());
    asked.inspect_err(|error| tracing::warn!("SIGHUP does not reload the settings: {error}")).ok()
}

/// The settings that this file changes.
const CHANGES: [&str; 3] = ["log_level", "expect_service", SERVICE_BUDGET];
const SERVICE_BUDGET: &str = "service_budget";

impl Reload {
    /// Begins with what was given at the start.
    pub(super) fn new(
        asked: Option<Signal>,
        level: Level,
        rules: Arc<Rules>,
        pipeline: Pipeline,
        gate: Arc<Gate>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let values = settings::given().map(|given| given.values).unwrap_or_default();
        Self { level, rules, pipeline, gate, tls, asked, values }
    }

    /// Waits for signals, for ever.
    pub(super) async fn watch(mut self) {
        let Some(mut asked) = self.asked.take() else { return };
        while asked.recv().await.is_some() {
            notify::reloading();
            match settings::given() {
                Ok(Given { command: Command::Serve(arguments), values }) => self.take(&arguments, values),
                Ok(_) => {}
                Err(error) => tracing::error!("the settings stay as they are: {error:#}"),
            }
            notify::ready();
        }
    }

    fn take(&mut self, arguments: &Arguments, values: BTreeMap<String, Vec<OsString>>) {
        let tokens = match tokens::load(arguments.tokens.as_deref()) {
            Ok(tokens) => tokens.unwrap_or_default(),
            Err(error) => return tracing::error!("the settings stay as they are: {error:#}"),
        };
        if let Err(error) = self.level.change(&arguments.log_level) {
            return tracing::error!("the settings stay as they are: {error:#}");
        }
        self.gate.replace(tokens);
        if let Some(tls) = &self.tls {
            encryption::look_now(tls);
        }
        expect_services(&arguments.expect_service, &self.rules, self.pipeline.metrics());
        // Only when they have changed: everybody would begin with a full bucket again.
        if values.get(SERVICE_BUDGET) != self.values.get(SERVICE_BUDGET) {
            self.pipeline.budgets().set(&arguments.service_budget);
        }
        let changed: Vec<&String> = values
            .iter()
            .filter(|(name, value)| self.values.get(*name) != Some(value))
            .map(|(name, _)| name)
            // What was taken out of the file and has no default.
            .chain(self.values.keys().filter(|name| !values.contains_key(*name)))
            .collect();
        let (used, later): (Vec<&String>, Vec<&String>) =
            changed.into_iter().partition(|name| CHANGES.contains(&name.as_str()));
        tracing::info!(changed = ?used, "the settings were read again");
        if !later.is_empty() {
            tracing::warn!(settings = ?later, "changed settings that need a restart");
        }
        self.values = values;
    }
}
