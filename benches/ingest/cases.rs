//! The cases of the benchmark: one for each receiver.

use crate::Round;
use crate::report::{self, Row};
use crate::sender::bodies::{self, Bodies, Encoding};
use crate::sender::connection::{Protocol, TRACES, Target};
use crate::sender::server::Server;
use serde_json::Value;
use std::rc::Rc;

/// The names of the receivers, as the server's status has them.
pub(crate) const SOURCES: [&str; 2] = [ENVELOPES, SPANS];
const ENVELOPES: &str = "envelopes";
const SPANS: &str = "otlp_traces";

/// The protocol of a case's requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Envelopes,
    SpansGrpc,
    SpansHttp,
}

const CASES: [(&str, Way, Encoding); 6] = [
    ("envelopes-plain", Way::Envelopes, Encoding::Plain),
    ("envelopes-gzip", Way::Envelopes, Encoding::Gzip),
    ("envelopes-zstd", Way::Envelopes, Encoding::Zstd),
    ("spans-grpc-plain", Way::SpansGrpc, Encoding::Plain),
    ("spans-grpc-gzip", Way::SpansGrpc, Encoding::Gzip),
    ("spans-http-plain", Way::SpansHttp, Encoding::Plain),
];

pub(crate) struct Case {
    pub(crate) name: &'static str,
    way: Way,
    encoding: Encoding,
    pub(crate) bodies: Bodies,
    /// The uncompressed lines of the bodies.
    lines: Rc<[u8]>,
    /// The number of records that were sent and acknowledged.
    pub(crate) sent: u64,
    pub(crate) rounds: Vec<Round>,
}

impl Case {
    /// Returns the cases whose name contains a word.
    pub(crate) fn all(word: &str) -> anyhow::Result<Vec<Self>> {
        let lines: Rc<[u8]> = bodies::lines().into();
        let wanted = CASES.into_iter().filter(|(name, ..)| name.contains(word));
        wanted.map(|(name, way, encoding)| Self::new(name, way, encoding, &lines)).collect()
    }

    fn new(name: &'static str, way: Way, encoding: Encoding, lines: &Rc<[u8]>) -> anyhow::Result<Self> {
        let bodies = match way {
            Way::Envelopes => Bodies::envelopes(lines, encoding)?,
            Way::SpansGrpc => Bodies::spans(encoding, true)?,
            Way::SpansHttp => Bodies::spans(encoding, false)?,
        };
        Ok(Self { name, way, encoding, bodies, lines: Rc::clone(lines), sent: 0, rounds: Vec::new() })
    }

    /// Returns the lines, if the case sends lines.
    pub(crate) fn lines(&self) -> Option<&[u8]> {
        (self.way == Way::Envelopes).then_some(&self.lines)
    }

    pub(crate) fn source(&self) -> &'static str {
        if self.way == Way::Envelopes { ENVELOPES } else { SPANS }
    }

    pub(crate) fn target(&self, server: &Server) -> anyhow::Result<Target> {
        let encoding = match self.encoding {
            Encoding::Plain => "identity",
            Encoding::Gzip => "gzip",
            Encoding::Zstd => "zstd",
        };
        let (path, content) = match self.way {
            Way::SpansGrpc => {
                return server.target("otlp_grpc", Protocol::Grpc { path: TRACES, encoding });
            }
            Way::Envelopes => ("/v1/envelopes", "application/x-ndjson"),
            Way::SpansHttp => ("/v1/traces", "application/x-protobuf"),
        };
        let address = server.address("otlp_http")?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {content}\r\nContent-Encoding: {encoding}\r\n"
        );
        server.target("otlp_http", Protocol::Http { head })
    }

    pub(crate) fn report(&self) {
        report::case(&Row::of(self.name, &self.rounds));
    }
}

/// Returns the sum of a counter over all sources, and over its labels if it has some.
pub(crate) fn total_of(status: &Value, name: &str) -> u64 {
    let sum = |counted: &Value| match counted {
        Value::Object(counts) => counts.values().filter_map(Value::as_u64).sum(),
        count => count.as_u64().unwrap_or_default(),
    };
    SOURCES.iter().map(|source| sum(&status["sources"][source][name])).sum()
}
