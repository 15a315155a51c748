//! Whether the certificates that the relay shows for itself hold, and for how long.
//!
//! What cannot be read is no finding of this: connections say what is wrong with it.

use std::sync::Arc;
use std::time::Duration;

use super::server::here;
use crate::database::{IdentityFiles, Sessions};
use crate::position::Timestamp;
use crate::relay::Config;
use crate::sink;
use crate::sink::kafka::Cluster;
use crate::source::finding::{Finding, Level};

const DAY: Duration = Duration::from_secs(86_400);
/// So long before its end a certificate is worth a warning.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// Those that PostgreSQL and the brokers are shown.
pub(super) fn of_servers(sessions: &Sessions, cluster: Option<&Arc<Cluster>>) -> Vec<Finding> {
    let postgres = sessions.identity().and_then(|files| of_files("[postgres]", files));
    let kafka = cluster.and_then(|cluster| cluster.certificate_ends());
    let kafka = kafka.and_then(|(what, ends)| finding(&format!("[kafka.properties] {what}"), ends, here()));
    postgres.into_iter().chain(kafka).collect()
}

/// The one that a relay's receiver is shown.
pub(super) fn of_receiver(relay: &Config) -> Option<Finding> {
    let sink::Config::Http(config) = &relay.sink else { return None };
    of_files("[relay.sink.http]", config.access.identity.as_ref()?)
}

fn of_files(section: &str, files: &IdentityFiles) -> Option<Finding> {
    let what = format!("{section} cert_file ({})", files.certificate.display());
    finding(&what, files.ends().ok()?, here())
}

/// What follows from the end of a certificate, in seconds since 1970-01-01 UTC; nothing while it is far away.
fn finding(what: &str, ends: i64, now: Timestamp) -> Option<Finding> {
    let ends = Timestamp::from_unix_micros(ends.saturating_mul(1_000_000));
    let fix = "Put a new certificate and its key into the files; they are read again at the next connection.";
    if ends <= now {
        let message = format!("{what}: the relay's certificate has ended at {ends}: who asks for one refuses it");
        return Some(Finding::new(Level::Error, "certificate_expired", message).setting(fix));
    }
    let left = ends.since(now);
    (left <= SOON).then(|| {
        let days = left.as_secs() / DAY.as_secs();
        let message = format!("{what}: the relay's certificate ends at {ends}, in {days} days");
        Finding::new(Level::Warn, "certificate_expires", message).setting(fix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: secrets.certificate-end
    #[test]
    fn certificate_is_an_error_when_it_has_ended_and_a_warning_in_the_two_weeks_before() {
        let now = Timestamp::parse_rfc3339("2026-11-21T08:00:00Z").expect("valid");
        let seconds = now.unix_micros() / 1_000_000;
        let at = |left: i64| finding("cert_file (/c.pem)", seconds + left, now);
        for (left, expected) in [
            (-1, Some((Level::Error, "certificate_expired", "has ended at 2026-11-21T07:59:59.000000Z"))),
            (0, Some((Level::Error, "certificate_expired", "has ended at 2026-11-21T08:00:00.000000Z"))),
            (86_399, Some((Level::Warn, "certificate_expires", "in 0 days"))),
            (14 * 86_400, Some((Level::Warn, "certificate_expires", "ends at 2026-12-05T08:00:00.000000Z, in 14 "))),
            (14 * 86_400 + 1, None),
        ] {
            let found = at(left);
            assert_eq!(found.as_ref().map(|it| (it.level, it.code)), expected.map(|it| (it.0, it.1)), "{left}");
            if let (Some(found), Some((.., words))) = (found, expected) {
                assert!(found.message.contains(words) && found.message.contains("/c.pem"), "{}", found.message);
            }
        }
    }
}
