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

/// The text of a key for people.
pub(super) fn text(key: &str, text: &str) -> String {
    let suspicious = text.contains([' ', '@', ':', '=']);
    match key {
        _ if is_secret(key) => HIDDEN.to_owned(),
        // Perhaps `host=… password=…`, which only looks like nothing.
        "url" if !text.contains("://") && suspicious => HIDDEN.to_owned(),
        "url" => url(text),
        _ if text.contains('@') || text.contains("password") => url(text),
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
            Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
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
