//! `[postgres]` as it was resolved, put together again as one URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_postgres::config::{ChannelBinding, Host, SslNegotiation, TargetSessionAttrs};

use super::redact::HIDDEN;
use super::show::{Secrets, TomlLines, quote};
use crate::database::{Config, Method, PasswordSource, TlsMode};

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'*');

/// Seconds; the driver's own value, not worth showing.
const DRIVER_KEEPALIVES_IDLE: u64 = 2 * 60 * 60;

pub(super) fn write(lines: &mut TomlLines, config: &Config, secrets: Secrets) {
    lines.text("url", &url(config, secrets));
    match &config.password {
        Some(PasswordSource::File(path)) => lines.text("password_file", &path.display().to_string()),
        Some(PasswordSource::Command(command)) => {
            // An argument may be a token.
            let shown = |(at, arg): (usize, &String)| match secrets {
                Secrets::Hidden if at > 0 => quote(HIDDEN),
                Secrets::Hidden | Secrets::Exposed => quote(arg),
            };
            let argv: Vec<_> = command.argv().iter().enumerate().map(shown).collect();
            lines.raw("password_command", format!("[{}]", argv.join(", ")));
        }
        None => {}
    }
    if let Some(path) = &config.ca_file {
        lines.text("ca_file", &path.display().to_string());
    }
    if let Some(files) = &config.identity {
        lines.text("cert_file", &files.certificate.display().to_string());
        lines.text("key_file", &files.key.display().to_string());
    }
    lines.raw("pool_size", config.pool_size);
}

fn url(config: &Config, secrets: Secrets) -> String {
    let connection = &config.connection;
    let mut url = "postgresql://".to_owned();
    let password = connection.get_password().map(|password| match secrets {
        Secrets::Hidden => HIDDEN.to_owned(),
        Secrets::Exposed => encode(&String::from_utf8_lossy(password)),
    });
    if let Some(user) = connection.get_user() {
        url.push_str(&encode(user));
        if let Some(password) = &password {
            url.push_str(&format!(":{password}"));
        }
        url.push('@');
    }
    let ports = connection.get_ports();
    let port = |at: usize| ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
    let hosts = connection.get_hosts().iter().enumerate().map(|(at, host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(at)),
        Host::Tcp(name) => format!("{}:{}", encode(name), port(at)),
        Host::Unix(path) => format!("{}:{}", encode(&path.to_string_lossy()), port(at)),
    });
    url.push_str(&hosts.collect::<Vec<_>>().join(","));
    url.push('/');
    url.push_str(&connection.get_dbname().map(encode).unwrap_or_default());
    let parameters: Vec<String> = parameters(config, password.filter(|_| connection.get_user().is_none())).collect();
    url.push('?');
    url.push_str(&parameters.join("&"));
    url
}

fn parameters(config: &Config, password: Option<String>) -> impl Iterator<Item = String> {
    let connection = &config.connection;
    let sslmode = match config.tls {
        TlsMode::Disable => "disable",
        TlsMode::Require => "require",
        TlsMode::VerifyCa => "verify-ca",
        TlsMode::VerifyFull => "verify-full",
    };
    let addresses: Vec<String> = connection.get_hostaddrs().iter().map(ToString::to_string).collect();
    let session = match connection.get_target_session_attrs() {
        TargetSessionAttrs::ReadWrite => Some("read-write"),
        TargetSessionAttrs::ReadOnly => Some("read-only"),
        _ => None,
    };
    let binding = match connection.get_channel_binding() {
        ChannelBinding::Disable => Some("disable"),
        ChannelBinding::Require => Some("require"),
        _ => None,
    };
    let direct = connection.get_ssl_negotiation() == SslNegotiation::Direct;
    let idle = connection.get_keepalives_idle().as_secs();
    let connect = connection.get_connect_timeout().map(|timeout| timeout.as_secs().to_string());
    [
        ("sslmode", Some(sslmode.to_owned())),
        ("require_auth", config.auth.as_deref().map(words)),
        ("password", password),
        ("hostaddr", Some(addresses.join(",")).filter(|text| !text.is_empty())),
        ("options", connection.get_options().map(encode)),
        ("application_name", connection.get_application_name().map(encode)),
        ("connect_timeout", connect),
        ("target_session_attrs", session.map(ToOwned::to_owned)),
        ("channel_binding", binding.map(ToOwned::to_owned)),
        ("sslnegotiation", direct.then(|| "direct".to_owned())),
        ("keepalives", (!connection.get_keepalives()).then(|| "0".to_owned())),
        ("keepalives_idle", Some(idle.to_string()).filter(|_| idle != DRIVER_KEEPALIVES_IDLE)),
        ("keepalives_interval", connection.get_keepalives_interval().map(|interval| interval.as_secs().to_string())),
        ("keepalives_retries", connection.get_keepalives_retries().map(|retries| retries.to_string())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
}

fn words(methods: &[Method]) -> String {
    let word = |method: &Method| Method::ALL.iter().find(|(_, known)| known == method).map_or("", |(word, _)| *word);
    methods.iter().map(word).collect::<Vec<_>>().join(",")
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}
