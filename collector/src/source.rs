//! The receivers through which records come in.

/// A receiver, named by the data that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// `POST /v1/envelopes`.
    Envelopes,
    /// OTLP spans.
    OtlpTraces,
    /// OTLP log records.
    OtlpLogs,
    /// OTLP metrics.
    OtlpMetrics,
    /// Log files that the server tails.
    Files,
    /// Lines of standard input.
    Stdin,
}

impl Source {
    /// All sources.
    pub const ALL: [Self; 6] =
        [Self::Envelopes, Self::OtlpTraces, Self::OtlpLogs, Self::OtlpMetrics, Self::Files, Self::Stdin];

    /// Returns a short, stable name: a column value and a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Envelopes => "envelopes",
            Self::OtlpTraces => "otlp_traces",
            Self::OtlpLogs => "otlp_logs",
            Self::OtlpMetrics => "otlp_metrics",
            Self::Files => "files",
            Self::Stdin => "stdin",
        }
    }
}
