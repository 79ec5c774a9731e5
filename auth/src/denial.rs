//! Denials: the reasons why a request or a connection is not accepted, as a message for the client and as a metric
//! label.

use crate::scope::Scope;

/// The remedy for a request of a page of another origin.
pub const CROSS_SITE_REMEDY: &str =
    "start the server with --allow-origin and the origin of the page, if the page is yours";

/// The reason for a denial, from a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialReason {
    /// The client sent no token.
    MissingToken,
    /// The client sent a token that the server does not know.
    UnknownToken,
    /// The token has expired.
    ExpiredToken,
    /// The token does not have the required scope.
    MissingScope,
    /// The `Host` header of the request names another host.
    ForeignHost,
    /// A page of another origin sent the request through a browser.
    CrossSite,
    /// A request with a session cookie lacks the CSRF token.
    MissingCsrfToken,
    /// The address of the client has the maximum number of connections to the PostgreSQL listener.
    TooManyConnections,
}

impl DenialReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 8] = [
        Self::MissingToken,
        Self::UnknownToken,
        Self::ExpiredToken,
        Self::MissingScope,
        Self::ForeignHost,
        Self::CrossSite,
        Self::MissingCsrfToken,
        Self::TooManyConnections,
    ];

    /// Returns the value of the metric label, which is stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingToken => "missing",
            Self::UnknownToken => "wrong",
            Self::ExpiredToken => "expired",
            Self::MissingScope => "scope",
            Self::ForeignHost => "host",
            Self::CrossSite => "cross_site",
            Self::MissingCsrfToken => "csrf",
            Self::TooManyConnections => "connections",
        }
    }
}

/// A denied request or connection. It displays as a sentence for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct Denial {
    /// The reason.
    pub reason: DenialReason,
    /// The scope that a token needs here.
    pub required_scope: Scope,
}

impl Denial {
    /// Returns true when the client is not authenticated, so that another token could help. Otherwise the client
    /// is known but not permitted.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        matches!(
            self.reason,
            DenialReason::MissingToken | DenialReason::UnknownToken | DenialReason::ExpiredToken
        )
    }

    /// Returns a sentence that says what the client can do about the denial.
    #[must_use]
    pub fn remedy(&self) -> String {
        let scope = self.required_scope;
        match self.reason {
            DenialReason::MissingToken | DenialReason::UnknownToken | DenialReason::ExpiredToken => {
                format!("send Authorization: Bearer TOKEN, with a token that has the scope {scope}")
            }
            DenialReason::MissingScope => format!("use a token that has the scope {scope}"),
            DenialReason::ForeignHost => "address this server by its IP address or as localhost".to_owned(),
            DenialReason::CrossSite => CROSS_SITE_REMEDY.to_owned(),
            DenialReason::MissingCsrfToken => {
                "send the csrf of GET /api/v1/session in X-CSRF-Token, or a token instead of the cookie"
                    .to_owned()
            }
            DenialReason::TooManyConnections => "close connections that are not used".to_owned(),
        }
    }

    /// Returns the message for the client. It has no characters that JSON escapes; `revocation` relies on that.
    fn message(&self) -> String {
        let scope = self.required_scope;
        match self.reason {
            DenialReason::MissingToken => format!("a token with the scope {scope} is required"),
            DenialReason::UnknownToken => "this server does not know the token".to_owned(),
            DenialReason::ExpiredToken => "the token has expired".to_owned(),
            DenialReason::MissingScope => format!("the token does not have the scope {scope}"),
            DenialReason::ForeignHost => "the Host header of the request names another server".to_owned(),
            DenialReason::CrossSite => {
                "a web page of another origin sent the request (see its Origin and Sec-Fetch-Site headers)"
                    .to_owned()
            }
            DenialReason::MissingCsrfToken => {
                "a request with a session cookie must have the header X-CSRF-Token".to_owned()
            }
            DenialReason::TooManyConnections => {
                "this address has the maximum number of connections".to_owned()
            }
        }
    }
}
