//! Whether the secrets that a relay sends with can be used.

use crate::relay::Config;
use crate::sink::http::HttpSink;
use crate::sink::{self, sms, webhook};
use crate::source::finding::{Finding, Level};

/// Reads them as each publication does; what a mail server says of its password, its own check tells.
pub(super) fn usable(relay: &Config) -> Option<Finding> {
    let sink = match &relay.sink {
        sink::Config::Sms(config) => sms::sink(config, &relay.relay),
        sink::Config::Webhook(config) => webhook::sink(config, &relay.relay),
        sink::Config::Http(config) => HttpSink::new(config, &relay.relay),
        sink::Config::Kafka(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => return None,
    };
    // What is wrong with the settings is told where the columns are judged.
    let failure = sink.ok()?.secrets().err()?;
    let fix = "Make the file readable for the relay's user, with the secret as its only content.";
    let fix = if failure.code == "secret_unreadable" { fix.to_owned() } else { format!("{}.", failure.hint) };
    let code = if failure.code == "certificate_unusable" { "certificate_unusable" } else { "secret_unreadable" };
    Some(Finding::new(Level::Error, code, failure.message).setting(fix))
}

/// That a receiver is not asked: each request may be taken for a message.
pub(super) fn uncontacted(relay: &Config) -> Option<Finding> {
    let is_left_alone = match &relay.sink {
        sink::Config::Http(_) | sink::Config::Sms(_) | sink::Config::Webhook(_) => true,
        // The others' receivers have checks of their own, or are this database and this machine.
        sink::Config::Kafka(_)
        | sink::Config::Sql(_)
        | sink::Config::Email(_)
        | sink::Config::Stdout(_)
        | sink::Config::Command(_)
        | sink::Config::Custom(_) => false,
    };
    let message = "the receiver is not contacted, because a request may be taken for a message: its address, certificate and log-in are \
                   tried with the first row";
    is_left_alone.then(|| Finding::new(Level::Ok, "receiver", message))
}

/// Whether an issuer gives a token; none where none is asked for, or its secret cannot be read.
pub(super) async fn token(relay: &Config) -> Option<Finding> {
    let sink::Config::Http(config) = &relay.sink else { return None };
    let oauth2 = config.access.oauth2.as_ref()?;
    let sink = HttpSink::new(config, &relay.relay).ok().filter(|sink| sink.secrets().is_ok())?;
    Some(match sink.ask_for_token().await {
        Ok(_) if is_readable_on_its_way(&config.url) => {
            let message = "tokens go over the network in clear";
            Finding::new(Level::Warn, "token_plain_text", message).setting("Write https:// in url.")
        }
        Ok(lasts) => {
            let lasts =
                lasts.map_or_else(|| "until it is refused".to_owned(), |lasts| format!("for {} s", lasts.as_secs()));
            Finding::new(
                Level::Ok,
                "token",
                format!("{} gives {} a token that holds {lasts}", oauth2.token_url, oauth2.client_id),
            )
        }
        Err(failure) => {
            let code = if failure.code == "token_refused" { "token_refused" } else { "token_unavailable" };
            Finding::new(Level::Error, code, failure.message).setting(format!("{}.", failure.hint))
        }
    })
}

/// Whether requests to a URL leave this machine without TLS.
pub(super) fn is_readable_on_its_way(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').filter(|_| !authority.ends_with(']')).map_or(authority, |(host, _)| host);
    !["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_needs_no_tls() {
        for here in ["http://localhost/a", "http://127.0.0.1:80", "http://[::1]/", "http://[::1]:80/", "https://a/"] {
            assert!(!is_readable_on_its_way(here), "{here}");
        }
        for away in ["http://localhost.example.com/", "http://127.0.0.1.example.com:80/", "http://[::2]/", "http://a"] {
            assert!(is_readable_on_its_way(away), "{away}");
        }
    }
}
