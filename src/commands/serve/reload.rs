//! Handles SIGHUP: reads the settings again, and applies those that can change at run time.
//!
//! Invariants: new settings that contain a mistake change nothing; settings that need a restart are logged, and keep
//! their values.

use super::logging::LogLevel;
use super::{Arguments, authentication, expect_services, systemd, tls};
use crate::commands::Command;
use crate::config::{self, LoadedConfig};
use auth::Authenticator;
use auth::tls::Tls;
use classifier::Rules;
use collector::Pipeline;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Reloads the settings that can change at run time.
pub(super) struct Reloader {
    level: LogLevel,
    rules: Arc<Rules>,
    pipeline: Pipeline,
    authenticator: Arc<Authenticator>,
    tls: Option<Arc<Tls>>,
    hangup: Option<Signal>,
    /// The current values, by the names of the flags.
    values: BTreeMap<String, Vec<OsString>>,
}

/// Listens for SIGHUP, which would otherwise end the process.
pub(super) fn listen() -> Option<Signal> {
    let hangup = signal(SignalKind::hangup());
    hangup.inspect_err(|error| tracing::warn!("SIGHUP does not reload the settings: {error}")).ok()
}

/// The settings whose changes this module applies.
const RELOADABLE: [&str; 3] = ["log_level", "expect_service", SERVICE_BUDGET];
const SERVICE_BUDGET: &str = "service_budget";

impl Reloader {
    /// Creates a reloader with the settings from the start.
    pub(super) fn new(
        hangup: Option<Signal>,
        level: LogLevel,
        rules: Arc<Rules>,
        pipeline: Pipeline,
        authenticator: Arc<Authenticator>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let values = config::load().map(|given| given.values).unwrap_or_default();
        Self { level, rules, pipeline, authenticator, tls, hangup, values }
    }

    /// Waits for signals forever.
    pub(super) async fn watch(mut self) {
        let Some(mut hangup) = self.hangup.take() else { return };
        while hangup.recv().await.is_some() {
            systemd::reloading();
            match config::load() {
                Ok(LoadedConfig { command: Command::Serve(arguments), values }) => {
                    self.apply(&arguments, values);
                }
                Ok(_) => {}
                Err(error) => tracing::error!("the settings stay as they are: {error:#}"),
            }
            systemd::ready();
        }
    }

    fn apply(&mut self, arguments: &Arguments, values: BTreeMap<String, Vec<OsString>>) {
        let tokens = match authentication::load(arguments.tokens.as_deref()) {
            Ok(tokens) => tokens.unwrap_or_default(),
            Err(error) => return tracing::error!("the settings stay as they are: {error:#}"),
        };
        if let Err(error) = self.level.set(&arguments.log_level) {
            return tracing::error!("the settings stay as they are: {error:#}");
        }
        self.authenticator.replace_tokens(tokens);
        if let Some(tls) = &self.tls {
            tls::reload_certificate(tls);
        }
        expect_services(&arguments.expect_service, &self.rules, self.pipeline.metrics());
        // The budgets are set only if they have changed, since every service then begins with a full bucket again.
        if values.get(SERVICE_BUDGET) != self.values.get(SERVICE_BUDGET) {
            self.pipeline.budgets().set(&arguments.service_budget);
        }
        let changed: Vec<&String> = values
            .iter()
            .filter(|(name, value)| self.values.get(*name) != Some(value))
            .map(|(name, _)| name)
            // Settings without a default that were removed from the file have changed, too.
            .chain(self.values.keys().filter(|name| !values.contains_key(*name)))
            .collect();
        let (applied, need_restart): (Vec<&String>, Vec<&String>) =
            changed.into_iter().partition(|name| RELOADABLE.contains(&name.as_str()));
        tracing::info!(changed = ?applied, "the settings were read again");
        if !need_restart.is_empty() {
            tracing::warn!(config = ?need_restart, "changed settings that need a restart");
        }
        self.values = values;
    }
}
