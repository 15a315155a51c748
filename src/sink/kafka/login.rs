//! How clients log in where brokers want tokens (SASL OAUTHBEARER, RFC 7628).
//!
//! librdkafka asks each client for a token when it is made, and again after four fifths of the token's life. All of a cluster get the
//! one that is held; none waits for the issuer on the thread that takes a client's reports.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::consumer::ConsumerContext;
use tokio::runtime::Handle;

use super::Cluster;
use crate::sink::Failure;
use crate::sink::http::oauth2::{Config, Token, Tokens};

/// For an answer of the issuer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// After so long a client asks again for a token whose issuer has not said how long it lasts.
const UNSAID: Duration = Duration::from_secs(300);
/// A new client is asked to log in for so long: it hears of its token within milliseconds.
const HEARD: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// Of a broker that does not take a token, and of a client that has none.
const REFUSED: [&str; 2] = ["kafka_authentication", "kafka_sasl_authentication_failed"];

/// Who gives tokens for a cluster.
pub(super) struct Issuer {
    tokens: Tokens,
    /// Where tokens are renewed; clients ask on threads of their own.
    runtime: OnceLock<Handle>,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").finish_non_exhaustive()
    }
}

impl Issuer {
    pub(super) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { tokens: Tokens::new(config, TIMEOUT, "[kafka.oauth2]"), runtime: OnceLock::new() })
    }

    /// Waits until there is a token that lasts, and says for how long, if the issuer has said so.
    ///
    /// # Errors
    /// Why there is none.
    async fn ready(&self) -> Result<Option<Duration>, Failure> {
        self.runtime.get_or_init(Handle::current);
        Ok(self.tokens.token().await?.lasts())
    }

    /// The token that is held, if it lasts. One that is old, or none, has another one fetched meanwhile.
    fn now(self: &Arc<Self>) -> Option<Token> {
        let held = self.tokens.held_now();
        if held.as_ref().is_none_or(Token::is_old)
            && let Some(runtime) = self.runtime.get()
        {
            let issuer = Arc::clone(self);
            runtime.spawn(async move {
                if let Err(Failure { code, message, hint, .. }) = issuer.tokens.token().await {
                    // Who publishes meanwhile is told by its own question.
                    tracing::debug!(code, error = message, hint, "no token for Kafka");
                }
            });
        }
        held.filter(Token::holds)
    }
}

/// What a client logs in with, beside its settings.
#[derive(Clone, Debug, Default)]
pub struct Login {
    issuer: Option<Arc<Issuer>>,
    /// What the client was given last.
    given: Arc<Mutex<Option<Token>>>,
}

impl Login {
    fn given(&self) -> MutexGuard<'_, Option<Token>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the client whose context this is part of.
    pub(super) fn give(&self) -> Result<OAuthToken, Box<dyn Error>> {
        let issuer = self.issuer.as_ref().ok_or("[kafka.oauth2] is missing")?;
        let Some(token) = issuer.now() else { return Err(issuer.tokens.missing().message.into()) };
        let ends = SystemTime::now().duration_since(UNIX_EPOCH)? + token.lasts().unwrap_or(UNSAID);
        let given = OAuthToken {
            token: token.text().to_owned(),
            principal_name: issuer.tokens.client_id().to_owned(),
            lifetime_ms: i64::try_from(ends.as_millis())?,
        };
        *self.given() = Some(token);
        Ok(given)
    }

    /// Has a client that was just made take its token; `poll` serves what the client asks for.
    pub fn log_in(&self, mut poll: impl FnMut(Duration)) {
        let begun = Instant::now();
        while self.issuer.is_some() && self.given().is_none() && begun.elapsed() < HEARD {
            poll(LOOK);
        }
    }

    /// A broker has answered the client: its token is good.
    pub(super) fn is_accepted(&self) {
        self.given().iter().for_each(Token::is_accepted);
    }

    /// What follows from a failure of the client: of a token that is refused another one is fetched, and without one nothing is
    /// wrong with the credentials.
    #[must_use]
    pub fn judged(&self, failure: Failure) -> Failure {
        let Some(issuer) = self.issuer.as_ref().filter(|_| REFUSED.contains(&failure.code.as_str())) else {
            return failure;
        };
        match self.given().as_ref().filter(|token| token.holds()) {
            Some(token) => {
                let hint = "Compare the token's audience, scope and issuer with what the brokers' listener expects, and correct \
                            [kafka.oauth2] or the listener, then `outbox-relay cursor resume NAME`";
                issuer.tokens.refused(token, Failure { hint: hint.to_owned(), ..failure })
            }
            None => Failure { ambiguous: failure.ambiguous, ..issuer.tokens.missing() },
        }
    }
}

impl Cluster {
    /// What a client of the cluster logs in with, for its context.
    #[must_use]
    pub fn login(&self) -> Login {
        Login { issuer: self.issuer.clone(), given: Arc::default() }
    }

    /// Waits until clients can log in: for a token, where the brokers want one. Says how long it lasts, if its issuer has.
    ///
    /// # Errors
    /// Why there is no token.
    pub async fn ready(&self) -> Result<Option<Duration>, Failure> {
        match &self.issuer {
            Some(issuer) => issuer.ready().await,
            None => Ok(None),
        }
    }
}

impl ClientContext for Login {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.give()
    }
}

impl ConsumerContext for Login {}
