//! How servers answer: one module a dialect, each a pair of tables.
//!
//! A [`Shape`] is how an answer is wrapped, a [`Fault`] is what went wrong. Both are templates, so adding one is
//! adding a row. Every row gives valid JSON, or valid logfmt in the gateway's case; a test fills each of them.

pub(crate) mod agent_skills;
pub(crate) mod batch;
pub(crate) mod erlmcp;
pub(crate) mod gateway;
pub(crate) mod mcp_aql;
pub(crate) mod mcp_aql_faults;
pub(crate) mod plain_mcp;
pub(crate) mod reference;
pub(crate) mod vendor;

use crate::random::Weighted;

/// One way of speaking.
pub(crate) struct Dialect {
    pub(crate) successes: &'static [Shape],
    /// The first is the usual one: stories are told in it.
    pub(crate) failures: &'static [Shape],
    /// What is left to say during an outage.
    pub(crate) outage: Shape,
    /// Successes with something to mind; few dialects have them.
    pub(crate) warnings: &'static [Shape],
}

/// How an answer is wrapped, and which faults travel in it.
pub(crate) struct Shape {
    weight: u32,
    /// Members of the line's object.
    pub(crate) body: &'static str,
    /// An envelope that the body carries, as it is (`<inner>`) or as a string (`<inner_as_text>`).
    pub(crate) inner: &'static str,
    /// Empty for a success.
    pub(crate) faults: &'static [Fault],
}

/// What went wrong. A field that the dialect does not send is empty.
pub(crate) struct Fault {
    weight: u32,
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
    /// What follows the message: an object with details or data, or a hint.
    pub(crate) details: &'static str,
    /// The exception class or the category that is sent along.
    pub(crate) kind: &'static str,
    /// The HTTP status.
    pub(crate) status: &'static str,
    /// The code of the JSON-RPC error around it.
    pub(crate) rpc_code: &'static str,
    pub(crate) retryable: bool,
    /// The call ran into a time limit, so it took long.
    pub(crate) slow: bool,
}

impl Fault {
    /// Nothing went wrong.
    pub(crate) const NONE: Fault = fault(0, "", "", "");

    const fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    const fn slow(self) -> Self {
        Self { slow: true, ..self }
    }
}

impl Shape {
    const fn carrying(self, inner: &'static str) -> Self {
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
