//! A client that was admitted: which token it has, and when that token stops being enough.

use crate::gate::{Denied, Reason, judge};
use crate::scope::Scope;
use crate::tokens::{Token, Tokens};
use jiff::Timestamp;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often the expiry of a token is compared with the clock, which may be set while we wait.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A client that was admitted. Handlers find it among the extensions of their request.
#[derive(Debug, Clone)]
pub struct Client(Option<Arc<Admission>>);

/// What a client was admitted by.
#[derive(Debug)]
struct Admission {
    name: String,
    digest: [u8; 32],
    wanted: Scope,
    /// The tokens that are known; they can change while the client is connected.
    tokens: watch::Receiver<Option<Arc<Tokens>>>,
}

impl Client {
    /// A client of a server that asks for no tokens.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(None)
    }

    pub(crate) fn of(token: &Token, wanted: Scope, tokens: watch::Receiver<Option<Arc<Tokens>>>) -> Self {
        let (name, digest) = (token.name.clone(), *token.digest());
        Self(Some(Arc::new(Admission { name, digest, wanted, tokens })))
    }

    /// The name of its token; none when nobody needs one.
    #[must_use]
    pub fn token_name(&self) -> Option<&str> {
        self.0.as_deref().map(|admission| admission.name.as_str())
    }

    /// Is ready when the token is removed, replaced, expires, or loses the scope that it was admitted for.
    pub async fn revoked(&self) -> Denied {
        let Some(admission) = &self.0 else { return pending().await };
        let mut tokens = admission.tokens.clone();
        loop {
            // Only compared: the guard of the channel is not held while we wait.
            let checked = admission.check(tokens.borrow_and_update().as_deref());
            let expires = match checked {
                Ok(expires) => expires,
                Err(reason) => return Denied { reason, wanted: admission.wanted },
            };
            let expired = async {
                match expires {
                    Some(_) => tokio::time::sleep(LOOK_EVERY).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = tokens.changed() => if changed.is_err() { return pending().await },
                () = expired => {}
            }
        }
    }
}

impl Admission {
    /// When the token expires, if it would still be admitted.
    fn check(&self, tokens: Option<&Tokens>) -> Result<Option<Timestamp>, Reason> {
        let token = tokens.and_then(|tokens| tokens.with_digest(&self.digest)).ok_or(Reason::Wrong)?;
        judge(token, self.wanted)?;
        Ok(token.expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Credentials, Gate};
    use crate::secret::Secret;

    fn tokens(secret: &Secret, scopes: &[Scope], expires: Option<Timestamp>) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.add(Token::new("reader", scopes, expires, secret).unwrap()).unwrap();
        tokens
    }

    #[tokio::test]
    async fn a_client_learns_that_its_token_is_no_longer_enough() {
        let secret = Secret::new().unwrap();
        let other = Secret::new().unwrap();
        let past = "2020-01-01T00:00:00Z".parse().ok();
        let cases = [
            (Tokens::default(), Reason::Wrong),
            (tokens(&other, &[Scope::Query], None), Reason::Wrong),
            (tokens(&secret, &[Scope::Ingest], None), Reason::Scope),
            (tokens(&secret, &[Scope::Query], past), Reason::Expired),
        ];
        for (replaced, reason) in cases {
            let gate = Gate::with(tokens(&secret, &[Scope::Query], None));
            let sent = Credentials::Token(secret.reveal().into());
            let client = gate.admit(Scope::Query, sent).await.unwrap();
            assert_eq!(client.token_name(), Some("reader"));
            let wait = Duration::from_millis(50);
            gate.replace(tokens(&secret, &[Scope::Query, Scope::Ingest], None));
            assert!(tokio::time::timeout(wait, client.revoked()).await.is_err(), "it is as good as before");
            gate.replace(replaced);
            let denied = tokio::time::timeout(Duration::from_secs(5), client.revoked()).await.unwrap();
            assert_eq!(denied.reason, reason);
        }
    }
}
