//! Browser sessions: a user signs in once with a token, and then the browser sends a cookie instead of the token.
//!
//! A browser attaches a cookie to a request no matter which page caused the request, so a cookie proves less than a
//! token does. A request that changes something or is expensive therefore repeats a second secret, the CSRF token, in a
//! header that only Faultline's own page knows and sets.
//!
//! Invariants:
//! - The table stores hashes of session ids, and never a token: a session refers to its token by the token's hash.
//! - A session never grants more than its token: it ends when the token expires, is removed or loses the scope.
//! - What a session opened ends with it: a closed session drops the sender that clients of the session listen to.
//! - The table is bounded. When it is full, the session that would expire first is removed.

use crate::client::SessionEnd;
use crate::secret::{Secret, sha256};
use http::{HeaderMap, HeaderName, Method, header};
use jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// The name of the cookie that holds the session id.
const COOKIE: &str = "faultline_session";
/// The header in which a page repeats the CSRF token.
pub const CSRF_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");
/// The time after which a user must sign in again.
const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// The maximum number of sessions at the same time.
const MAX_SESSIONS: usize = 1_000;

/// The sessions of a server. They are held in memory only, so a restart ends them.
#[derive(Debug, Default)]
pub(crate) struct BrowserSessions(Mutex<Table>);

/// The sessions by the hash of their ids. Removing one drops its sender.
type Table = HashMap<[u8; 32], (BrowserSession, watch::Sender<()>)>;

/// A session as it is stored in the table.
#[derive(Debug, Clone)]
pub(crate) struct BrowserSession {
    /// The hash of the token that the user signed in with.
    pub(crate) token_digest: [u8; 32],
    /// The CSRF token, which only Faultline's own page can read.
    pub(crate) csrf: String,
    /// The end of the session, which its clients wait for.
    pub(crate) end: SessionEnd,
}

/// A session that was just opened.
#[derive(Debug)]
pub struct NewSession {
    id: Secret,
    pub(crate) csrf: String,
}

impl NewSession {
    /// Returns the value of the `Set-Cookie` header. With `is_encrypted`, the browser sends the cookie over TLS only.
    #[must_use]
    pub fn cookie(&self, is_encrypted: bool) -> String {
        cookie(self.id.reveal(), LIFETIME.as_secs(), is_encrypted)
    }
}

/// Returns the value of the `Set-Cookie` header that removes the cookie.
#[must_use]
pub fn removal_cookie(is_encrypted: bool) -> String {
    cookie("", 0, is_encrypted)
}

fn cookie(value: &str, max_age_s: i64, is_encrypted: bool) -> String {
    let secure = if is_encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}")
}

impl BrowserSessions {
    /// Opens a session for a token.
    pub(crate) fn open(
        &self,
        token_digest: [u8; 32],
        token_expires: Option<Timestamp>,
    ) -> std::io::Result<NewSession> {
        let (id, csrf) = (Secret::generate()?, Secret::generate()?.reveal().to_owned());
        let now = Timestamp::now();
        let end = now.saturating_add(LIFETIME).unwrap_or(Timestamp::MAX);
        let expires = token_expires.map_or(end, |token_end| token_end.min(end));
        let mut sessions = self.lock();
        sessions.retain(|_, (session, _)| session.end.expires > now);
        if sessions.len() >= MAX_SESSIONS {
            let first = sessions.iter().min_by_key(|(_, (session, _))| session.end.expires);
            let first = first.map(|(id, _)| *id);
            first.map(|id| sessions.remove(&id));
        }
        let (open, closed) = watch::channel(());
        let session =
            BrowserSession { token_digest, csrf: csrf.clone(), end: SessionEnd { expires, closed } };
        sessions.insert(id.digest(), (session, open));
        Ok(NewSession { id, csrf })
    }

    /// Returns the session that the cookie of a request identifies.
    pub(crate) fn find(&self, headers: &HeaderMap) -> Option<BrowserSession> {
        let now = Timestamp::now();
        let sessions = self.lock();
        session_ids(headers)
            .filter_map(|id| sessions.get(&sha256(id)))
            .find(|(session, _)| session.end.expires > now)
            .map(|(session, _)| session.clone())
    }

    /// Ends the sessions that the cookies of a request identify.
    pub(crate) fn close(&self, headers: &HeaderMap) {
        let mut sessions = self.lock();
        session_ids(headers).for_each(|id| drop(sessions.remove(&sha256(id))));
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BrowserSession {
    /// Returns true when a request may use the session: either it only reads, or it has the CSRF token.
    pub(crate) fn permits(&self, method: &Method, headers: &HeaderMap) -> bool {
        let is_safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let sent = headers.get(CSRF_HEADER).map(http::HeaderValue::as_bytes).unwrap_or_default();
        is_safe || bool::from(sent.ct_eq(self.csrf.as_bytes()))
    }
}

/// Returns the session ids among the cookies of a request.
fn session_ids(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, value)| *name == COOKIE && !value.is_empty()).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_with(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, format!("theme=dark; {pair}").parse().unwrap())])
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_is_closed() {
        let sessions = BrowserSessions::default();
        let opened = sessions.open([7; 32], None).unwrap();
        let cookie = opened.cookie(true);
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Secure")
        );
        assert!(!opened.cookie(false).contains("Secure"));
        let headers = request_with(&cookie);
        assert_eq!(sessions.find(&headers).unwrap().token_digest, [7; 32]);
        assert!(sessions.find(&request_with("faultline_session=flt_guessed")).is_none());
        assert!(!format!("{sessions:?}{opened:?}").contains(opened.id.reveal()));
        sessions.close(&headers);
        assert!(sessions.find(&headers).is_none());
    }

    #[test]
    fn a_session_ends_with_its_token_and_the_table_is_bounded() {
        let sessions = BrowserSessions::default();
        let ended = sessions.open([1; 32], "2020-01-01T00:00:00Z".parse().ok()).unwrap();
        assert!(sessions.find(&request_with(&ended.cookie(false))).is_none());
        let soon = Timestamp::now().saturating_add(SignedDuration::from_mins(1)).unwrap();
        let first = sessions.open([1; 32], Some(soon)).unwrap();
        for _ in 0..MAX_SESSIONS {
            sessions.open([2; 32], None).unwrap();
        }
        assert_eq!(sessions.lock().len(), MAX_SESSIONS);
        assert!(sessions.find(&request_with(&first.cookie(false))).is_none(), "the first to end makes room");
    }

    #[test]
    fn what_changes_or_costs_something_needs_the_csrf_token() {
        let sessions = BrowserSessions::default();
        let opened = sessions.open([1; 32], None).unwrap();
        let mut headers = request_with(&opened.cookie(false));
        let session = sessions.find(&headers).unwrap();
        assert!(session.permits(&Method::GET, &headers) && !session.permits(&Method::POST, &headers));
        headers.insert(CSRF_HEADER, "flt_guessed".parse().unwrap());
        assert!(!session.permits(&Method::POST, &headers));
        headers.insert(CSRF_HEADER, opened.csrf.parse().unwrap());
        assert!(session.permits(&Method::POST, &headers) && session.permits(&Method::DELETE, &headers));
    }
}
