//! Gateways, which see a status but no envelope, and log the status as logfmt or as a JSON access log.

use super::{Dialect, Fault, failure, fault, success};

/// A gateway that writes logfmt.
pub(crate) static LOGFMT: Dialect = Dialect {
    successes: &[success(1, r#"level=INFO msg="tool call" audit=true status=200 bytes=<amount>"#)],
    failures: &[failure(
        1,
        r#"level=WARN msg="tool call" audit=true status=<code> reason="<message>""#,
        FAULTS,
    )],
    outage: failure(1, r#"level=ERROR msg="tool call" audit=true status=<code> reason="<message>""#, OUTAGE),
    warnings: &[],
};

/// An ingress that writes an access log.
pub(crate) static ACCESS_LOG: Dialect = Dialect {
    successes: &[
        success(1, r#""status":200,"bytes":<amount>"#),
        success(1, r#""statusCode":202,"bytes":<count>"#),
    ],
    failures: &[
        failure(2, r#""status":<code>,"bytes":<count>,"reason":"<message>""#, FAULTS),
        failure(1, r#""statusCode":<code>,"bytes":<count>"#, FAULTS),
    ],
    outage: failure(1, r#""status":<code>,"bytes":<count>,"reason":"<message>""#, OUTAGE),
    warnings: &[],
};

#[rustfmt::skip] // one row, one line
const FAULTS: &[Fault] = &[
    fault(10, "401", "session of <user> has ended", ""),
    fault(6, "403", "policy <tenant> forbids <operation>", ""),
    fault(8, "404", "no route to <typo>", ""),
    fault(4, "400", "body is not JSON", ""),
    fault(2, "413", "body of <rows> bytes", ""),
    fault(7, "429", "more than <limit> calls a minute", ""),
    fault(3, "500", "handler stopped", ""),
    fault(4, "502", "upstream closed early", ""),
    fault(3, "504", "upstream took too long", "").slow(),
];

#[rustfmt::skip] // one row, one line
const OUTAGE: &[Fault] = &[
    fault(4, "503", "no healthy upstream", ""),
    fault(2, "502", "upstream closed early", ""),
];
