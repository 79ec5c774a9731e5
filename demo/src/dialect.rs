//! The responses of servers. There is one module for each dialect, with a table of shapes and a table of faults.
//!
//! A [`Shape`] is the envelope of a response, and a [`Fault`] is an error inside it. Both are templates, so adding one
//! means adding a row. Every row expands to valid JSON, or to valid logfmt in the case of the gateway; a test expands
//! each of them.

pub(crate) mod agent_host;
pub(crate) mod agent_skills;
pub(crate) mod batch;
pub(crate) mod erlmcp;
pub(crate) mod gateway;
pub(crate) mod instrumented;
pub(crate) mod mcp_aql;
pub(crate) mod mcp_aql_faults;
pub(crate) mod plain_mcp;
pub(crate) mod prose;
pub(crate) mod reference;
pub(crate) mod upstream_api;
pub(crate) mod vendor;

use crate::random::Weighted;

/// The responses of one dialect.
pub(crate) struct Dialect {
    pub(crate) successes: &'static [Shape],
    /// The responses to failed calls. Quota and confirmation flows always use the first one.
    pub(crate) failures: &'static [Shape],
    /// The response during an outage.
    pub(crate) outage: Shape,
    /// Successes with warnings; few dialects have them.
    pub(crate) warnings: &'static [Shape],
}

/// The envelope of a response, and the faults that it can carry.
pub(crate) struct Shape {
    weight: u32,
    /// The members of the line's object.
    pub(crate) body: &'static str,
    /// An envelope that the body contains, either verbatim (`<inner>`) or as a string (`<inner_as_text>`).
    pub(crate) inner: &'static str,
    /// The possible faults; empty for a success.
    pub(crate) faults: &'static [Fault],
}

/// An error. Fields that the dialect does not send are empty.
pub(crate) struct Fault {
    weight: u32,
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
    /// The details after the message: an object with details or data, or a hint.
    pub(crate) details: &'static str,
    /// The exception class or the category.
    pub(crate) kind: &'static str,
    /// The HTTP status.
    pub(crate) status: &'static str,
    /// The code of the surrounding JSON-RPC error.
    pub(crate) rpc_code: &'static str,
    pub(crate) retryable: bool,
    /// True if the call ran into a time limit, so its duration is long.
    pub(crate) slow: bool,
}

impl Fault {
    /// The fault of a successful call: no error.
    pub(crate) const NONE: Fault = fault(0, "", "", "");

    const fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    const fn slow(self) -> Self {
        Self { slow: true, ..self }
    }
}

impl Shape {
    const fn with_inner(self, inner: &'static str) -> Self {
        Self { inner, ..self }
    }
}

pub(crate) const fn success(weight: u32, body: &'static str) -> Shape {
    failure(weight, body, &[])
}

pub(crate) const fn failure(weight: u32, body: &'static str, faults: &'static [Fault]) -> Shape {
    Shape { weight, body, inner: "", faults }
}

pub(crate) const fn fault(
    weight: u32,
    code: &'static str,
    message: &'static str,
    details: &'static str,
) -> Fault {
    Fault {
        weight,
        code,
        message,
        details,
        kind: "",
        status: "",
        rpc_code: "",
        retryable: false,
        slow: false,
    }
}

impl Weighted for Shape {
    fn weight(&self) -> u32 {
        self.weight
    }
}

impl Weighted for Fault {
    fn weight(&self) -> u32 {
        self.weight
    }
}
