//! The metrics of queries.

use crate::stats::{DURATION_BOUNDS_MS, EndpointStats};
use crate::{Endpoint, QueryService};
use metrics::{Histogram, Metric, MetricSource, Samples};

metrics::metrics! {
    QUERY_GROUP = "query" {
        QUERIES = Counter "faultline_queries_total" ["protocol", "outcome"]
            "Statements that were run, by protocol and outcome.";
        QUERY_DURATION = Histogram "faultline_query_duration_seconds" ["protocol"]
            "Duration of statements, from their start until their last row was taken.";
        QUERIES_RUNNING = Gauge "faultline_queries_running" []
            "Statements that are running.";
    }
}

impl MetricSource for QueryService {
    fn metrics(&self) -> &'static [Metric] {
        ALL
    }

    fn collect(&self, samples: &mut Samples) {
        samples.count(QUERIES_RUNNING, self.running() as u64);
        let endpoints = Endpoint::ALL.map(|endpoint| (endpoint.as_str(), self.stats(endpoint)));
        let outcomes = endpoints.iter().flat_map(|(protocol, stats)| {
            let outcomes = [("ok", stats.succeeded), ("failed", stats.failed), ("stopped", stats.cancelled)];
            outcomes.map(|(outcome, count)| ([*protocol, outcome], count))
        });
        samples.counts_by(QUERIES, outcomes);
        samples.histograms(
            QUERY_DURATION,
            endpoints.iter().map(|(protocol, stats)| ([*protocol], histogram(stats))),
        );
    }
}

fn histogram(stats: &EndpointStats) -> Histogram {
    let buckets =
        DURATION_BOUNDS_MS.iter().zip(stats.buckets).map(|(bound, count)| (*bound as f64 / 1e3, count));
    Histogram {
        buckets: buckets.collect(),
        count: stats.succeeded + stats.failed + stats.cancelled,
        sum: stats.time.as_secs_f64(),
    }
}
