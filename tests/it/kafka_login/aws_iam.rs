//! Amazon MSK: a broker that takes what is signed with keys that it knows, and a container's endpoint that gives them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use outbox_testkit::kafka::{BrokerOptions, Listener};
use tempfile::TempDir;

use super::{Scene, classes, served};
use crate::support::outside::{finding, json, standing};
use crate::support::{Process, database, kafka_relay, toml};

/// What the endpoint wants to see, as EKS writes it into a file of the pod.
const POD: &str = "p0d-t0ken";

/// Keys of a role, of which the broker is told.
#[derive(Debug)]
struct Endpoint {
    folder: TempDir,
    /// Where the broker looks for them.
    keys: PathBuf,
    said: Mutex<Said>,
}

#[derive(Debug)]
struct Said {
    away: bool,
    lasts: u64,
    /// The broker knows another secret.
    wrong: bool,
    given: u64,
}

impl Endpoint {
    fn see<T>(&self, read: impl FnOnce(&mut Said) -> T) -> T {
        read(&mut self.said.lock().unwrap())
    }

    /// Other keys, which end after a time; what the endpoint says of them.
    fn another(&self) -> String {
        let mut said = self.said.lock().unwrap();
        said.given += 1;
        let (number, ends) = (said.given, SystemTime::now() + Duration::from_secs(said.lasts));
        let (id, session) = (format!("ASIAEXAMPLE{number:05}"), format!("session/{number}+="));
        let secret = format!("hunter2/{number}");
        let known = if said.wrong { "another" } else { secret.as_str() };
        // As it stands in the URL.
        let encoded = session.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
        let millis = ends.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let mut keys = fs::read_to_string(&self.keys).unwrap_or_default();
        writeln!(keys, "{id} = {known} {encoded} {millis}").unwrap();
        // Whole at any time: the broker may be reading it.
        let partial = self.keys.with_extension("partial");
        fs::write(&partial, keys).unwrap();
        fs::rename(partial, &self.keys).unwrap();
        let ends = chrono::DateTime::<chrono::Utc>::from(ends).format("%Y-%m-%dT%H:%M:%S%.3fZ");
        format!(
            r#"{{"AccessKeyId":"{id}","SecretAccessKey":"{secret}","Token":"{session}","Expiration":"{ends}","AccountId":"1"}}"#
        )
    }
}

async fn credentials(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> (StatusCode, String) {
    if headers.get("authorization").is_none_or(|token| token != POD) {
        return (StatusCode::UNAUTHORIZED, "no such pod".to_owned());
    }
    if endpoint.see(|said| said.away) {
        return (StatusCode::INTERNAL_SERVER_ERROR, "a moment please".to_owned());
    }
    (StatusCode::OK, endpoint.another())
}

fn listener() -> Listener {
    let module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
    let settings = vec![
        ("sasl.enabled.mechanisms", "OAUTHBEARER".to_owned()),
        ("oauthbearer.sasl.jaas.config", format!("{module} required;")),
        ("oauthbearer.sasl.server.callback.handler.class", "SignedUrls".to_owned()),
        // A connection ends with the token that it was made by, unless it shows another one (KIP-368).
        ("oauthbearer.connections.max.reauth.ms", "3600000".to_owned()),
    ];
    Listener { name: "tokens".to_owned(), protocol: "SASL_PLAINTEXT", advertised: None, settings }
}

/// Nothing of the machine that the tests run on.
fn nowhere() -> Vec<(&'static str, String)> {
    let unset = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ];
    let mut variables = unset.map(|name| (name, String::new())).to_vec();
    variables.extend(["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"].map(|name| (name, "/nowhere".to_owned())));
    variables.push(("AWS_EC2_METADATA_DISABLED", "true".to_owned()));
    variables
}

/// Runs the program to its end: exit code, standard output, standard error.
async fn ran(text: &str, args: &[&str], variables: &[(&str, String)]) -> (Option<i32>, String, String) {
    let mut process = Process::spawn_with(text, args, variables);
    let code = process.wait().await;
    (code, process.out(), process.log())
}

struct Stage {
    scene: Scene,
    endpoint: Arc<Endpoint>,
    variables: Vec<(&'static str, String)>,
    _classes: TempDir,
}

impl Stage {
    async fn start(lasts: u64) -> Self {
        let classes = classes::compiled("SignedUrls");
        let options = BrokerOptions {
            listeners: vec![listener()],
            classes: Some(classes.path().to_owned()),
            ..BrokerOptions::default()
        };
        let scene = Scene::start(&options).await;
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, format!("{POD}\n")).unwrap();
        let keys = scene.broker.dir().join("keys.properties");
        let said = Mutex::new(Said { away: false, lasts, wrong: false, given: 0 });
        let endpoint = Arc::new(Endpoint { folder, keys, said });
        let port =
            served(Router::new().route("/v1/credentials", get(credentials)).with_state(Arc::clone(&endpoint))).await;
        let mut variables = nowhere();
        // What the agent of EKS Pod Identity sets.
        let uri = format!("http://127.0.0.1:{port}/v1/credentials");
        variables.retain(|(name, _)| *name != "AWS_CONTAINER_CREDENTIALS_FULL_URI");
        variables.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri));
        variables.push(("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.display().to_string()));
        Self { scene, endpoint, variables, _classes: classes }
    }

    fn text(&self) -> String {
        self.scene.text("[kafka.aws_iam]\nregion = \"eu-central-1\"\n")
    }
}

// Guarantee: secrets.aws-iam
#[tokio::test(flavor = "multi_thread")]
async fn signed_tokens_are_renewed_with_their_credentials_and_rows_wait_while_there_are_none() {
    // As for an issuer's tokens: long enough for librdkafka, which looks once a second.
    let stage = Stage::start(12).await;
    let (text, scene) = (stage.text(), &stage.scene);
    scene.book().await;
    let (code, out, log) = ran(&text, &["check", "-o", "json"], &stage.variables).await;
    assert!(code == Some(0) && finding(&json(&out), "message_size").is_some(), "{code:?} {out}{log}");
    let process = Process::spawn_with(&text, &["run"], &stage.variables);
    scene.books_while_tokens_are_renewed(|| stage.endpoint.see(|said| said.given) >= 4).await;
    stage.endpoint.see(|said| said.away = true);
    let unavailable = scene.book_until("token_unavailable", &process).await;
    println!("{unavailable}");
    assert!(unavailable["message"].as_str().unwrap().contains("EKS Pod Identity"), "{unavailable}");
    stage.endpoint.see(|said| said.away = false);
    scene.book().await;
    scene.has_all().await;
    let (code, out, log) = ran(&text, &["verify", "k"], &stage.variables).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let log = process.log();
    assert!(log.contains("AWS credentials found") && !log.contains("relay halted"), "{log}");
    let head = BASE64_URL_SAFE_NO_PAD.encode("https://kafka.eu-central-1");
    for secret in ["hunter2", "session/", POD, &head[..20]] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
    stage.scene.broker.stop().await.unwrap();
}

// Guarantee: secrets.aws-iam
#[tokio::test(flavor = "multi_thread")]
async fn signature_of_a_wrong_key_halts_until_the_key_is_right() {
    let stage = Stage::start(3600).await;
    let (text, scene) = (stage.text(), &stage.scene);
    scene.book().await;
    stage.endpoint.see(|said| said.wrong = true);
    let (code, out, _) = ran(&text, &["check", "-o", "json"], &stage.variables).await;
    let document = json(&out);
    let found = finding(&document, "kafka_refused").unwrap_or_else(|| panic!("{out}"));
    println!("{found}");
    assert_eq!(code, Some(3), "{out}");
    let process = Process::spawn_with(&text, &["run"], &stage.variables);
    let refused = scene.has_code("kafka_authentication").await;
    println!("{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("[kafka.aws_iam]"), "{refused}");
    assert!(standing(&scene.owner, "k").await.unwrap().1, "halted");
    // A pod that the endpoint does not know.
    fs::write(stage.endpoint.folder.path().join("token"), "other").unwrap();
    assert_eq!(ran(&text, &["cursor", "resume", "k"], &stage.variables).await.0, Some(0));
    let refused = scene.has_code("token_refused").await;
    println!("{refused}");
    fs::write(stage.endpoint.folder.path().join("token"), POD).unwrap();
    stage.endpoint.see(|said| said.wrong = false);
    assert_eq!(ran(&text, &["cursor", "resume", "k"], &stage.variables).await.0, Some(0));
    scene.has_all().await;
    let log = process.log();
    assert!(!log.contains("hunter2") && !log.contains(POD), "{log}");
    stage.scene.broker.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_all_places_where_credentials_were_looked_for() {
    let database = database().await;
    let text = toml(&database, "relay", Some("127.0.0.1:1"), &kafka_relay("k", "t", ""));
    let text = text.replace("[admin]", "aws_iam = { region = \"eu-central-1\" }\n[admin]");
    let (code, out, log) = ran(&text, &["check", "-o", "json"], &nowhere()).await;
    let document = json(&out);
    let found = finding(&document, "token_unavailable").unwrap_or_else(|| panic!("{out}{log}"));
    assert_eq!((code, &found["level"]), (Some(3), &"error".into()), "{out}");
    let message = found["message"].as_str().unwrap();
    for place in ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "\"default\"", "CREDENTIALS_FULL_URI", "IMDSv2"] {
        assert!(message.contains(place), "{place} in {message}");
    }
}
