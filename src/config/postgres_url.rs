//! A `postgresql://` URL, with what the driver does not understand taken out of it.

use percent_encoding::percent_decode_str;

use super::keys;
use super::problem::Wrong;
use crate::database::Method;

/// What a URL says.
#[derive(Debug, Default)]
pub(super) struct Url {
    pub(super) connection: tokio_postgres::Config,
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
    pub(super) sslcert: Option<String>,
    pub(super) sslkey: Option<String>,
    pub(super) auth: Option<Vec<Method>>,
    pub(super) has_password: bool,
}

const FIX_FORM: &str = "write postgresql://user@host:5432/database?sslmode=verify-full";

/// Parameters that go to the driver as they are.
const PARAMETERS: [&str; 16] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "options",
    "application_name",
    "sslnegotiation",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
];

/// Reads a URL; hosts without a port get `default_port`.
pub(super) fn parse(text: &str, default_port: Option<&str>) -> Result<Url, Wrong> {
    let Some(rest) = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) else {
        return Err(Wrong::new("not a PostgreSQL URL", FIX_FORM));
    };
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    if query.contains('@') && !before.contains('@')
        || before.rsplit_once('@').is_some_and(|(user, _)| user.contains('/'))
    {
        let fix = "percent-encode them: @ is %40, / is %2F, : is %3A, ? is %3F";
        return Err(Wrong::new("user or password contain characters that end them", fix));
    }
    let (user, address) = before.rsplit_once('@').map_or((None, before), |(user, address)| (Some(user), address));
    let (hosts, database) = address.split_once('/').unwrap_or((address, ""));
    let mut url = Url { has_password: user.is_some_and(|user| user.contains(':')), ..Url::default() };
    let parameters = sort(query, &mut url)?;

    let mut clean = "postgresql://".to_owned();
    if let Some(user) = user {
        clean.push_str(&user.replace('@', "%40"));
        clean.push('@');
    }
    let hosts: Vec<String> = hosts.split(',').map(|host| with_port(host, default_port)).collect();
    clean.push_str(&hosts.join(","));
    clean.push('/');
    clean.push_str(database);
    if !parameters.is_empty() {
        clean.push('?');
        clean.push_str(&parameters.join("&"));
    }
    // The driver's message names a parameter or a part, never a value.
    url.connection = clean.parse().map_err(|error: tokio_postgres::Error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        Wrong::new(format!("not a PostgreSQL URL: {source}"), FIX_FORM)
    })?;
    // Without a name there is nothing to verify a certificate against, and nothing to tell a socket by.
    if !url.connection.get_hostaddrs().is_empty() && url.connection.get_hosts().is_empty() {
        return Err(Wrong::new("hostaddr without host", "name the host too, or write the address as the host"));
    }
    Ok(url)
}

fn with_port(host: &str, default_port: Option<&str>) -> String {
    let name = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    match default_port {
        Some(port) if !host.is_empty() && !name.contains(':') => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}

/// Keeps the driver's parameters, takes ours, refuses the rest.
fn sort<'a>(query: &'a str, url: &mut Url) -> Result<Vec<&'a str>, Wrong> {
    let mut kept = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "sslmode" => url.sslmode = Some(decoded(value)),
            "sslrootcert" => url.sslrootcert = Some(decoded(value)),
            "require_auth" => url.auth = Some(methods(&decoded(value))?),
            "sslcert" => url.sslcert = Some(decoded(value)),
            "sslkey" => url.sslkey = Some(decoded(value)),
            "tcp_user_timeout" => {
                let what = "tcp_user_timeout follows from turn.deadline: it must end a silent connection in time";
                return Err(Wrong::new(what, "remove it"));
            }
            name if PARAMETERS.contains(&name) => {
                url.has_password |= name == "password";
                kept.push(parameter);
            }
            name => {
                let known =
                    PARAMETERS.iter().copied().chain(["sslmode", "sslrootcert", "sslcert", "sslkey", "require_auth"]);
                let fix = keys::nearest(name, known)
                    .map_or_else(|| "remove it".to_owned(), |meant| format!("did you mean {meant}?"));
                return Err(Wrong::new(format!("no parameter {name:?} is known in the URL"), fix));
            }
        }
    }
    Ok(kept)
}

/// As libpq's `require_auth`, without its negations.
fn methods(text: &str) -> Result<Vec<Method>, Wrong> {
    let known = |word: &str| Method::ALL.iter().find(|(known, _)| *known == word).map(|(_, method)| *method);
    let found: Option<Vec<_>> = text.split(',').map(|word| known(word.trim())).collect();
    let words = Method::ALL.map(|(word, _)| word).join(", ");
    found.ok_or_else(|| Wrong::new("require_auth has an unknown method", format!("write some of {words}, with commas")))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_parameters_leave_and_the_driver_gets_the_rest() {
        let url = parse("postgres://me:p%40ss@[::1],b:6000/app?sslmode=disable&connect_timeout=3", Some("5433"))
            .expect("valid");
        assert_eq!(url.sslmode.as_deref(), Some("disable"));
        assert_eq!(url.connection.get_ports(), [5433, 6000]);
        assert_eq!(url.connection.get_user(), Some("me"));
        assert_eq!(url.connection.get_password(), Some(b"p@ss".as_slice()));
        assert_eq!(url.connection.get_dbname(), Some("app"));
        assert!(url.has_password);
    }

    #[test]
    fn methods_of_require_auth_are_those_of_libpq() {
        let url = parse("postgresql://u@h/app?require_auth=password,scram-sha-256", None).expect("valid");
        assert_eq!(url.auth, Some(vec![Method::Password, Method::Scram]));
        assert!(parse("postgresql://u@h/app?require_auth=pasword", None).is_err());
        assert_eq!(parse("postgresql://u@h/app", None).expect("valid").auth, None);
    }

    #[test]
    fn a_socket_directory_is_a_host() {
        let url = parse("postgresql:///app?host=%2Ftmp%2Fpg&port=5555", Some("1")).expect("valid");
        assert_eq!(url.connection.get_hosts(), [tokio_postgres::config::Host::Unix("/tmp/pg".into())]);
        assert_eq!(url.connection.get_ports(), [5555]);
    }
}
