//! Metrics, rules and alerts: a real server, and the real Prometheus, Alertmanager and promtool.

mod bounds;
mod counts;
pub(crate) mod list;
pub(crate) mod monitoring;
mod page;
mod rules;
mod scraped;
mod story;
mod webhook;
