//! Log-in to Amazon MSK by IAM: SASL OAUTHBEARER, whose token is a URL that is signed with credentials of AWS.
//!
//! Promise: the token is that of the signers that AWS publishes. Nothing of the cluster is needed to make one, only credentials:
//! these are asked for again before they end. A place that is configured and gives none ends the search: rows would else be sent,
//! or refused, under another identity.
//!
//! What signs and searches is `source`, which a build without the cargo feature `iam` leaves out.

use std::time::Duration;

use crate::sink::http::oauth2::Tokens;

#[cfg(feature = "iam")]
mod context;
#[cfg(feature = "iam")]
mod places;
#[cfg(feature = "iam")]
mod refusal;
#[cfg(feature = "iam")]
mod signature;
#[cfg(feature = "iam")]
mod source;
#[cfg(not(feature = "iam"))]
#[path = "aws_iam/left_out.rs"]
mod source;
#[cfg(all(test, feature = "iam"))]
mod tests;

/// How long brokers take a token, as AWS's own signers ask for.
pub const LIFE: Duration = Duration::from_secs(900);

/// The name of a role's session where the configuration has none.
pub const SESSION_NAME: &str = "outbox-relay";

/// `[kafka.aws_iam]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The cluster's region.
    pub region: String,
    /// The role that is assumed with the credentials that were found.
    pub role_arn: Option<String>,
    /// The profile of AWS's files whose credentials are used, instead of those that any place gives.
    pub profile: Option<String>,
    /// What the sessions of roles are called in AWS's logs.
    pub session_name: Option<String>,
}

impl Config {
    /// Whether this program can sign.
    #[must_use]
    pub const fn is_available() -> bool {
        cfg!(feature = "iam")
    }
}

/// The tokens of a cluster.
pub(super) fn tokens(config: Config) -> Tokens {
    Tokens::of(source::Source::new(config))
}
