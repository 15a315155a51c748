//! `outbox-relay health`: whether the replica beside it is well, for a container's HEALTHCHECK and for a script.
//!
//! Promise: one line and an exit code, within 3 s: 0 when the replica answers that it is alive (or ready), 1 with the reason when it does
//! not. It asks the replica's own listener and no server: an outage of PostgreSQL or of a receiver makes no replica unhealthy.

use std::error::Error as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use reqwest::{Client, Response, StatusCode, Url, redirect, retry};

use super::output::print;
use crate::config::{Config, Problems};
use crate::visible::{bounded, visible};

/// Shorter than what those who ask again and again usually allow.
pub(super) const LIMIT: Duration = Duration::from_secs(3);
/// The most that is read of an answer, and shown of it.
const MOST: usize = 500;

/// Arguments of `health`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay health                                     of the replica that [admin] listen names
  outbox-relay health --ready --url http://10.0.0.7:9464  no configuration is read

Exit codes: 0 healthy, 1 not, 2 usage or configuration. Alive means that the engine moves, whatever PostgreSQL and receivers do; \
ready, that the start is complete.")]
pub struct Args {
    /// Where the replica listens; admin.listen of the configuration by default
    #[arg(long, value_name = "URL", value_parser = base)]
    pub url: Option<Url>,
    /// Ask whether it is ready, not only whether it is alive
    #[arg(long)]
    pub ready: bool,
}

/// The configuration does not say where to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("admin.listen has port 0, so that the system chooses one: name the listener by --url")]
pub(super) struct NoAddress;

/// Asks, and says what it heard.
///
/// # Errors
/// The configuration's, or [`NoAddress`].
pub(super) async fn run(
    load: impl FnOnce() -> Result<Config, Problems>,
    args: Args,
    limit: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let mut url = match args.url {
        Some(url) => url,
        None => of_listener(load()?.admin.listen)?,
    };
    let (path, word) = if args.ready { ("/readyz", "ready") } else { ("/livez", "alive") };
    url.set_path(path);
    let limit = limit.unwrap_or(LIMIT);
    let heard = match tokio::time::timeout(limit, ask(&url, word)).await {
        Ok(heard) => heard,
        Err(_) => Err(format!("no answer within {limit:?}")),
    };
    let (line, code) = match heard {
        Ok(()) => (format!("{word}: {url}"), ExitCode::SUCCESS),
        Err(why) => (format!("not {word}: {url}: {why}"), ExitCode::FAILURE),
    };
    print(&format!("{}\n", visible(&line)))?;
    Ok(code)
}

/// An address that stands for all of this machine's is asked at the loopback interface.
fn of_listener(listen: SocketAddr) -> Result<Url, NoAddress> {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let url = Url::parse(&format!("http://{}", SocketAddr::new(ip, listen.port())));
    url.ok().filter(|_| listen.port() != 0).ok_or(NoAddress)
}

/// Scheme, host and port; the listener has no TLS and no log-in.
fn base(text: &str) -> Result<Url, String> {
    let form = "write it as http://127.0.0.1:9464";
    let url = Url::parse(text).map_err(|error| format!("{error}; {form}"))?;
    let rest = (url.username(), url.password(), url.path(), url.query(), url.fragment());
    if url.scheme() != "http" || rest != ("", None, "/", None, None) {
        return Err(format!("only http, a host and a port; {form}"));
    }
    Ok(url)
}

/// Nothing when the answer is the one word that says so.
async fn ask(url: &Url, word: &str) -> Result<(), String> {
    // The listener has no TLS: no authorities are read, which would take longer than the question.
    let client = Client::builder()
        .tls_certs_only([])
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .build()
        .map_err(|error| reason(&error))?;
    let mut response = client.get(url.clone()).send().await.map_err(|error| reason(&error))?;
    let body = body(&mut response).await?;
    match response.status() {
        StatusCode::OK if body == word => Ok(()),
        StatusCode::OK => Err(format!("answers as something else than outbox-relay: {body}")),
        status => Err(format!("answers {status}: {body}")),
    }
}

/// The beginning of the body, in one line.
async fn body(response: &mut Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while bytes.len() < MOST
        && let Some(more) = response.chunk().await.map_err(|error| reason(&error))?
    {
        bytes.extend_from_slice(&more);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(bounded(&text.lines().collect::<Vec<_>>().join("; "), MOST))
}

/// The innermost cause, which is the operating system's; none of them holds the URL.
fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request could not be made".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_address_is_asked_at_the_loopback_interface_when_it_stands_for_all() {
        for (listen, url) in [
            ("127.0.0.1:9464", "http://127.0.0.1:9464/"),
            ("0.0.0.0:1", "http://127.0.0.1:1/"),
            ("[::]:1", "http://[::1]:1/"),
            ("10.0.0.7:80", "http://10.0.0.7/"),
        ] {
            assert_eq!(of_listener(listen.parse().expect(listen)).expect(listen).as_str(), url);
        }
        assert_eq!(of_listener(([127, 0, 0, 1], 0).into()), Err(NoAddress));
    }

    #[test]
    fn only_scheme_host_and_port_name_a_listener() {
        assert!(base("http://relay:9464").is_ok() && base("http://[::1]:9464/").is_ok());
        for wrong in ["127.0.0.1:9464", "https://a:1", "http://u@a:1", "http://a:1/livez", "http://a:1/?x", "http://"] {
            assert!(base(wrong).is_err_and(|why| why.contains("http://127.0.0.1:9464")), "{wrong}");
        }
    }
}
