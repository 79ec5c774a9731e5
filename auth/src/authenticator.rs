//! The authenticator: every endpoint passes it the credentials of a client, and it accepts or denies them.

use crate::browser_session::{BrowserSession, BrowserSessions, NewSession};
use crate::client::{Client, SessionEnd};
use crate::credentials::Credentials;
use crate::denial::{Denial, DenialReason};
use crate::origin::{AllowedOrigins, Origin, RequestOrigin};
use crate::scope::Scope;
use crate::scram::{Exchange, ScramError};
use crate::tokens::{Token, Tokens};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Each denial within the window lengthens the delay of the next one by this step, up to the maximum.
const DELAY_STEP: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(1);
const DELAY_WINDOW: Duration = Duration::from_secs(60);

/// Decides which clients may connect and send requests.
#[derive(Debug)]
pub struct Authenticator {
    /// The known tokens, or `None` if clients need no token.
    tokens: watch::Sender<Option<Arc<Tokens>>>,
    /// True if the `Host` header of a request may name any host.
    any_host: bool,
    /// The origins, besides the server's own, whose pages may use the endpoints.
    allowed_origins: AllowedOrigins,
    /// The sessions of browsers that have signed in with a token.
    sessions: BrowserSessions,
    denial_counts: [AtomicU64; DenialReason::ALL.len()],
    /// The number of denials in the current window, and the start of that window.
    recent_denials: Mutex<(u32, Instant)>,
}

impl Authenticator {
    /// Creates an authenticator that requires no tokens. Unless `any_host` is set, the `Host` header must name this
    /// server.
    #[must_use]
    pub fn without_tokens(any_host: bool) -> Self {
        Self::new(None, any_host)
    }

    /// Creates an authenticator that requires one of these tokens.
    #[must_use]
    pub fn with_tokens(tokens: Tokens) -> Self {
        Self::new(Some(Arc::new(tokens)), true)
    }

    fn new(tokens: Option<Arc<Tokens>>, any_host: bool) -> Self {
        Self {
            tokens: watch::Sender::new(tokens),
            any_host,
            allowed_origins: AllowedOrigins::default(),
            sessions: BrowserSessions::default(),
            denial_counts: Default::default(),
            recent_denials: Mutex::new((0, Instant::now())),
        }
    }

    /// Lets pages of these origins use the endpoints.
    #[must_use]
    pub fn with_allowed_origins(self, origins: Vec<Origin>) -> Self {
        Self { allowed_origins: AllowedOrigins::new(origins), ..self }
    }

    /// Denies a request that a page of another origin has sent. Returns the origin when it is an allowed one,
    /// since the response then gets the CORS headers.
    pub(crate) fn check_origin(
        &self,
        required_scope: Scope,
        head: &Parts,
    ) -> Result<Option<HeaderValue>, Denial> {
        match self.allowed_origins.classify(head) {
            RequestOrigin::Own => Ok(None),
            RequestOrigin::Allowed(origin) => Ok(Some(origin)),
            RequestOrigin::Foreign => {
                // This guards no secret that could be guessed, so the denial is not delayed.
                self.count_denial(DenialReason::CrossSite);
                Err(Denial { reason: DenialReason::CrossSite, required_scope })
            }
        }
    }

    /// Replaces the known tokens. An authenticator that requires tokens continues to require them, and one that does
    /// not require them ignores the new ones.
    pub fn replace_tokens(&self, tokens: Tokens) {
        self.tokens.send_if_modified(|current| {
            let requires_tokens = current.is_some();
            if requires_tokens {
                *current = Some(Arc::new(tokens));
            }
            requires_tokens
        });
    }

    /// Returns true when clients need a token.
    #[must_use]
    pub fn requires_token(&self) -> bool {
        self.tokens().is_some()
    }

    /// Returns the number of denials by reason.
    #[must_use]
    pub fn denial_counts(&self) -> [(DenialReason, u64); DenialReason::ALL.len()] {
        DenialReason::ALL.map(|reason| (reason, self.denial_counts[reason as usize].load(Relaxed)))
    }

    /// Checks credentials. Denials are delayed, except those for a missing token; the delay grows with recent denials.
    ///
    /// # Errors
    /// When the client is denied.
    pub async fn authenticate(
        &self,
        required_scope: Scope,
        credentials: Credentials<'_>,
    ) -> Result<Client, Denial> {
        match self.check(required_scope, credentials) {
            Ok(client) => Ok(client),
            Err(reason) => Err(self.deny(reason, required_scope).await),
        }
    }

    /// Checks the `Host` header and the credentials of an HTTP request.
    ///
    /// # Errors
    /// When the client is denied.
    pub async fn authenticate_request(
        &self,
        required_scope: Scope,
        uri: &http::Uri,
        headers: &HeaderMap,
    ) -> Result<Client, Denial> {
        self.check_host(required_scope, uri, headers).await?;
        self.authenticate(required_scope, Credentials::from_headers(headers)).await
    }

    /// Checks like [`Self::authenticate_request`], and accepts the cookie of a browser's session in place of a token.
    ///
    /// # Errors
    /// When the client is denied.
    pub async fn authenticate_browser_request(
        &self,
        required_scope: Scope,
        head: &Parts,
    ) -> Result<Client, Denial> {
        self.check_host(required_scope, &head.uri, &head.headers).await?;
        let credentials = Credentials::from_headers(&head.headers);
        let session = if credentials == Credentials::None { self.sessions.find(&head.headers) } else { None };
        let Some(session) = session else { return self.authenticate(required_scope, credentials).await };
        match self.check_session(&session, required_scope, head) {
            Ok(client) => Ok(client),
            Err(reason) => {
                if matches!(reason, DenialReason::UnknownToken | DenialReason::ExpiredToken) {
                    self.sessions.close(&head.headers);
                }
                Err(self.deny(reason, required_scope).await)
            }
        }
    }

    /// Opens a session for the browser of a user who has this token. Returns `None` when no tokens are required.
    ///
    /// # Errors
    /// When the token is denied, or the system has no random numbers.
    pub async fn sign_in(
        &self,
        head: &Parts,
        secret: &str,
    ) -> Result<Option<(NewSession, SignedIn)>, SignInError> {
        self.check_host(Scope::Query, &head.uri, &head.headers).await?;
        self.authenticate(Scope::Query, Credentials::Token(secret.into())).await?;
        let Some(tokens) = self.tokens() else { return Ok(None) };
        let unknown = Denial { reason: DenialReason::UnknownToken, required_scope: Scope::Query };
        let token = tokens.by_secret(secret).ok_or(unknown)?;
        let session = self.sessions.open(*token.digest(), token.expires)?;
        // The session that the browser had before is replaced.
        self.sessions.close(&head.headers);
        let (name, scopes, csrf) = (token.name.clone(), token.scopes.clone(), session.csrf.clone());
        Ok(Some((session, SignedIn { name, scopes, csrf: Some(csrf) })))
    }

    /// Returns the user who is signed in, by a session cookie or by a token.
    #[must_use]
    pub fn signed_in(&self, headers: &HeaderMap) -> Option<SignedIn> {
        let tokens = self.tokens()?;
        let (token, csrf) = match Credentials::from_headers(headers) {
            Credentials::Token(secret) => (tokens.by_secret(&secret)?, None),
            Credentials::None => {
                let session = self.sessions.find(headers)?;
                (tokens.by_digest(&session.token_digest)?, Some(session.csrf))
            }
        };
        let is_valid = !token.has_expired(Timestamp::now());
        is_valid.then(|| SignedIn { name: token.name.clone(), scopes: token.scopes.clone(), csrf })
    }

    /// Ends the session that the cookie of a request identifies.
    ///
    /// # Errors
    /// When the request has no CSRF token: the page of another site may have sent it.
    pub fn sign_out(&self, head: &Parts) -> Result<(), Denial> {
        let session = self.sessions.find(&head.headers);
        if session.is_some_and(|session| !session.permits(&head.method, &head.headers)) {
            self.count_denial(DenialReason::MissingCsrfToken);
            return Err(Denial { reason: DenialReason::MissingCsrfToken, required_scope: Scope::Query });
        }
        self.sessions.close(&head.headers);
        Ok(())
    }

    async fn check_host(&self, scope: Scope, uri: &http::Uri, headers: &HeaderMap) -> Result<(), Denial> {
        if !self.any_host && !crate::host_header::names_this_server(uri, headers) {
            return Err(self.deny(DenialReason::ForeignHost, scope).await);
        }
        Ok(())
    }

    fn check_session(
        &self,
        session: &BrowserSession,
        required_scope: Scope,
        head: &Parts,
    ) -> Result<Client, DenialReason> {
        let Some(tokens) = self.tokens() else { return Ok(Client::anonymous()) };
        let token = tokens.by_digest(&session.token_digest).ok_or(DenialReason::UnknownToken)?;
        let client = self.client(token, required_scope, Some(session.end.clone()))?;
        let is_permitted = session.permits(&head.method, &head.headers);
        if is_permitted { Ok(client) } else { Err(DenialReason::MissingCsrfToken) }
    }

    /// Begins the SCRAM exchange of a PostgreSQL client, whose user name is the name of its token. Returns the
    /// reply to the client's first message.
    ///
    /// # Errors
    /// When the client's message is malformed.
    pub fn begin_scram(&self, user: &str, client_first: &str) -> Result<(PendingScram, String), ScramError> {
        let token = self.tokens().and_then(|tokens| tokens.by_name(user).cloned());
        let verifier = token.as_ref().map(|token| token.verifier().clone());
        let (exchange, reply) = Exchange::begin(verifier, user, client_first)?;
        Ok((PendingScram { exchange, token }, reply))
    }

    /// Checks the client's proof, and returns the server's own proof together with the authenticated client.
    ///
    /// # Errors
    /// When the client is denied.
    pub async fn finish_scram(
        &self,
        pending: PendingScram,
        client_final: &str,
        required_scope: Scope,
    ) -> Result<(String, Client), Denial> {
        let PendingScram { exchange, token } = pending;
        let checked = exchange.finish(client_final).map_err(|_| DenialReason::UnknownToken);
        let checked = checked.and_then(|reply| {
            let client =
                self.client(token.as_ref().ok_or(DenialReason::UnknownToken)?, required_scope, None)?;
            Ok((reply, client))
        });
        match checked {
            Ok(authenticated) => Ok(authenticated),
            Err(reason) => Err(self.deny(reason, required_scope).await),
        }
    }

    fn check(&self, required_scope: Scope, credentials: Credentials<'_>) -> Result<Client, DenialReason> {
        let Some(tokens) = self.tokens() else { return Ok(Client::anonymous()) };
        match credentials {
            Credentials::None => Err(DenialReason::MissingToken),
            Credentials::Token(secret) => {
                let token = tokens.by_secret(&secret).ok_or(DenialReason::UnknownToken)?;
                self.client(token, required_scope, None)
            }
        }
    }

    fn client(
        &self,
        token: &Token,
        required_scope: Scope,
        session: Option<SessionEnd>,
    ) -> Result<Client, DenialReason> {
        check_token(token, required_scope)?;
        Ok(Client::authenticated(token, required_scope, self.tokens.subscribe(), session))
    }

    /// Counts a denial that was decided elsewhere.
    pub fn count_denial(&self, reason: DenialReason) {
        self.denial_counts[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts a denial, and delays it.
    async fn deny(&self, reason: DenialReason, required_scope: Scope) -> Denial {
        self.count_denial(reason);
        // A request that lacks a token is not an attempt to guess one.
        if !matches!(reason, DenialReason::MissingToken | DenialReason::MissingCsrfToken) {
            tokio::time::sleep(self.next_delay()).await;
        }
        Denial { reason, required_scope }
    }

    fn next_delay(&self) -> Duration {
        let mut recent = self.recent_denials.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.1.elapsed() > DELAY_WINDOW {
            *recent = (0, Instant::now());
        }
        recent.0 = recent.0.saturating_add(1);
        DELAY_STEP.saturating_mul(recent.0).min(MAX_DELAY)
    }

    fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.borrow().clone()
    }
}

/// The user who is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The name of the token.
    pub name: String,
    /// The scopes of the token.
    pub scopes: Vec<Scope>,
    /// The CSRF token of the session, or `None` if the request carries a token itself.
    pub csrf: Option<String>,
}

/// The reason why no session was opened.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The token is not accepted.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The system has no random numbers.
    #[error(transparent)]
    NoRandomness(#[from] std::io::Error),
}

/// A SCRAM exchange that waits for the client's proof.
#[derive(Debug)]
pub struct PendingScram {
    exchange: Exchange,
    token: Option<Token>,
}

/// Checks that a token has not expired and has the required scope.
pub(crate) fn check_token(token: &Token, required_scope: Scope) -> Result<(), DenialReason> {
    if token.has_expired(Timestamp::now()) {
        return Err(DenialReason::ExpiredToken);
    }
    if !token.allows(required_scope) {
        return Err(DenialReason::MissingScope);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use http::header;

    fn authenticator(scopes: &[Scope], expires: Option<&str>) -> (Authenticator, Secret) {
        let secret = Secret::generate().unwrap();
        let expires = expires.map(|time| time.parse().unwrap());
        let mut tokens = Tokens::default();
        tokens.add(Token::new("shipper", scopes, expires, &secret).unwrap()).unwrap();
        (Authenticator::with_tokens(tokens), secret)
    }

    #[tokio::test]
    async fn only_a_valid_token_with_the_scope_is_accepted() {
        let (authenticator, secret) = authenticator(&[Scope::Ingest], Some("2999-01-01T00:00:00Z"));
        let result = async |scope, credentials: Credentials<'_>| {
            authenticator.authenticate(scope, credentials).await.map(drop).map_err(|denial| denial.reason)
        };
        let token = || Credentials::Token(secret.reveal().into());
        assert_eq!(result(Scope::Ingest, token()).await, Ok(()));
        assert_eq!(result(Scope::Query, token()).await, Err(DenialReason::MissingScope));
        assert_eq!(
            result(Scope::Ingest, Credentials::Token("flt_x".into())).await,
            Err(DenialReason::UnknownToken)
        );
        assert_eq!(result(Scope::Ingest, Credentials::None).await, Err(DenialReason::MissingToken));
        assert_eq!(authenticator.denial_counts().map(|(_, count)| count), [1, 1, 0, 1, 0, 0, 0, 0]);
        let (authenticator, secret) = self::authenticator(&[Scope::Admin], Some("2020-01-01T00:00:00Z"));
        let token = Credentials::Token(secret.reveal().into());
        let denial = authenticator.authenticate(Scope::Ingest, token).await.unwrap_err();
        assert_eq!((denial.reason, denial.is_unauthenticated()), (DenialReason::ExpiredToken, true));
    }

    #[tokio::test]
    async fn without_tokens_the_host_header_is_checked() {
        let authenticator = Authenticator::without_tokens(false);
        let mut headers = HeaderMap::new();
        let uri = http::Uri::from_static("/metrics");
        headers.insert(header::HOST, "evil.example:7070".parse().unwrap());
        let denial = authenticator.authenticate_request(Scope::Query, &uri, &headers).await.unwrap_err();
        assert_eq!((denial.reason, denial.is_unauthenticated()), (DenialReason::ForeignHost, false));
        headers.insert(header::HOST, "localhost:7070".parse().unwrap());
        assert!(authenticator.authenticate_request(Scope::Query, &uri, &headers).await.is_ok());
        let any_host = Authenticator::without_tokens(true);
        assert!(any_host.authenticate_request(Scope::Query, &uri, &headers).await.is_ok());
    }

    #[tokio::test]
    async fn tokens_can_be_replaced_but_never_become_required() {
        let (authenticator, secret) = authenticator(&[Scope::Query], None);
        authenticator.replace_tokens(Tokens::default());
        let token = Credentials::Token(secret.reveal().into());
        let denial = authenticator.authenticate(Scope::Query, token).await.unwrap_err();
        assert_eq!(denial.reason, DenialReason::UnknownToken);
        let without_tokens = Authenticator::without_tokens(true);
        without_tokens.replace_tokens(Tokens::default());
        assert!(!without_tokens.requires_token());
    }
}
