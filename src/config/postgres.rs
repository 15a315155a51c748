//! `[postgres]`, with `DATABASE_URL` and `PG*` as its defaults.

use std::path::PathBuf;

use tokio_postgres::config::{Host, SslMode};

use super::environment::Environment;
use super::postgres_url::{self, Url};
use super::problem::{Place, Wrong};
use super::section::Section;
use super::tree::{Node, Value};
use super::value;
use crate::database::{Config, IdentityFiles, PasswordCommand, PasswordSource, TlsMode};

const DEFAULT_POOL_SIZE: usize = 10;

const FIX_URL: &str = "write url = \"postgresql://user@host:5432/database\", or set DATABASE_URL or PGHOST";

pub(super) fn read_pool_size(section: &Section<'_>) -> usize {
    let size = section.read("pool_size", value::integer(4..=1000));
    size.map_or(DEFAULT_POOL_SIZE, |size| usize::try_from(size).unwrap_or(usize::MAX))
}

pub(super) fn read(section: &Section<'_>, pool_size: usize, environment: &Environment) -> Option<Config> {
    let password = password(section);
    let ca_file = section.read("ca_file", value::path);
    let variable = |name: &str| variable(environment, name);

    let written = section.node("url").cloned().or_else(|| variable("DATABASE_URL"));
    let port = variable("PGPORT");
    let mut url = match &written {
        None => Url::default(),
        Some(node) => {
            let port = port.as_ref().and_then(text_of);
            match value::text(node).and_then(|text| postgres_url::parse(&text, port)) {
                Ok(url) => url,
                Err(wrong) => {
                    section.problem_at(Some(node), "url", wrong);
                    return None;
                }
            }
        }
    };
    complete(section, &mut url, environment, password.is_some())?;
    if let Some((key, _)) = &password
        && written.is_some()
        && url.connection.get_password().is_some()
        && url.has_password
    {
        let what = format!("the password is given twice: in the URL and by {key}");
        section.problem(key, Wrong::new(what, "take the password out of the URL"));
    }
    let tls = tls(section, written.as_ref(), &url, environment)?;
    let ca_file = ca_file_of(section, ca_file, &url, environment, tls)?;
    let only_sockets = only_sockets(section, written.as_ref(), &url)?;
    // The driver's own modes know nothing of verification: it is told to have TLS or none, the connector verifies.
    let mode = if tls == TlsMode::Disable || only_sockets { SslMode::Disable } else { SslMode::Require };
    url.connection.ssl_mode(mode);
    let identity = identity(section, (&url, written.as_ref()), environment, mode != SslMode::Disable)?;
    let password = password.map(|(_, source)| source);
    let Url { connection, auth, .. } = url;
    Some(Config { connection, tls, auth, password, ca_file, identity, pool_size, dedicated: 0 })
}

/// The source of the password, with its key. A variable wins over the other key of the file.
fn password(section: &Section<'_>) -> Option<(&'static str, PasswordSource)> {
    let file = || Some(("password_file", PasswordSource::File(section.read("password_file", value::path)?)));
    let command = || Some(("password_command", PasswordSource::Command(section.read("password_command", command)?)));
    let (Some(one), Some(other)) = (section.node("password_file"), section.node("password_command")) else {
        return file().or_else(command);
    };
    let is_variable = |node: &Node| matches!(node.place, Place::Variable(_));
    match (is_variable(one), is_variable(other)) {
        (true, false) => file(),
        (false, true) => command(),
        (true, true) | (false, false) => {
            let what = "the password is given twice: by password_file and by password_command";
            section.problem("password_command", Wrong::new(what, "remove one of the two"));
            file()
        }
    }
}

fn command(node: &Node) -> Result<PasswordCommand, Wrong> {
    let fix = "write the program and its arguments, for example [\"/usr/local/bin/token\", \"--user\", \"relay\"]";
    let argv = value::arguments(node).map_err(|wrong| Wrong::new(wrong.what, fix))?;
    match argv.first() {
        Some(program) if !program.is_empty() => Ok(PasswordCommand::new(argv)),
        Some(_) | None => Err(Wrong::new("names no program", fix)),
    }
}

/// The relay's own certificate, from keys, URL or environment; never one without its key.
fn identity(
    section: &Section<'_>,
    (url, written): (&Url, Option<&Node>),
    environment: &Environment,
    encrypted: bool,
) -> Option<Option<IdentityFiles>> {
    let variable = |name: &str| environment.get(name).filter(|path| !path.is_empty()).cloned();
    let keys = (section.read("cert_file", value::path), section.read("key_file", value::path));
    let of_url = (url.sslcert.clone().map(PathBuf::from), url.sslkey.clone().map(PathBuf::from));
    let is_given = |(certificate, key): &(Option<PathBuf>, Option<PathBuf>)| certificate.is_some() || key.is_some();
    if is_given(&keys) && is_given(&of_url) {
        let what = "the relay's certificate is given twice: by cert_file and key_file, and in the URL";
        section.problem("cert_file", Wrong::new(what, "remove one of the two"));
        return None;
    }
    let by_key = is_given(&keys) || section.has("cert_file") || section.has("key_file");
    let explicit = by_key || is_given(&of_url);
    let wrong = |what: &str, fix: &str| {
        let wrong = Wrong::new(what, fix);
        match by_key {
            true if section.has("cert_file") => section.problem("cert_file", wrong),
            true => section.problem("key_file", wrong),
            false => section.problem_at(written, "url", wrong),
        }
    };
    if explicit && !encrypted {
        wrong("a certificate of the relay's own, and no TLS", "write sslmode=verify-full, or remove it");
        return None;
    }
    if !encrypted {
        return Some(None);
    }
    let of_environment = || (variable("PGSSLCERT").map(PathBuf::from), variable("PGSSLKEY").map(PathBuf::from));
    let given = [keys, of_url].into_iter().find(is_given).unwrap_or_else(of_environment);
    match given {
        (Some(certificate), Some(key)) => Some(Some(IdentityFiles { certificate, key })),
        (None, None) => Some(None),
        (one, None) | (None, one) => {
            let what = "a certificate without its key, or a key without its certificate";
            let fix = "name both: cert_file and key_file (or sslcert and sslkey in the URL, PGSSLCERT and PGSSLKEY)";
            if explicit {
                wrong(what, fix);
            } else {
                let name = if variable("PGSSLCERT").map(PathBuf::from) == one { "PGSSLCERT" } else { "PGSSLKEY" };
                section.problem_at(self::variable(environment, name).as_ref(), "url", Wrong::new(what, fix));
            }
            None
        }
    }
}

/// Whether all connections go by a Unix socket. What is for a network, TLS and the guard over the sign-in, is not there on a socket:
/// a list of both would go without them on the network, too.
fn only_sockets(section: &Section<'_>, written: Option<&Node>, url: &Url) -> Option<bool> {
    let connection = &url.connection;
    let sockets = connection.get_hosts().iter().filter(|host| matches!(host, Host::Unix(_))).count();
    if sockets > 0 && (sockets < connection.get_hosts().len() || !connection.get_hostaddrs().is_empty()) {
        let wrong = Wrong::new("a Unix socket and a host", "write either the socket's directory or hosts");
        section.problem_at(written, "url", wrong);
        return None;
    }
    if sockets > 0 && url.auth.is_some() {
        let what = "require_auth beside a Unix socket, where it is not enforced";
        section.problem_at(written, "url", Wrong::new(what, "remove require_auth"));
        return None;
    }
    Some(sockets > 0)
}

fn variable(environment: &Environment, name: &str) -> Option<Node> {
    let text = environment.get(name).filter(|text| !text.is_empty())?;
    Some(Node { place: Place::Variable(name.to_owned()), value: Value::Text(text.clone()) })
}

fn text_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Fills what the URL leaves open from `PG*`, as libpq does.
fn complete(section: &Section<'_>, url: &mut Url, environment: &Environment, has_password: bool) -> Option<()> {
    let variable = |name: &str| environment.get(name).filter(|text| !text.is_empty());
    let connection = &mut url.connection;
    if connection.get_hosts().is_empty() {
        let Some(hosts) = variable("PGHOST") else {
            section.missing("url", "no PostgreSQL server is named", FIX_URL);
            return None;
        };
        for host in hosts.split(',') {
            connection.host(host);
        }
    }
    if connection.get_ports().is_empty()
        && let Some(ports) = variable("PGPORT")
    {
        for port in ports.split(',') {
            let Ok(port) = port.parse() else {
                let node = self::variable(environment, "PGPORT");
                section.problem_at(node.as_ref(), "url", Wrong::new("no port", "write a number from 1 to 65535"));
                return None;
            };
            connection.port(port);
        }
    }
    if connection.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        connection.user(user);
    }
    if connection.get_dbname().is_none()
        && let Some(name) = variable("PGDATABASE")
    {
        connection.dbname(name);
    }
    if connection.get_password().is_none()
        && !has_password
        && let Some(password) = variable("PGPASSWORD")
    {
        connection.password(password);
    }
    Some(())
}

fn tls(section: &Section<'_>, written: Option<&Node>, url: &Url, environment: &Environment) -> Option<TlsMode> {
    let from_environment = variable(environment, "PGSSLMODE");
    let (mode, node) = match &url.sslmode {
        Some(mode) => (mode.as_str(), written.cloned()),
        None => (from_environment.as_ref().and_then(text_of).unwrap_or("verify-full"), from_environment.clone()),
    };
    let fix = "write sslmode=verify-full, verify-ca, require or disable";
    let wrong = match mode {
        "disable" => return Some(TlsMode::Disable),
        "require" => return Some(TlsMode::Require),
        "verify-ca" => return Some(TlsMode::VerifyCa),
        "verify-full" => return Some(TlsMode::VerifyFull),
        "prefer" | "allow" => Wrong::new(format!("sslmode={mode} lets anybody on the way switch TLS off unseen"), fix),
        _ => Wrong::new("not a known sslmode", fix),
    };
    section.problem_at(node.as_ref(), "url", wrong);
    None
}

fn ca_file_of(
    section: &Section<'_>,
    written: Option<PathBuf>,
    url: &Url,
    environment: &Environment,
    tls: TlsMode,
) -> Option<Option<PathBuf>> {
    let explicit = written.is_some() || url.sslrootcert.is_some();
    let key = if written.is_some() { "ca_file" } else { "url" };
    if written.is_some() && url.sslrootcert.is_some() {
        let what = "the authorities are given twice: by ca_file and by sslrootcert in the URL";
        section.problem("ca_file", Wrong::new(what, "remove one of the two"));
    }
    if explicit && matches!(tls, TlsMode::Disable | TlsMode::Require) {
        let what = "a file of authorities, but this sslmode does not verify the certificate";
        section.problem(key, Wrong::new(what, "write sslmode=verify-full, or remove the file"));
    }
    let from_environment = || environment.get("PGSSLROOTCERT").filter(|path| !path.is_empty()).cloned();
    let file = written.or_else(|| url.sslrootcert.clone().or_else(from_environment).map(PathBuf::from));
    // libpq's word for the system's own authorities, which are trusted here anyway.
    Some(file.filter(|path| path.as_os_str() != "system"))
}
