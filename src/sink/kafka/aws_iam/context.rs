//! What the library of credentials sees of this process: variables, files, the network, programs. It has none of its own.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, DATE, HeaderMap};
use reqsign_core::{CommandExecute, CommandOutput, Context, Env, Error, FileRead, HttpSend, Result};
use reqwest::Request;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::sink::http::call::{Reply, call};

/// For an answer of STS or of a container's endpoint.
const TIMEOUT: Duration = Duration::from_secs(3);
/// For each of the answers of an instance's metadata, which is a hop away or not there.
const NEAR: Duration = Duration::from_secs(1);
/// For a program that prints credentials: less than a token is waited for, so that what it was is said.
const PROGRAM: Duration = Duration::from_secs(3);
/// Longer than any credentials that a program prints.
const PRINTED: u64 = 64 << 10;
/// Where nodes of EKS give pods their credentials by IPv6.
const EKS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);
/// Headers of a request that are secrets, beside the usual one.
const SECRETS: [&str; 3] = ["x-amz-security-token", "x-aws-ec2-metadata-token", "x-amz-sso_bearer_token"];

/// What was seen on the way, which the library's errors do not say.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Why the last file was not read, or the last service not reached.
    trouble: Mutex<Option<String>>,
    /// By how many seconds this machine's clock is ahead of a service of AWS.
    ahead: Mutex<Option<i64>>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    /// What has gone wrong since this was asked last.
    pub(super) fn trouble(&self) -> Option<String> {
        locked(&self.trouble).take()
    }

    /// By how many seconds this machine's clock is ahead of AWS's, where that is known; negative when it is behind.
    pub(super) fn ahead(&self) -> Option<i64> {
        *locked(&self.ahead)
    }

    fn note(&self, trouble: String) -> Error {
        *locked(&self.trouble) = Some(trouble.clone());
        Error::unexpected(trouble)
    }

    /// Compares the clocks.
    pub(super) fn compare(&self, headers: &HeaderMap, now: SystemTime) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let Some(date) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else { return };
        let seconds = |by: Duration| i64::try_from(by.as_secs()).unwrap_or(i64::MAX);
        let ahead = now.duration_since(date).map_or_else(|behind| -seconds(behind.duration()), seconds);
        *locked(&self.ahead) = Some(ahead);
    }
}

/// This process's. The second one is for what is near, or not there.
pub(super) fn contexts(seen: &Arc<Seen>) -> (Context, Context) {
    let with = |timeout| {
        Context::new()
            .with_env(Variables)
            .with_file_read(Files(Arc::clone(seen)))
            .with_http_send(Http { timeout, seen: Arc::clone(seen) })
            .with_command_execute(Programs)
    };
    (with(TIMEOUT), with(NEAR))
}

/// The variables of the environment; an empty one is none.
#[derive(Debug)]
struct Variables;

impl Env for Variables {
    fn var(&self, key: &str) -> Option<String> {
        std::env::var(key).ok().filter(|value| !value.is_empty())
    }

    fn vars(&self) -> HashMap<String, String> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            name.into_string().ok().zip(value.into_string().ok().filter(|value| !value.is_empty()))
        };
        std::env::vars_os().filter_map(text).collect()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        self.var("HOME").map(PathBuf::from)
    }
}

#[derive(Debug)]
struct Files(Arc<Seen>);

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        crate::file::bytes(Path::new(path)).map_err(|error| self.0.note(format!("{path}: {error}")))
    }
}

/// By the client that asks issuers of tokens.
#[derive(Debug)]
struct Http {
    timeout: Duration,
    seen: Arc<Seen>,
}

impl HttpSend for Http {
    async fn http_send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        let uri = request.uri();
        let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |host| host.as_str()));
        let (whom, is_far) = (format!("{scheme}://{host}"), scheme == "https");
        if !is_far && !is_near(uri.host().unwrap_or_default()) {
            let why = "credentials by http are asked for on this machine and its link only; elsewhere use https";
            return Err(self.seen.note(format!("{whom}: {why}")));
        }
        let sent = request.headers().clone();
        let request = Request::try_from(request).map_err(|_| self.seen.note(format!("{whom} cannot be asked")))?;
        let reply =
            call(request, self.timeout, None, &whom).await.map_err(|why| self.seen.note(why).set_retryable(true));
        let Reply { status, headers, body } = reply?;
        if is_far {
            self.seen.compare(&headers, SystemTime::now());
        }
        let body = if status.is_success() { body } else { without_secrets(&sent, &body) };
        let mut response = http::Response::new(Bytes::from(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// Whether this machine or its link has a host, as AWS's own libraries want it of an address that begins with `http://`. That of
/// EKS is in no such range.
fn is_near(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_near = |address| match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local() || address == EKS,
    };
    host == "localhost" || host.parse().is_ok_and(is_near)
}

/// What a service says of a request that it refuses could quote what was sent.
fn without_secrets(sent: &HeaderMap, body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body).into_owned();
    let secrets = SECRETS.iter().filter_map(|name| sent.get(*name)).chain(sent.get(AUTHORIZATION));
    let secrets = secrets.filter_map(|secret| secret.to_str().ok()).filter(|secret| !secret.is_empty());
    secrets.fold(text, |text, secret| text.replace(secret, "***")).into_bytes()
}

/// `credential_process` of a profile.
#[derive(Debug)]
struct Programs;

impl CommandExecute for Programs {
    async fn command_execute(&self, program: &str, args: &[&str]) -> Result<CommandOutput> {
        let late = |_| Err(io::Error::other(format!("not done after {PROGRAM:?}")));
        let run = tokio::time::timeout(PROGRAM, run(program, args)).await.unwrap_or_else(late);
        run.map_err(|error| Error::unexpected(format!("{program}: {error}")))
    }
}

async fn run(program: &str, args: &[&str]) -> io::Result<CommandOutput> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(beginning(stdout), beginning(stderr))?;
    let status = child.wait().await?.code().unwrap_or(-1);
    Ok(CommandOutput { status, stdout, stderr })
}

async fn beginning(from: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if let Some(from) = from {
        from.take(PRINTED).read_to_end(&mut read).await?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_that_quotes_what_was_sent_is_shown_without_it() {
        let mut sent = HeaderMap::new();
        sent.insert(AUTHORIZATION, "hunter2".parse().expect("a value"));
        sent.insert(SECRETS[1], "t0ken".parse().expect("a value"));
        let shown = without_secrets(&sent, b"token hunter2 is not t0ken");
        assert_eq!(shown, b"token *** is not ***");
    }

    #[tokio::test]
    async fn clear_text_goes_to_this_machine_and_its_link_only() {
        for host in ["localhost", "127.0.0.1", "169.254.170.2", "169.254.169.254", "[::1]", "[fd00:ec2::23]"] {
            assert!(is_near(host), "{host}");
        }
        for host in ["10.0.0.1", "example.org", "[fd00:ec2::24]", "[2001:db8::1]", "127.0.0.1.example.org", ""] {
            assert!(!is_near(host), "{host}");
        }
        let services = Http { timeout: NEAR, seen: Arc::default() };
        let request = http::Request::get("http://192.0.2.1/keys").body(Bytes::new()).expect("a request");
        let error = services.http_send(request).await.expect_err("refused");
        assert!(error.to_string().contains("elsewhere use https"), "{error}");
    }

    #[test]
    fn clock_is_compared_with_the_answers_date() {
        let seen = Seen::default();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut headers = HeaderMap::new();
        headers.insert(DATE, httpdate::fmt_http_date(at(1_000_000)).parse().expect("a value"));
        for (now, ahead) in [(1_000_400, 400), (999_600, -400)] {
            seen.compare(&headers, at(now));
            assert_eq!(seen.ahead(), Some(ahead));
        }
        headers.insert(DATE, "yesterday".parse().expect("a value"));
        seen.compare(&headers, at(0));
        assert_eq!(seen.ahead(), Some(-400), "of the answer before");
    }

    #[tokio::test]
    async fn program_that_prints_without_end_is_cut_and_one_that_is_not_there_named() {
        let run = async |program: &str, args: &[&str]| Programs.command_execute(program, args).await;
        let output = run("/bin/sh", &["-c", "echo a; echo b >&2; exit 3"]).await.expect("run");
        assert_eq!((output.status, output.stdout, output.stderr), (3, b"a\n".to_vec(), b"b\n".to_vec()));
        let output = run("/bin/sh", &["-c", "yes"]).await.expect("run");
        assert_eq!(output.stdout.len() as u64, PRINTED);
        let error = run("/no/such", &[]).await.expect_err("missing");
        assert!(error.to_string().contains("/no/such: No such file"), "{error}");
    }
}
