//! The gate: every door shows it what a client says of itself, and hears yes or no.

use crate::client::Client;
use crate::origin::{Origin, Origins, Site};
use crate::scope::Scope;
use crate::scram::{Exchange, ScramError};
use crate::tokens::{Token, Tokens};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Each no of the last minute makes the next one slower by this, up to the longest.
const SLOWER: Duration = Duration::from_millis(50);
const SLOWEST: Duration = Duration::from_secs(1);
const REMEMBERED: Duration = Duration::from_secs(60);

/// What to do when a page of another origin is rejected.
pub const CROSS_SITE_REMEDY: &str =
    "start the server with --allow-origin and the origin of the page, if the page is yours";

/// What a client says of itself.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials<'c> {
    /// Nothing.
    None,
    /// A token: as a bearer token, or as a password.
    Token(Cow<'c, str>),
}

/// Secrets are never printed.
impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing",
            Self::Token(_) => "a token",
        })
    }
}

/// Why somebody may not come in: a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No token was sent.
    Missing,
    /// Nobody knows the token.
    Wrong,
    /// It has ended.
    Expired,
    /// It is for something else.
    Scope,
    /// The request names a host that is not us.
    Host,
    /// A page of another origin sent it through a browser.
    CrossSite,
    /// Its address has as many connections to the PostgreSQL listener as one may have.
    Connections,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Missing,
        Self::Wrong,
        Self::Expired,
        Self::Scope,
        Self::Host,
        Self::CrossSite,
        Self::Connections,
    ];

    /// A short, stable word: a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong => "wrong",
            Self::Expired => "expired",
            Self::Scope => "scope",
            Self::Host => "host",
            Self::CrossSite => "cross_site",
            Self::Connections => "connections",
        }
    }
}

/// A no, in a sentence for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Denied {
    /// Why.
    pub reason: Reason,
    /// What a token would have to be for.
    pub wanted: Scope,
}

impl Denied {
    /// Whether another token could help: otherwise it is the wrong one for this.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        !matches!(self.reason, Reason::Scope | Reason::Host | Reason::CrossSite | Reason::Connections)
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let wanted = self.wanted;
        match self.reason {
            Reason::Missing | Reason::Wrong | Reason::Expired => {
                format!("send Authorization: Bearer with a token of the scope {wanted}")
            }
            Reason::Scope | Reason::Host => format!(
                "use a token of the scope {wanted}, and name this server by its address or as localhost"
            ),
            Reason::CrossSite => CROSS_SITE_REMEDY.to_owned(),
            Reason::Connections => "close connections that are not used".to_owned(),
        }
    }

    fn sentence(&self) -> String {
        let wanted = self.wanted;
        match self.reason {
            Reason::Missing => format!("a token of the scope {wanted} is needed"),
            Reason::Wrong => "the token is not known here".to_owned(),
            Reason::Expired => "the token has expired".to_owned(),
            Reason::Scope => format!("the token is not of the scope {wanted}"),
            Reason::Host => "the request names a host that is not this server".to_owned(),
            Reason::CrossSite => {
                "a page of another origin sent the request through a browser (see Origin and Sec-Fetch-Site)"
                    .to_owned()
            }
            Reason::Connections => "this address has too many connections already".to_owned(),
        }
    }
}

/// Decides who may come in.
#[derive(Debug)]
pub struct Gate {
    /// Nobody has to show a token when there are none.
    tokens: watch::Sender<Option<Arc<Tokens>>>,
    /// Whether requests may name any host.
    any_host: bool,
    /// Pages that may use the endpoints, beside our own.
    origins: Origins,
    denied: [AtomicU64; Reason::ALL.len()],
    /// How many noes there were lately, and when that was last looked at.
    lately: Mutex<(u32, Instant)>,
}

impl Gate {
    /// One that lets everybody in who means us; with `any_host`, everybody.
    #[must_use]
    pub fn open(any_host: bool) -> Self {
        Self::new(None, any_host)
    }

    /// One that lets in who has a token.
    #[must_use]
    pub fn with(tokens: Tokens) -> Self {
        Self::new(Some(Arc::new(tokens)), true)
    }

    fn new(tokens: Option<Arc<Tokens>>, any_host: bool) -> Self {
        let denied = Default::default();
        let tokens = watch::Sender::new(tokens);
        let origins = Origins::default();
        Self { tokens, any_host, origins, denied, lately: Mutex::new((0, Instant::now())) }
    }

    /// Lets pages of these origins use the endpoints.
    #[must_use]
    pub fn allowing(self, origins: Vec<Origin>) -> Self {
        Self { origins: Origins::new(origins), ..self }
    }

    /// Says no to what a page of another origin has sent; one of a listed origin is named, since it gets the headers
    /// of CORS.
    pub(crate) fn screen(&self, wanted: Scope, head: &Parts) -> Result<Option<HeaderValue>, Denied> {
        match self.origins.site(head) {
            Site::Own => Ok(None),
            Site::Listed(origin) => Ok(Some(origin)),
            Site::Other => {
                // Nobody guesses anything here, so nobody is made to wait.
                self.count(Reason::CrossSite);
                Err(Denied { reason: Reason::CrossSite, wanted })
            }
        }
    }

    /// Knows other tokens from now on. A gate that is open stays open, and one that is not does not become it.
    pub fn replace(&self, tokens: Tokens) {
        self.tokens.send_if_modified(|held| {
            let is_closed = held.is_some();
            if is_closed {
                *held = Some(Arc::new(tokens));
            }
            is_closed
        });
    }

    /// Whether a client has to say something of itself at all.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.tokens().is_some()
    }

    /// How often it said no, by why.
    #[must_use]
    pub fn denials(&self) -> [(Reason, u64); Reason::ALL.len()] {
        Reason::ALL.map(|reason| (reason, self.denied[reason as usize].load(Relaxed)))
    }

    /// Says yes or no; a no takes a while when there were many.
    ///
    /// # Errors
    /// When it is no.
    pub async fn admit(&self, wanted: Scope, credentials: Credentials<'_>) -> Result<Client, Denied> {
        match self.check(wanted, credentials) {
            Ok(client) => Ok(client),
            Err(reason) => Err(self.deny(reason, wanted).await),
        }
    }

    /// Says yes or no to a request over HTTP.
    ///
    /// # Errors
    /// When it is no.
    pub async fn admit_request(
        &self,
        wanted: Scope,
        uri: &http::Uri,
        headers: &HeaderMap,
    ) -> Result<Client, Denied> {
        if !self.any_host && !crate::host::is_ours(uri, headers) {
            return Err(self.deny(Reason::Host, wanted).await);
        }
        self.admit(wanted, credentials(headers)).await
    }

    /// Begins the proof of a PostgreSQL client, who says the name of its token as its user.
    ///
    /// # Errors
    /// When the client's message is none.
    pub fn begin_proof(&self, user: &str, first: &str) -> Result<(Proof, String), ScramError> {
        let token = self.tokens().and_then(|tokens| tokens.named(user).cloned());
        let verifier = token.as_ref().map(|token| token.verifier().clone());
        let (exchange, reply) = Exchange::begin(verifier, user, first)?;
        Ok((Proof { exchange, token }, reply))
    }

    /// Ends it, and returns our own proof together with the client that was admitted.
    ///
    /// # Errors
    /// When it is no.
    pub async fn end_proof(
        &self,
        proof: Proof,
        last: &str,
        wanted: Scope,
    ) -> Result<(String, Client), Denied> {
        let Proof { exchange, token } = proof;
        let checked = exchange.finish(last).map_err(|_| Reason::Wrong);
        let checked = checked.and_then(|reply| {
            let client = self.client(token.as_ref().ok_or(Reason::Wrong)?, wanted)?;
            Ok((reply, client))
        });
        match checked {
            Ok(proved) => Ok(proved),
            Err(reason) => Err(self.deny(reason, wanted).await),
        }
    }

    fn check(&self, wanted: Scope, credentials: Credentials<'_>) -> Result<Client, Reason> {
        let Some(tokens) = self.tokens() else { return Ok(Client::anonymous()) };
        match credentials {
            Credentials::None => Err(Reason::Missing),
            Credentials::Token(sent) => self.client(tokens.find(&sent).ok_or(Reason::Wrong)?, wanted),
        }
    }

    fn client(&self, token: &Token, wanted: Scope) -> Result<Client, Reason> {
        judge(token, wanted)?;
        Ok(Client::of(token, wanted, self.tokens.subscribe()))
    }

    /// Counts a no that was said elsewhere.
    pub fn count(&self, reason: Reason) {
        self.denied[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts a no, and waits.
    async fn deny(&self, reason: Reason, wanted: Scope) -> Denied {
        self.count(reason);
        // A token that was forgotten is no attempt at one.
        if reason != Reason::Missing {
            tokio::time::sleep(self.delay()).await;
        }
        Denied { reason, wanted }
    }

    fn delay(&self) -> Duration {
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        if lately.1.elapsed() > REMEMBERED {
            *lately = (0, Instant::now());
        }
        lately.0 = lately.0.saturating_add(1);
        SLOWER.saturating_mul(lately.0).min(SLOWEST)
    }

    fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.borrow().clone()
    }
}

/// A proof that was begun.
#[derive(Debug)]
pub struct Proof {
    exchange: Exchange,
    token: Option<Token>,
}

pub(crate) fn judge(token: &Token, wanted: Scope) -> Result<(), Reason> {
    if token.has_expired(Timestamp::now()) {
        return Err(Reason::Expired);
    }
    if !token.allows(wanted) {
        return Err(Reason::Scope);
    }
    Ok(())
}

/// What the headers of a request say: a bearer token, or one as the password of `Basic`, whatever the name.
#[must_use]
pub fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    let said = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, rest) = said.split_once(' ').unwrap_or((said, ""));
    let token = match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(Cow::Borrowed(rest.trim())),
        "basic" => password(rest.trim()).map(Cow::Owned),
        _ => None,
    };
    token.filter(|token| !token.is_empty()).map_or(Credentials::None, Credentials::Token)
}

/// The password in what `Basic` encodes.
fn password(encoded: &str) -> Option<String> {
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn gate(scopes: &[Scope], expires: Option<&str>) -> (Gate, Secret) {
        let secret = Secret::new().unwrap();
        let expires = expires.map(|time| time.parse().unwrap());
        let mut tokens = Tokens::default();
        tokens.add(Token::new("shipper", scopes, expires, &secret).unwrap()).unwrap();
        (Gate::with(tokens), secret)
    }

    #[tokio::test]
    async fn only_the_right_token_comes_in() {
        let (gate, secret) = gate(&[Scope::Ingest], Some("2999-01-01T00:00:00Z"));
        let asked = async |wanted, sent: Credentials<'_>| {
            gate.admit(wanted, sent).await.map(drop).map_err(|denied| denied.reason)
        };
        assert_eq!(asked(Scope::Ingest, Credentials::Token(secret.reveal().into())).await, Ok(()));
        assert_eq!(asked(Scope::Query, Credentials::Token(secret.reveal().into())).await, Err(Reason::Scope));
        assert_eq!(asked(Scope::Ingest, Credentials::Token("flt_x".into())).await, Err(Reason::Wrong));
        assert_eq!(asked(Scope::Ingest, Credentials::None).await, Err(Reason::Missing));
        assert_eq!(gate.denials().map(|(_, count)| count), [1, 1, 0, 1, 0, 0, 0]);
        let (gate, secret) = self::gate(&[Scope::Admin], Some("2020-01-01T00:00:00Z"));
        let denied = gate.admit(Scope::Ingest, Credentials::Token(secret.reveal().into())).await.unwrap_err();
        assert_eq!((denied.reason, denied.is_unauthenticated()), (Reason::Expired, true));
    }

    #[tokio::test]
    async fn an_open_gate_minds_the_host() {
        let gate = Gate::open(false);
        let mut headers = HeaderMap::new();
        let uri = http::Uri::from_static("/metrics");
        headers.insert(header::HOST, "evil.example:7070".parse().unwrap());
        let denied = gate.admit_request(Scope::Query, &uri, &headers).await.unwrap_err();
        assert_eq!((denied.reason, denied.is_unauthenticated()), (Reason::Host, false));
        headers.insert(header::HOST, "localhost:7070".parse().unwrap());
        assert!(gate.admit_request(Scope::Query, &uri, &headers).await.is_ok());
        assert!(Gate::open(true).admit_request(Scope::Query, &uri, &headers).await.is_ok());
    }

    #[tokio::test]
    async fn tokens_can_be_replaced_and_an_open_gate_stays_open() {
        let (gate, secret) = gate(&[Scope::Query], None);
        gate.replace(Tokens::default());
        let denied = gate.admit(Scope::Query, Credentials::Token(secret.reveal().into())).await.unwrap_err();
        assert_eq!(denied.reason, Reason::Wrong);
        let open = Gate::open(true);
        open.replace(Tokens::default());
        assert!(!open.asks());
    }

    #[test]
    fn bearers_are_read() {
        let said = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, text.parse().unwrap());
            credentials(&headers) == Credentials::Token("abc".into())
        };
        assert!(said("Bearer abc") && said("bearer  abc "));
        assert!(said("Basic YW5uOmFiYw=="));
        assert!(!said("Basic abc") && !said("Bearer") && !said("abc"));
    }
}
