//! The search for credentials, against scripted services.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use reqsign_core::{Context, Error, FileRead, HttpSend, Result, StaticEnv};

use super::Config;
use super::context::Seen;
use super::source::Source;
use crate::sink::http::oauth2::{Token, TokenSource as _};
use crate::sink::{Class, Failure};

const ROLE: &str = "arn:aws:iam::123456789012:role/relay";

/// What a service answers: a status and a body; none when it is away.
type Answer = Option<(u16, String)>;

/// Services, by the host and path that they are asked at; what was asked is kept.
#[derive(Clone, Debug, Default)]
struct Services {
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
    seen: Arc<Seen>,
    /// What their clocks say, in seconds after this one's.
    ahead: u64,
}

impl Services {
    fn answer(&self, at: &str, answer: Answer) {
        self.answers.lock().expect("not poisoned").insert(at.to_owned(), answer);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

impl HttpSend for Services {
    async fn http_send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        let uri = request.uri();
        let at = format!("{}{}", uri.authority().expect("a host"), uri.path());
        let body = String::from_utf8_lossy(request.body()).into_owned();
        self.asked.lock().expect("not poisoned").push(format!("{uri} {body}"));
        let answer = self.answers.lock().expect("not poisoned").get(&at).cloned().flatten();
        let Some((status, body)) = answer else {
            return Err(Error::unexpected(format!("{at} cannot be reached")).set_retryable(true));
        };
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(self.ahead));
        let response = http::Response::builder().status(status).header("date", date);
        let response = response.body(Bytes::from(body)).expect("a response");
        self.seen.compare(response.headers(), SystemTime::now());
        Ok(response)
    }
}

/// Files as they are.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        Ok(crate::file::bytes(Path::new(path))?)
    }
}

/// The search of a process with these variables, whose metadata service is not there.
fn source(services: &Services, variables: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Source {
    let mut config = Config { region: "eu-central-1".to_owned(), role_arn: None, profile: None, session_name: None };
    change(&mut config);
    let envs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let env = StaticEnv { home_dir: None, envs };
    let context = Context::new().with_env(env).with_file_read(Files).with_http_send(services.clone());
    Source::within(config, context.clone(), &context, Arc::clone(&services.seen))
}

fn ends_in(seconds: u64) -> String {
    chrono::DateTime::<chrono::Utc>::from(SystemTime::now() + Duration::from_secs(seconds))
        .format("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// What a container's endpoint answers.
fn keys(id: &str, seconds: u64) -> Answer {
    let ends = ends_in(seconds);
    let body = format!(
        r#"{{"AccessKeyId":"{id}","SecretAccessKey":"hunter2","Token":"t","Expiration":"{ends}","RoleArn":"{ROLE}"}}"#
    );
    Some((200, body))
}

/// What STS answers.
fn session(action: &str, id: &str, seconds: u64) -> Answer {
    let keys = format!(
        "<AccessKeyId>{id}</AccessKeyId><SecretAccessKey>hunter2</SecretAccessKey><SessionToken>t</SessionToken>\
         <Expiration>{}</Expiration>",
        ends_in(seconds)
    );
    let body = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>{keys}</Credentials>\
         </{action}Result></{action}Response>"
    );
    Some((200, body))
}

fn refusal(code: &str, message: &str) -> Answer {
    let body = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    );
    Some((403, body))
}

/// The URL that a token is.
fn url(token: &Token) -> String {
    String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(token.text()).expect("base64")).expect("a URL")
}

fn said(failure: &Failure) -> (Class, &str) {
    (failure.class, failure.code.as_str())
}

const ENDPOINT: (&str, &str) = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/keys");
const STS: &str = "sts.eu-central-1.amazonaws.com/";

#[tokio::test]
async fn message_about_missing_credentials_names_each_place_that_was_looked_at() {
    let services = Services::default();
    let failure = source(&services, &[], |_| {}).ask().await.expect_err("none");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
    for place in [
        "(1) the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: not set",
        "(2) the web identity of AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE (IRSA): not set",
        "(3) keys of the profile \"default\" in ~/.aws/credentials or ~/.aws/config: none",
        "(4) its login by SSO",
        "(5) its credential_process",
        "(6) the endpoint AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "(7) the instance's metadata (IMDSv2): failed to connect to IMDS",
    ] {
        assert!(failure.message.contains(place), "{place} in {}", failure.message);
    }
}

#[tokio::test]
async fn profile_that_is_named_is_the_only_place() {
    let dir = tempfile::tempdir().expect("made");
    let file = dir.path().join("credentials");
    let text = "[relay]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = hunter2\n";
    std::fs::write(&file, text).expect("written");
    let path = file.display().to_string();
    let variables = [
        ("AWS_SHARED_CREDENTIALS_FILE", path.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIDVARIABLE"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
    ];
    let services = Services::default();
    let of = async |profile: Option<&str>| {
        source(&services, &variables, |config| config.profile = profile.map(str::to_owned)).ask().await
    };
    let token = of(Some("relay")).await.expect("found");
    assert!(url(&token).contains("X-Amz-Credential=AKIDPROFILE%2F"), "{}", url(&token));
    assert!(url(&of(None).await.expect("found")).contains("X-Amz-Credential=AKIDVARIABLE%2F"));
    let failure = of(Some("other")).await.expect_err("no such profile");
    assert!(failure.message.contains("profile \"other\"") && !failure.message.contains("IMDS"), "{failure:?}");
    assert_eq!(services.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn half_of_a_pair_of_variables_ends_the_search() {
    let services = Services::default();
    services.answer("127.0.0.1:9/keys", keys("AKIDNODE", 3600));
    for (name, other) in [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
        ("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    ] {
        let failure = source(&services, &[ENDPOINT, (name, "a"), (other, "")], |_| {}).ask().await.expect_err(name);
        assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
        let message = &failure.message;
        assert!(message.contains("one is set without the other") && message.contains(name), "{message}");
        assert!(message.contains(other), "{message}");
    }
    assert_eq!(services.asked(), Vec::<String>::new());
    // What stands behind a pair that is set does not count.
    let whole = [("AWS_ACCESS_KEY_ID", "AKIDPAIR"), ("AWS_SECRET_ACCESS_KEY", "hunter2"), ("AWS_ROLE_ARN", ROLE)];
    let token = source(&services, &whole, |_| {}).ask().await.expect("found");
    assert!(url(&token).contains("X-Amz-Credential=AKIDPAIR%2F"), "{}", url(&token));
}

#[tokio::test]
async fn profile_of_the_variable_that_is_not_there_ends_the_search() {
    let services = Services::default();
    services.answer("127.0.0.1:9/keys", keys("AKIDNODE", 3600));
    let failure = source(&services, &[ENDPOINT, ("AWS_PROFILE", "other")], |_| {}).ask().await.expect_err("none");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
    assert!(failure.message.contains("profile \"other\"") && !failure.message.contains("IMDS"), "{failure:?}");
    assert_eq!(services.asked(), Vec::<String>::new(), "the node has another identity");
}

#[tokio::test]
async fn credentials_end_the_token_and_are_kept_while_they_outlast_it() {
    let services = Services::default();
    let source = source(&services, &[ENDPOINT], |_| {});
    let lasts = async || source.ask().await.map(|token| token.lasts().expect("an end").as_secs());
    services.answer("127.0.0.1:9/keys", keys("AKIDONE", 300));
    assert!((295..=300).contains(&lasts().await.expect("found")));
    services.answer("127.0.0.1:9/keys", keys("AKIDTWO", 3600));
    assert!((895..=900).contains(&lasts().await.expect("found")));
    services.answer("127.0.0.1:9/keys", None);
    assert!((895..=900).contains(&lasts().await.expect("those of before")));
    assert_eq!(services.asked().len(), 2, "they last longer than the token: nothing is asked");
    source.refused();
    let failure = lasts().await.expect_err("what brokers refuse is not used again");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
    services.answer("127.0.0.1:9/keys", keys("AKIDTHREE", 0));
    let failure = lasts().await.expect_err("they have ended");
    assert!(failure.message.contains("have ended at 2"), "{failure:?}");
}

#[tokio::test]
async fn place_that_is_configured_and_fails_ends_the_search() {
    let services = Services::default();
    services.answer("169.254.169.254/latest/api/token", Some((200, "t".to_owned())));
    let source = source(&services, &[ENDPOINT], |_| {});
    let failure = source.ask().await.expect_err("away");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
    assert_eq!(services.asked().len(), 1, "the instance has another identity: {:?}", services.asked());
    services.answer("127.0.0.1:9/keys", Some((403, "no role".to_owned())));
    let failure = source.ask().await.expect_err("refused");
    assert_eq!(said(&failure), (Class::Fatal, "token_refused"));
    assert!(failure.message.contains("no role") && failure.hint.contains("cursor resume NAME"), "{failure:?}");
}

#[tokio::test]
async fn web_identity_is_changed_at_the_regions_sts_and_its_refusal_has_the_services_words() {
    let dir = tempfile::tempdir().expect("made");
    let file = dir.path().join("token");
    let path = file.display().to_string();
    let variables = [("AWS_ROLE_ARN", ROLE), ("AWS_WEB_IDENTITY_TOKEN_FILE", path.as_str())];
    let services = Services::default();
    let source = source(&services, &variables, |_| {});
    let failure = source.ask().await.expect_err("no file");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
    assert!(failure.message.contains("failed to read web identity token file"), "{failure:?}");
    std::fs::write(&file, "jwt-hunter2\n").expect("written");
    assert_eq!(said(&source.ask().await.expect_err("away")), (Class::Retry, "token_unavailable"));
    services.answer(STS, refusal("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity"));
    let failure = source.ask().await.expect_err("refused");
    assert_eq!(said(&failure), (Class::Fatal, "token_refused"));
    assert!(failure.message.contains("AccessDenied: Not authorized"), "{failure:?}");
    services.answer(STS, refusal("ExpiredToken", "of jwt-hunter2"));
    let failure = source.ask().await.expect_err("ended");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"), "the file is written again before it ends");
    assert!(!failure.message.contains("hunter2"), "{failure:?}");
    services.answer(STS, session("AssumeRoleWithWebIdentity", "ASIAWEB", 3600));
    let token = source.ask().await.expect("changed");
    assert!(url(&token).contains("X-Amz-Credential=ASIAWEB%2F") && url(&token).contains("X-Amz-Security-Token=t&"));
    let last = services.asked().pop().expect("asked");
    assert!(last.contains("WebIdentityToken=jwt-hunter2") && last.contains("RoleSessionName=outbox-relay"), "{last}");
}

#[tokio::test]
async fn role_is_assumed_with_what_was_found() {
    let services = Services::default();
    let variables = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE123456"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];
    let source = source(&services, &variables, |config| {
        config.role_arn = Some(ROLE.to_owned());
        config.session_name = Some("orders".to_owned());
    });
    services.answer(STS, session("AssumeRole", "ASIAROLE12345678901", 3600));
    let token = source.ask().await.expect("assumed");
    assert!(url(&token).contains("X-Amz-Credential=ASIAROLE12345678901%2F"), "{}", url(&token));
    let asked = services.asked();
    assert!(asked.len() == 1 && asked[0].contains("RoleSessionName=orders"), "{asked:?}");
    source.refused();
    services.answer(STS, refusal("AccessDenied", "not authorized to perform: sts:AssumeRole"));
    let failure = source.ask().await.expect_err("refused");
    assert_eq!(said(&failure), (Class::Fatal, "token_refused"));
    assert!(failure.message.contains(ROLE) && !failure.message.contains("hunter2"), "{failure:?}");
}

#[tokio::test]
async fn clock_that_is_off_is_told_instead_of_what_it_causes() {
    let services = Services { ahead: 400, ..Services::default() };
    let variables = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE123456"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];
    let source = source(&services, &variables, |config| config.role_arn = Some(ROLE.to_owned()));
    services.answer(STS, refusal("SignatureDoesNotMatch", "Signature expired"));
    let failure = source.ask().await.expect_err("the clock");
    assert_eq!(said(&failure), (Class::Retry, "token_unavailable"));
    assert!(failure.message.contains(" s behind that of AWS"), "{failure:?}");
}
