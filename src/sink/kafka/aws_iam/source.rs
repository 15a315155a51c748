//! Credentials, and the tokens that are signed with them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use reqsign_aws_v4::{AssumeRoleGrant, AssumeRoleGranter, Credential, StaticCredentialProvider};
use reqsign_core::time::Timestamp;
use reqsign_core::{Context, Error, Granter};
use tokio::time::Instant;

use super::context::{Seen, contexts};
use super::places::{self, Place};
use super::{Config, LIFE, refusal, signature};
use crate::sink::http::oauth2::{Token, TokenSource};
use crate::sink::{Class, Failure};

/// How long a role is assumed for: as long as one that was reached by another role may be.
const SESSION: Duration = Duration::from_secs(3600);
/// Credentials that last longer than this are used once more while their place is away.
const SHORTEST: Duration = Duration::from_secs(60);
/// AWS refuses what is signed at an instant that is further away from its own clock.
const SKEW: u64 = 300;

/// Credentials, and where they are from.
#[derive(Clone, Debug)]
struct Found {
    place: String,
    credential: Credential,
}

impl Found {
    /// How long they last from an instant on; none when their place does not say so.
    fn lasts(&self, now: SystemTime) -> Option<Duration> {
        let ends = self.credential.expires_in?.as_system_time();
        Some(ends.duration_since(now).unwrap_or_default())
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Source {
    config: Config,
    places: Vec<Place>,
    context: Context,
    seen: Arc<Seen>,
    /// Those that the last token was signed with.
    held: Mutex<Option<Found>>,
}

impl Source {
    pub(super) fn new(config: Config) -> Self {
        let seen = Arc::<Seen>::default();
        let (context, near) = contexts(&seen);
        Self::within(config, context, &near, seen)
    }

    pub(super) fn within(config: Config, context: Context, near: &Context, seen: Arc<Seen>) -> Self {
        let places = places::all(&config, &context, near);
        Self { config, places, context, seen, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Option<Found>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Credentials that last, by which the next token is signed.
    async fn credentials(&self) -> Result<Found, Failure> {
        let now = SystemTime::now();
        let held = self.held().clone();
        let longer_than = |least| held.as_ref().filter(|held| held.lasts(now).is_some_and(|lasts| lasts > least));
        if let Some(held) = longer_than(LIFE) {
            return Ok(held.clone());
        }
        match self.found().await {
            Ok(found) => {
                let place = &found.place;
                if held.is_none_or(|held| held.place != *place) {
                    let ends = found.credential.expires_in.map(|ends| ends.to_string());
                    tracing::info!(place, ends, "AWS credentials found");
                }
                Ok(self.held().insert(found).clone())
            }
            Err(failure) => match longer_than(SHORTEST).filter(|_| failure.class == Class::Retry) {
                Some(held) => {
                    let Failure { code, message, hint, .. } = &failure;
                    tracing::warn!(
                        code,
                        error = message,
                        hint,
                        "AWS credentials not renewed; those of before are used"
                    );
                    Ok(held.clone())
                }
                None => Err(failure),
            },
        }
    }

    /// Credentials of the first place that has some, or of the role that is assumed with them.
    async fn found(&self) -> Result<Found, Failure> {
        let found = match (self.looked_for().await, &self.config.role_arn) {
            (Ok(found), Some(role)) => self.assumed(role, &found).await,
            (found, _) => found,
        };
        if let Some(ahead) = self.seen.ahead().filter(|ahead| ahead.unsigned_abs() >= SKEW) {
            return Err(self.clock(ahead));
        }
        let found = found?;
        let ends = found.credential.expires_in.filter(|ends| *ends <= Timestamp::now());
        match ends {
            Some(ends) => Err(self.unavailable(&format!("the credentials of {} have ended at {ends}", found.place))),
            None => Ok(found),
        }
    }

    async fn looked_for(&self) -> Result<Found, Failure> {
        if let Some([one, other]) = places::half(&self.config, &self.context) {
            let hint = "Set both for this process, or neither".to_owned();
            let message = format!("of the variables {one} and {other} one is set without the other");
            return Err(Failure { hint, ..self.unavailable(&message) });
        }
        let mut looked = Vec::new();
        for place in &self.places {
            self.seen.trouble();
            let provided = place.provider.provide_credential_dyn(&place.context).await;
            let trouble = self.seen.trouble();
            let name = place.name.clone();
            match provided {
                Ok(Some(credential)) => return Ok(Found { place: name, credential }),
                Ok(None) => looked.push(format!("{name}: {}", trouble.as_deref().unwrap_or(place.absent))),
                Err(error) if place.is_guess => looked.push(format!("{name}: {}", refusal::words(&error, trouble))),
                Err(error) => return Err(self.failure(&name, &error, trouble)),
            }
        }
        let looked = looked.iter().zip(1..).map(|(place, number)| format!("({number}) {place}")).collect::<Vec<_>>();
        let hint = "Give this process credentials at one of these places; docs/KUBERNETES.md has what a ServiceAccount needs. They \
                    are looked for again at the next attempt";
        let message = format!("no credentials of AWS were found. Looked at: {}", looked.join("; "));
        Err(Failure { hint: hint.to_owned(), ..self.unavailable(&message) })
    }

    async fn assumed(&self, role: &str, found: &Found) -> Result<Found, Failure> {
        let Credential { access_key_id, secret_access_key, session_token, .. } = &found.credential;
        let mut source = StaticCredentialProvider::new(access_key_id, secret_access_key);
        if let Some(token) = session_token {
            source = source.with_session_token(token);
        }
        let grant = AssumeRoleGrant::new(role, places::session_name(&self.config, &self.context));
        let granter = AssumeRoleGranter::new(&self.config.region, grant);
        let place = format!("the role {role}, assumed with {}", found.place);
        self.seen.trouble();
        match Granter::new(self.context.clone(), source, granter).grant(Some(SESSION)).await {
            Ok(credential) => Ok(Found { place, credential }),
            Err(error) => Err(self.failure(&place, &error, self.seen.trouble())),
        }
    }

    fn failure(&self, place: &str, error: &Error, trouble: Option<String>) -> Failure {
        let message = format!("{place}: {}", refusal::words(error, trouble));
        if !refusal::is_final(error) {
            return self.unavailable(&message);
        }
        let hint = "Correct role_arn, profile or region of [kafka.aws_iam], or the role's trust and permissions at AWS, then \
                    `outbox-relay cursor resume NAME`";
        Failure::of(Class::Fatal, "token_refused", format!("There are no credentials for the brokers: {message}"), hint)
    }

    fn clock(&self, ahead: i64) -> Failure {
        let (by, way) = (ahead.unsigned_abs(), if ahead > 0 { "ahead of" } else { "behind" });
        let message =
            format!("this machine's clock is {by} s {way} that of AWS, which takes signatures of {SKEW} s at most");
        Failure { hint: "Set the clock right, for example by NTP".to_owned(), ..self.unavailable(&message) }
    }
}

#[async_trait]
impl TokenSource for Source {
    fn name(&self) -> &str {
        self.config.role_arn.as_deref().unwrap_or(super::SESSION_NAME)
    }

    async fn ask(&self) -> Result<Token, Failure> {
        let found = self.credentials().await?;
        let (now, asked_at) = (SystemTime::now(), Instant::now());
        // The credentials' end is that of what they have signed.
        let lasts = found.lasts(now).map_or(LIFE, |lasts| lasts.min(LIFE));
        let text = signature::token(&self.config.region, &found.credential, now);
        let token = Token::lasting(&text, asked_at, Some(lasts));
        token.ok_or_else(|| self.unavailable("what was signed is no text"))
    }

    fn refused(&self) {
        *self.held() = None;
    }

    fn unavailable(&self, message: &str) -> Failure {
        let message = format!("There is no token for the brokers: {message}");
        let hint = "Check that where this process gets its AWS credentials is up and can be reached from here";
        Failure::of(Class::Retry, "token_unavailable", message, hint)
    }
}
