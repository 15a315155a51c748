//! What must never be printed: which keys hold secrets, and texts with their secrets taken out.

/// What stands for a secret.
pub(super) const HIDDEN: &str = "***";

/// Whether the value of a key, a librdkafka property or an HTTP header is a secret, by its name. Files that hold
/// secrets are not secret themselves. In doubt it is one.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name.ends_with("_file") || name.ends_with(".location") || name.ends_with(".file") || name == "idempotency-key" {
        return false;
    }
    ["password", "passphrase", "secret", "token", "auth", "cookie", "credential", "api-key", "apikey", "signature"]
        .iter()
        .any(|word| name.contains(word))
        && !(name.starts_with("sasl.oauthbearer.") && is_plain_oauth(&name))
        || name.ends_with(".pem")
        || name.ends_with("-key")
}

/// Settings of OAUTHBEARER that are no secrets although their names sound so.
fn is_plain_oauth(name: &str) -> bool {
    let rest = name.trim_start_matches("sasl.oauthbearer.");
    ["method", "client.id", "client.credentials.client.id", "scope", "token.endpoint.url", "grant.type", "extensions"]
        .contains(&rest)
        || rest.starts_with("assertion.claim.")
        || rest.starts_with("metadata.")
}

/// librdkafka properties whose values are words, names, addresses or paths, and never secrets.
const PLAIN_PROPERTIES: [&str; 22] = [
    "acks",
    "broker.address.family",
    "broker.version.fallback",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "compression.codec",
    "compression.type",
    "debug",
    "https.ca.location",
    "metadata.recovery.strategy",
    "partitioner",
    "queuing.strategy",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "security.protocol",
    "ssl.cipher.suites",
    "ssl.curves.list",
    "ssl.endpoint.identification.algorithm",
    "ssl.sigalgs.list",
    "topic.blacklist",
];

/// Whether a librdkafka property may be printed with this value. Only what is known to be harmless is: a name may be misspelt.
pub(super) fn is_plain_property(name: &str, value: &str) -> bool {
    let number = value == "true" || value == "false" || value.parse::<f64>().is_ok();
    PLAIN_PROPERTIES.contains(&name)
        || name.starts_with("ssl.") && name.ends_with(".location")
        || name.starts_with("sasl.oauthbearer.") && is_plain_oauth(name)
        || matches!(name, "enable.ssl.certificate.verification" | "enable.sasl.oauthbearer.unsecure.jwt") && number
        || !name.starts_with("sasl.") && !name.starts_with("ssl.") && !is_secret(name) && number
}

/// Headers whose values are no secrets.
const PLAIN_HEADERS: [&str; 8] = [
    "accept",
    "accept-language",
    "content-encoding",
    "content-language",
    "content-type",
    "idempotency-key",
    "user-agent",
    "x-tenant",
];

/// Whether an HTTP header may be printed with this value.
pub(super) fn is_plain_header(name: &str, value: &str) -> bool {
    PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) || is_of_the_row(value)
}

/// Whether the text is nothing but one expression of a template, whose value each row gives.
fn is_of_the_row(text: &str) -> bool {
    let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    inner.is_some_and(|inner| !inner.contains(['{', '}', '"', '\'']))
}

/// Parameters of URLs whose values are no secrets: PostgreSQL's.
const PLAIN_PARAMETERS: [&str; 21] = [
    "sslcert",
    "sslkey",
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "options",
    "port",
    "require_auth",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

fn is_plain_parameter(name: &str, value: &str) -> bool {
    PLAIN_PARAMETERS.contains(&name)
        || !is_secret(name) && (value.parse::<u16>().is_ok() || matches!(value, "" | "true" | "false"))
        || is_of_the_row(value)
}

/// The text of a key for people.
pub(super) fn text(key: &str, text: &str) -> String {
    let suspicious = text.contains([' ', '@', ':', '=']);
    match key {
        _ if is_secret(key) => HIDDEN.to_owned(),
        // Perhaps `host=… password=…`, which only looks like nothing.
        "url" if !text.contains("://") && suspicious => HIDDEN.to_owned(),
        "url" => url(text),
        // A token stands where the user does.
        "otlp" if text.contains('@') => HIDDEN.to_owned(),
        _ if text.contains('@') || text.contains("://") || text.contains("password") => url(text),
        _ => text.to_owned(),
    }
}

/// Whether every host of an authority without a user is a host, with a port or without.
fn names_hosts(authority: &str) -> bool {
    authority.split(',').all(|host| {
        let port = host.rsplit_once(']').map_or(host, |(_, rest)| rest).split_once(':').map(|(_, port)| port);
        port.is_none_or(|port| port.chars().all(|c| c.is_ascii_digit()))
    })
}

/// A URL without its password, whatever else is wrong with it: from the first `:` of the authority to the last `@`.
pub(super) fn url(text: &str) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at(start);
    let rest = match rest.rfind('@') {
        // The `@` is missing: what follows the user is a password as likely as a port.
        None => {
            let authority = &rest[..rest.find(['/', '?', '"']).unwrap_or(rest.len())];
            match rest.split_once(':') {
                Some((user, _)) if !names_hosts(authority) => format!("{user}:{HIDDEN}"),
                _ => rest.to_owned(),
            }
        }
        Some(at) => {
            let user = rest[..at].split(':').next().unwrap_or_default();
            let password = if user.len() < at { format!(":{HIDDEN}") } else { String::new() };
            format!("{user}{password}{}", &rest[at..])
        }
    };
    let Some((before, query)) = rest.split_once('?') else { return format!("{scheme}{rest}") };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if !is_plain_parameter(name, value) => format!("{name}={HIDDEN}"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{scheme}{before}?{}", parameters.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_leave_urls_even_when_they_are_malformed() {
        for (text, shown) in [
            ("postgresql://u:hunter2@h/db", "postgresql://u:***@h/db"),
            ("postgresql://u:hun@ter2@h:5/db", "postgresql://u:***@h:5/db"),
            ("postgresql://u:hun/t?er2@h/db", "postgresql://u:***@h/db"),
            ("u:hunter2@h", "u:***@h"),
            ("postgresql://u:hunter2h:5/db", "postgresql://u:***"),
            ("postgresql://[::1]:5,h:6/db", "postgresql://[::1]:5,h:6/db"),
            ("postgresql://u@h/db?sslmode=disable", "postgresql://u@h/db?sslmode=disable"),
            ("postgresql://h/db?user=u&password=hunter2", "postgresql://h/db?user=u&password=***"),
            ("postgresql://u:hunter2@h?password=hunter2", "postgresql://u:***@h?password=***"),
        ] {
            assert_eq!(url(text), shown);
            assert_eq!(super::text("url", "host=h password=hunter2"), HIDDEN);
        }
    }

    // Guarantee: failures.transport
    #[test]
    fn unknown_parameters_of_urls_are_hidden() {
        for (text, shown) in [
            ("https://h/p?sig=hunter2&v=2", "https://h/p?sig=***&v=2"),
            ("https://h/p?id={{ id }}&code=Zm9v&dry=true", "https://h/p?id={{ id }}&code=***&dry=true"),
            ("https://h/p?sslmode=require&pasword=hunter2", "https://h/p?sslmode=require&pasword=***"),
        ] {
            assert_eq!(url(text), shown);
            assert_eq!(super::text("base_url", text), shown);
        }
    }

    // Guarantee: failures.transport
    #[test]
    fn only_harmless_properties_and_headers_are_plain() {
        for (name, value) in [("sasl.pasword", "hunter2"), ("sasl.pasword", "123456"), ("ssl.key.pem", "1"), ("x", "y")]
        {
            assert!(!is_plain_property(name, value), "{name}");
        }
        for (name, value) in [("linger.ms", "5"), ("ssl.ca.location", "/ca.pem"), ("security.protocol", "SASL_SSL")] {
            assert!(is_plain_property(name, value), "{name}");
        }
        assert!(is_plain_header("Content-Type", "text/plain") && is_plain_header("X-Number", "{{ number }}"));
        assert!(!is_plain_header("X-Sig", "hunter2") && !is_plain_header("X-Sig", "{{ 'hunter2' }}"));
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "auth_token",
            "password",
            "sasl.password",
            "ssl.key.pem",
            "ssl.key.password",
            "sasl.oauthbearer.client.secret",
            "sasl.oauthbearer.config",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "Authorization",
            "X-Api-Key",
            "Cookie",
            "X-Auth-Token",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "auth_token_file",
            "password_file",
            "ssl.key.location",
            "key",
            "Idempotency-Key",
            "sasl.oauthbearer.token.endpoint.url",
            "sasl.mechanism",
            "sasl.username",
            "linger.ms",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
