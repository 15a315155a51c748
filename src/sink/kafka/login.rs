//! How clients log in where brokers want tokens (SASL OAUTHBEARER, RFC 7628).
//!
//! librdkafka asks each client for a token when it is made, and again after four fifths of the life that it is told; it shows what
//! it has to brokers again after nine tenths of the life that they see in it. All of a cluster get the one that is held, which is
//! renewed before: none waits for the issuer on the thread that takes a client's reports.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use tokio::task::JoinHandle;

use super::complaint::Complaint;
use super::{Cluster, ClusterConfig, aws_iam};
use crate::sink::Failure;
use crate::sink::http::oauth2::{Token, Tokens};

/// For an answer of the issuer, and for a token.
const TIMEOUT: Duration = Duration::from_secs(4);
/// A client that has an old token asks again within this time: the next one may have come.
const OLD: Duration = Duration::from_secs(1);
/// Within this time a renewed token has usually come.
const COMES: Duration = Duration::from_millis(100);
/// Between two looks whether the token is old.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// After so long a client asks again for a token whose issuer has not said how long it lasts.
const UNSAID: Duration = Duration::from_secs(300);
/// A new client is asked to log in for so long: it hears of its token within milliseconds.
const HEARD: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// Of a broker that refuses a log-in, and of a client that has no token.
pub(super) const REFUSED: [&str; 2] = ["kafka_authentication", "kafka_sasl_authentication_failed"];

/// What to compare when brokers refuse a token.
const OF_OAUTH2: &str = "Compare the token's audience, scope and issuer, and the extensions, with what the brokers' listener expects, \
                         and correct [kafka.oauth2] or the listener, then `outbox-relay cursor resume NAME`";
const OF_AWS_IAM: &str = "Compare region, role_arn and profile of [kafka.aws_iam] with the cluster's, see that its credentials may \
                          kafka-cluster:Connect there and that this machine's clock is right, then \
                          `outbox-relay cursor resume NAME`";

/// Who gives tokens for a cluster.
pub(super) struct Issuer {
    tokens: Tokens,
    /// What is sent with each, by name.
    extensions: Vec<(String, String)>,
    /// What to do when brokers refuse one.
    advice: &'static str,
    /// The task that renews the token; clients ask on threads of their own, and do not wait for an issuer.
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").finish_non_exhaustive()
    }
}

impl Issuer {
    /// None where the brokers are not said to want tokens.
    pub(super) fn of(config: &ClusterConfig) -> Option<Arc<Self>> {
        let oauth2 = config.oauth2.clone();
        let oauth2 = oauth2.map(|config| (Tokens::new(config, TIMEOUT, "[kafka.oauth2]"), OF_OAUTH2));
        let found = oauth2.or_else(|| Some((aws_iam::tokens(config.aws_iam.clone()?), OF_AWS_IAM)));
        let extensions = config.extensions.clone().into_iter().collect();
        found.map(|(tokens, advice)| Arc::new(Self { tokens, extensions, advice, keeper: Mutex::default() }))
    }

    /// Has the token renewed ahead of librdkafka's question for the next one, for as long as this is used.
    fn keep(self: &Arc<Self>) {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let issuer = Arc::downgrade(self);
        *keeper = Some(tokio::spawn(async move {
            while let Some(pause) = issuer.upgrade().map(|issuer| issuer.pause()) {
                tokio::time::sleep(pause).await;
                let Some(issuer) = issuer.upgrade() else { break };
                if issuer.tokens.held_now().is_some_and(|token| token.is_old())
                    && let Err(Failure { code, message, hint, .. }) = issuer.tokens.token().await
                {
                    // Who publishes meanwhile is told by its own question.
                    tracing::debug!(code, error = message, hint, "no token for Kafka");
                    drop(issuer);
                    tokio::time::sleep(LONGEST).await;
                }
            }
        }));
    }

    /// Until the next look whether the token is old.
    fn pause(&self) -> Duration {
        let until = self.tokens.held_now().and_then(|token| token.until_old());
        until.map_or(LONGEST, |until| until.clamp(SHORTEST, LONGEST))
    }

    /// Waits for a token that lasts, where none is held.
    ///
    /// # Errors
    /// Why there is none.
    async fn ready(self: &Arc<Self>) -> Result<(), Failure> {
        self.keep();
        if self.tokens.held_now().is_some_and(|token| token.holds()) {
            return Ok(());
        }
        let late = |_| Err(self.tokens.unavailable("it did not come in time"));
        let token = tokio::time::timeout(TIMEOUT, self.tokens.token()).await.unwrap_or_else(late)?;
        if token.holds() { Ok(()) } else { Err(self.tokens.unavailable("tokens have ended when they come")) }
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
        let issuer = self.issuer.as_ref().ok_or("no issuer of tokens is configured")?;
        let Some(token) = issuer.tokens.held_now().filter(Token::holds) else {
            return Err(issuer.tokens.missing().message.into());
        };
        // librdkafka takes no more from it than when to ask again, after four fifths: when the next one has just come.
        let again =
            if token.is_old() { OLD } else { token.until_old().map_or(UNSAID, |old| (old + COMES).mul_f64(1.25)) };
        let ends = SystemTime::now().duration_since(UNIX_EPOCH)? + again;
        let given = OAuthToken {
            token: token.text().to_owned(),
            principal_name: issuer.tokens.name().to_owned(),
            lifetime_ms: i64::try_from(ends.as_millis())?,
            extensions: issuer.extensions.clone(),
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

    /// Whether the token that the client was given has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.given().as_ref().is_some_and(|token| !token.holds())
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
            Some(token) => issuer.tokens.refused(token, Failure { hint: issuer.advice.to_owned(), ..failure }),
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

    /// Waits until clients can log in: some seconds for a token, where the brokers want one and none is held.
    ///
    /// # Errors
    /// Why there is no token.
    pub async fn ready(&self) -> Result<(), Failure> {
        match &self.issuer {
            Some(issuer) => issuer.ready().await,
            None => Ok(()),
        }
    }
}

/// The context of a client that asks, or that writes copies: its log-in, and what it complains of.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) complaint: Arc<Complaint>,
    pub(super) login: Login,
}

impl Asked {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self { complaint: Arc::new(cluster.complaint()), login: cluster.login() }
    }

    /// The failure that an error of the client is.
    pub(super) fn failure(&self, error: &KafkaError) -> Failure {
        self.login.judged(self.complaint.failure(error))
    }
}

impl ClientContext for Asked {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.login.give()
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.complaint.hear(error, reason);
    }
}

impl ProducerContext<NoCustomPartitioner> for Asked {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

impl ClientContext for Login {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.give()
    }
}

impl ConsumerContext for Login {}
