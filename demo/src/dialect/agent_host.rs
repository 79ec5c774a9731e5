//! Hosts in which agents run. They report each tool call as a log record that states only whether it succeeded.

use super::{Dialect, Fault, failure, fault, success};

/// An agent host.
pub(crate) static HOST: Dialect = Dialect {
    successes: &[success(1, "")],
    failures: &[failure(1, "", FAILED)],
    outage: failure(1, "", FAILED),
    warnings: &[],
};

const FAILED: &[Fault] = &[Fault { kind: "failed", ..fault(1, "", "", "") }];
