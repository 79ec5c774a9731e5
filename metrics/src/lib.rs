//! What a metric is, and how a crate declares and reports its own.
//!
//! 1. A crate declares its metrics with [`metrics!`], beside the code that counts: a name, a type, labels, a help text,
//!    and the [`MetricGroup`] that they belong to.
//! 2. It implements [`MetricSource`], which reads the counters into [`Samples`].
//! 3. The program gives all sources to the collector. `/metrics` and `/api/v1/status` are made of the same samples, and
//!    `docs/metrics.md` of the same declarations.
//!
//! # Invariants
//!
//! - This crate has no format: it knows neither Prometheus nor JSON.
//! - A metric is declared once, and each of its values is read in one place.

mod samples;

pub use samples::{CollectedMetric, Histogram, MetricSource, Sample, SampleValue, Samples};

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only increases; its name ends in `_total`.
    Counter,
    /// A number that can rise and fall.
    Gauge,
    /// A distribution, as counts of values up to some bounds.
    Histogram,
}

impl MetricKind {
    /// Returns the name of the type, as Prometheus uses it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The metrics of one subsystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricGroup {
    /// The name of the subsystem, which is the member of `/api/v1/status` that holds its metrics.
    pub name: &'static str,
    /// The label by whose values the metrics are divided first, such as the table.
    pub divided_by: Option<&'static str>,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The subsystem that it belongs to.
    pub group: MetricGroup,
    /// The name on `/metrics`.
    pub name: &'static str,
    /// The type: counter, gauge or histogram.
    pub kind: MetricKind,
    /// The names of its labels, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// The help text: a sentence that stands alone, because the exporter sorts metrics by name.
    pub help: &'static str,
}

impl Metric {
    /// Returns the key of the metric within its group on `/api/v1/status`: its name without what every name has, and
    /// without the name of its group.
    ///
    /// ```
    /// metrics::metrics! {
    ///     TABLES = "tables" by "table" {
    ///         TABLE_ROWS = Gauge "faultline_table_rows" ["table"] "Rows of a table.";
    ///         EXPIRED_ROWS = Counter "faultline_expired_rows_total" ["table"] "Rows that retention removed.";
    ///     }
    /// }
    /// assert_eq!(TABLE_ROWS.status_key(), "rows");
    /// assert_eq!(EXPIRED_ROWS.status_key(), "expired_rows");
    /// assert_eq!(EXPIRED_ROWS.status_path(), "tables.{table}.expired_rows");
    /// ```
    #[must_use]
    pub fn status_key(&self) -> &'static str {
        let name = self.name.strip_prefix("faultline_").unwrap_or(self.name);
        let name = name.strip_suffix("_total").unwrap_or(name);
        let singular = self.group.name.strip_suffix('s').unwrap_or(self.group.name);
        let own = |group: &str| name.strip_prefix(group).and_then(|rest| rest.strip_prefix('_'));
        own(self.group.name).or_else(|| own(singular)).unwrap_or(name)
    }

    /// Returns the labels of the divisions of the group that come before the key, and those that come after it.
    #[must_use]
    pub fn split_labels(&self) -> (&'static [&'static str], &'static [&'static str]) {
        let is_divided =
            self.group.divided_by.is_some() && self.group.divided_by == self.labels.first().copied();
        self.labels.split_at(is_divided.into())
    }

    /// Returns where the status has the metric, with labels in braces: `tables.{table}.rows`.
    #[must_use]
    pub fn status_path(&self) -> String {
        let (divisions, labels) = self.split_labels();
        let in_braces = |label: &&str| format!("{{{label}}}");
        let mut path = vec![self.group.name.to_owned()];
        path.extend(divisions.iter().map(in_braces));
        path.push(self.status_key().to_owned());
        path.extend(labels.iter().map(in_braces));
        path.join(".")
    }
}

/// Declares groups of metrics: a constant for each metric, and `ALL` with all of them.
///
/// ```
/// metrics::metrics! {
///     TLS = "tls" {
///         TLS_FAILURES = Counter "faultline_tls_failures_total" [] "Connections whose TLS handshake failed.";
///     }
/// }
/// assert_eq!(ALL.len(), 1);
/// ```
#[macro_export]
macro_rules! metrics {
    ($($group:ident = $group_name:literal $(by $divided_by:literal)? {
        $($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+
    })+) => {
        $(
            const $group: $crate::MetricGroup = $crate::MetricGroup {
                name: $group_name,
                divided_by: $crate::divided_by!($($divided_by)?),
            };
            $(
                #[doc = $help]
                pub const $constant: $crate::Metric = $crate::Metric {
                    group: $group,
                    name: $name,
                    kind: $crate::MetricKind::$kind,
                    labels: &[$($label),*],
                    help: $help,
                };
            )+
        )+

        /// All metrics of this list, in the order of `docs/metrics.md`.
        pub const ALL: &[$crate::Metric] = &[$($($constant),+),+];
    };
}

/// A part of [`metrics!`].
#[doc(hidden)]
#[macro_export]
macro_rules! divided_by {
    () => {
        None
    };
    ($label:literal) => {
        Some($label)
    };
}
