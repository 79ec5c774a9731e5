//! The services of the world: how often each is called, how often its calls fail, and how it reports them.

use super::services::{
    CALENDAR, CLAUDE_CODE, CODEX, DOCUMENTS, GATEWAY, GEMINI, NOTES, REPOSITORIES, RESEARCH,
};
use super::telemetry::{Convention, Host};
use crate::random::Weighted;
use crate::services::{DEPOT, EDGE, GEO, HUB, INGRESS, LEDGER, ORDERS, PARCELS, SKILLS, Service, TRACKER};

/// The form in which a service reports its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The service writes lines to its log.
    Line,
    /// The service sends spans.
    Span(Convention),
    /// An agent host sends log records.
    Log(Host),
}

/// A service of the world.
pub(super) struct Member {
    weight: u32,
    pub(super) service: &'static Service,
    /// The number of calls in ten thousand that fail on an ordinary day.
    pub(super) failures_in_10_000: u64,
    pub(super) report: Report,
}

impl Weighted for Member {
    fn weight(&self) -> u32 {
        self.weight
    }
}

/// All services of the world.
#[rustfmt::skip] // one row, one line
pub(super) static CAST: [Member; 19] = [
    member(130, &TRACKER, 260, Report::Line),
    member(110, &LEDGER, 300, Report::Line),
    member(40, &DEPOT, 250, Report::Line),
    member(95, &ORDERS, 260, Report::Line),
    member(90, &SKILLS, 320, Report::Line),
    member(80, &HUB, 210, Report::Line),
    member(90, &GEO, 240, Report::Line),
    member(60, &EDGE, 220, Report::Line),
    member(30, &INGRESS, 180, Report::Line),
    member(16, &PARCELS, 500, Report::Line),
    member(55, &NOTES, 420, Report::Line),
    member(65, &REPOSITORIES, 520, Report::Line),
    member(45, &GATEWAY, 230, Report::Line),
    member(50, &DOCUMENTS, 240, Report::Span(Convention::McpServer)),
    member(60, &CALENDAR, 380, Report::Span(Convention::McpServer)),
    member(25, &RESEARCH, 350, Report::Span(Convention::TracedTool)),
    member(40, &CLAUDE_CODE, 300, Report::Log(Host::ClaudeCode)),
    member(15, &CODEX, 350, Report::Log(Host::Codex)),
    member(10, &GEMINI, 300, Report::Log(Host::Gemini)),
];

const fn member(weight: u32, service: &'static Service, failures_in_10_000: u64, report: Report) -> Member {
    Member { weight, service, failures_in_10_000, report }
}

/// Returns the services that write lines.
#[cfg(test)]
pub(super) fn lines() -> impl Iterator<Item = &'static Service> {
    CAST.iter().filter(|member| member.report == Report::Line).map(|member| member.service)
}
