//! The metrics of connections and authentication.

use crate::listener::{ConnectionStats, ListenerProtocol, ProtocolStats};
use crate::tls::Tls;
use crate::{Authenticator, ConnectionLimit};
use metrics::{Metric, MetricSource, Samples};
use std::sync::Arc;

metrics::metrics! {
    CONNECTION_GROUP = "connections" by "protocol" {
        CONNECTIONS = Gauge "faultline_connections" ["protocol"]
            "Open connections of each listener.";
        CONNECTIONS_OPENED = Counter "faultline_connections_opened_total" ["protocol"]
            "Connections that a listener accepted.";
        CONNECTION_ACCEPT_ERRORS = Counter "faultline_connection_accept_errors_total" ["protocol"]
            "Times that the operating system could not hand a connection to a listener, for example because it has no free file handles.";
        CONNECTIONS_REJECTED = Counter "faultline_connections_rejected_total" ["protocol", "reason"]
            "Connections that a listener closed because too many were open: in total, or from one address.";
        CONNECTIONS_RESERVED = Counter "faultline_connections_reserved_total" ["protocol"]
            "Connections admitted to the reserve that only health probes can use, because too many were open.";
    }
    AUTH_GROUP = "auth" {
        AUTH_DENIALS = Counter "faultline_auth_denials_total" ["reason"]
            "Requests and connections that authentication or authorization denied, by reason.";
    }
    TLS_GROUP = "tls" {
        TLS_FAILURES = Counter "faultline_tls_failures_total" []
            "Connections whose TLS handshake failed.";
        TLS_EXPIRY = Gauge "faultline_tls_certificate_expiry_timestamp_seconds" []
            "Time at which the certificate of the listeners expires; absent without a certificate.";
    }
}

/// The parts that count connections and denials.
#[derive(Debug)]
pub struct AuthMetrics {
    /// The authenticator, which counts denials.
    pub authenticator: Arc<Authenticator>,
    /// The counters of connections.
    pub connections: Arc<ConnectionStats>,
    /// The TLS configuration of the listeners, if there is one.
    pub tls: Option<Arc<Tls>>,
}

impl MetricSource for AuthMetrics {
    fn metrics(&self) -> &'static [Metric] {
        ALL
    }

    fn collect(&self, samples: &mut Samples) {
        self.collect_connections(samples);
        let denials = self.authenticator.denial_counts();
        samples.counts(AUTH_DENIALS, denials.map(|(reason, count)| (reason.as_str(), count)));
        samples.count(TLS_FAILURES, self.tls.as_ref().map_or(0, |tls| tls.failures()));
        if let Some(expires) = self.tls.as_ref().and_then(|tls| tls.expires_at()) {
            samples.number(TLS_EXPIRY, expires as f64);
        }
    }
}

impl AuthMetrics {
    fn collect_connections(&self, samples: &mut Samples) {
        let by_protocol = |read: fn(&ProtocolStats) -> u64| {
            ListenerProtocol::ALL.map(|protocol| (protocol.as_str(), read(self.connections.of(protocol))))
        };
        samples.counts(CONNECTIONS, by_protocol(ProtocolStats::open));
        samples.counts(CONNECTIONS_OPENED, by_protocol(ProtocolStats::opened));
        samples.counts(CONNECTIONS_RESERVED, by_protocol(ProtocolStats::reserved));
        samples.counts(CONNECTION_ACCEPT_ERRORS, by_protocol(ProtocolStats::accept_errors));
        let rejected = ListenerProtocol::ALL.into_iter().flat_map(|protocol| {
            ConnectionLimit::ALL.map(|limit| {
                ([protocol.as_str(), limit.as_str()], self.connections.of(protocol).rejected_by(limit))
            })
        });
        samples.counts_by(CONNECTIONS_REJECTED, rejected);
    }
}
