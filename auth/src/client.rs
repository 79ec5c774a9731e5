//! An authenticated client: the token that it has, and a future that completes when that token is no longer sufficient.

use crate::authenticator::check_token;
use crate::denial::{Denial, DenialReason};
use crate::scope::Scope;
use crate::tokens::{Token, Tokens};
use jiff::Timestamp;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The interval at which the expiry of a token is compared with the system clock. One long timer would not suffice,
/// since the clock may be changed meanwhile.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// An authenticated client. Handlers find it among the extensions of their request.
#[derive(Debug, Clone)]
pub struct Client(Option<Arc<Grant>>);

/// The token that a client was authenticated with, and the scope that was checked.
#[derive(Debug)]
struct Grant {
    token_name: String,
    digest: [u8; 32],
    required_scope: Scope,
    /// The known tokens, which can change while the client is connected.
    tokens: watch::Receiver<Option<Arc<Tokens>>>,
    /// The end of the browser session that stands for the token, if there is one.
    session: Option<SessionEnd>,
}

/// The end of a browser session.
#[derive(Debug, Clone)]
pub(crate) struct SessionEnd {
    pub(crate) expires: Timestamp,
    /// The sender of this channel is dropped when the session is closed.
    pub(crate) closed: watch::Receiver<()>,
}

impl Client {
    /// Returns a client of a server that requires no tokens.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(None)
    }

    pub(crate) fn authenticated(
        token: &Token,
        required_scope: Scope,
        tokens: watch::Receiver<Option<Arc<Tokens>>>,
        session: Option<SessionEnd>,
    ) -> Self {
        let (token_name, digest) = (token.name.clone(), *token.digest());
        Self(Some(Arc::new(Grant { token_name, digest, required_scope, tokens, session })))
    }

    /// Returns the name of the client's token, or `None` when the server requires no tokens.
    #[must_use]
    pub fn token_name(&self) -> Option<&str> {
        self.0.as_deref().map(|grant| grant.token_name.as_str())
    }

    /// Completes when the token is removed, replaced, expires, or loses the scope that the client was
    /// authenticated for, or when the browser session ends that stands for it.
    pub async fn revoked(&self) -> Denial {
        let Some(grant) = &self.0 else { return pending().await };
        let mut tokens = grant.tokens.clone();
        loop {
            // The guard of the channel is dropped before the next await.
            let checked = grant.check(tokens.borrow_and_update().as_deref());
            let expires = match checked {
                Ok(expires) => expires,
                Err(reason) => return Denial { reason, required_scope: grant.required_scope },
            };
            let next_expiry_check = async {
                match expires {
                    Some(_) => tokio::time::sleep(EXPIRY_CHECK_INTERVAL).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = tokens.changed() => if changed.is_err() { return pending().await },
                () = grant.session_closed() => {
                    return Denial { reason: DenialReason::UnknownToken, required_scope: grant.required_scope };
                }
                () = next_expiry_check => {}
            }
        }
    }
}

impl Grant {
    /// Checks the token again, and returns when it expires.
    fn check(&self, tokens: Option<&Tokens>) -> Result<Option<Timestamp>, DenialReason> {
        let token =
            tokens.and_then(|tokens| tokens.by_digest(&self.digest)).ok_or(DenialReason::UnknownToken)?;
        check_token(token, self.required_scope)?;
        let session_expires = self.session.as_ref().map(|session| session.expires);
        if session_expires.is_some_and(|expires| expires <= Timestamp::now()) {
            return Err(DenialReason::ExpiredToken);
        }
        Ok(token.expires.or(session_expires))
    }

    async fn session_closed(&self) {
        let Some(session) = &self.session else { return pending().await };
        let mut closed = session.closed.clone();
        while closed.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticator::Authenticator;
    use crate::credentials::Credentials;
    use crate::secret::Secret;

    fn tokens(secret: &Secret, scopes: &[Scope], expires: Option<Timestamp>) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.add(Token::new("reader", scopes, expires, secret).unwrap()).unwrap();
        tokens
    }

    #[tokio::test]
    async fn a_client_is_told_when_its_token_is_no_longer_enough() {
        let secret = Secret::generate().unwrap();
        let other = Secret::generate().unwrap();
        let past = "2020-01-01T00:00:00Z".parse().ok();
        let cases = [
            (Tokens::default(), DenialReason::UnknownToken),
            (tokens(&other, &[Scope::Query], None), DenialReason::UnknownToken),
            (tokens(&secret, &[Scope::Ingest], None), DenialReason::MissingScope),
            (tokens(&secret, &[Scope::Query], past), DenialReason::ExpiredToken),
        ];
        for (replacement, reason) in cases {
            let authenticator = Authenticator::with_tokens(tokens(&secret, &[Scope::Query], None));
            let credentials = Credentials::Token(secret.reveal().into());
            let client = authenticator.authenticate(Scope::Query, credentials).await.unwrap();
            assert_eq!(client.token_name(), Some("reader"));
            let wait = Duration::from_millis(50);
            authenticator.replace_tokens(tokens(&secret, &[Scope::Query, Scope::Ingest], None));
            assert!(tokio::time::timeout(wait, client.revoked()).await.is_err(), "the token is still enough");
            authenticator.replace_tokens(replacement);
            let denial = tokio::time::timeout(Duration::from_secs(5), client.revoked()).await.unwrap();
            assert_eq!(denial.reason, reason);
        }
    }
}
