//! A relay's schemas beside a registry that is away, refuses, hangs, or has later ones.

use std::path::Path;
use std::time::Instant;

use super::encoder::Unencoded;
use super::*;
use crate::sink::{Class, Failure, Subject};
use server::Server;

mod registered;
mod server;
mod topics;

const V1: &str = r#"{"type":"record","name":"B","fields":[{"name":"id","type":"long"}]}"#;
const V2: &str =
    r#"{"type":"record","name":"B","fields":[{"name":"id","type":"long"},{"name":"c","type":"string","default":""}]}"#;
/// Longer than anything takes here, where nothing hangs.
const LONG: Duration = Duration::from_secs(30);

fn registry(url: &str) -> RegistryConfig {
    RegistryConfig {
        url: url.to_owned(),
        login: RegistryLogin::None,
        access: access::Config::default(),
        timeout: LONG,
        refresh: Duration::from_secs(600),
    }
}

fn format(registry: RegistryConfig) -> SchemaFormat {
    SchemaFormat {
        kind: SchemaKind::Avro,
        subject: SubjectName::Topic,
        wanted: WantedSchema::Latest,
        record: None,
        ignores_unknown: false,
        registry: Arc::new(registry),
    }
}

/// An encoder, and the registries that it asks.
struct Stage(Encoder, Registries);

impl Stage {
    fn new(format: &SchemaFormat) -> Self {
        Self(Encoder::new(format), Registries::default())
    }

    async fn prepare(&self) -> Result<(), Failure> {
        self.0.prepare(&self.1, "t").await
    }

    async fn renew(&self, since: Instant) -> Result<(), Failure> {
        self.0.renew(&self.1, "t", since).await
    }

    fn encode(&self, row: &str) -> Result<Vec<u8>, Failure> {
        self.0.encode("t", row.as_bytes(), 1_000).map_err(|unencoded| match unencoded {
            Unencoded::Refused(failure) => failure,
            Unencoded::Large(bytes) => panic!("{bytes} bytes"),
        })
    }

    /// Until a row is written under that id.
    async fn until(&self, id: u8) {
        let is_written = async {
            while self.encode("{\"id\":1}").expect("fits")[4] != id {
                self.prepare().await.expect("known");
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, is_written).await.expect("it is taken");
    }
}

#[tokio::test]
async fn schema_is_asked_for_once_and_stays_in_use_while_the_registry_is_away() {
    let server = Server::start().await;
    server.latest("t-value", 7, V1);
    let stage = Stage::new(&format(RegistryConfig { refresh: Duration::ZERO, ..registry(&server.url) }));
    stage.prepare().await.expect("given");
    assert_eq!(stage.encode("{\"id\":1}").expect("fits"), [0, 0, 0, 0, 7, 2]);
    // What is known is not waited for, whatever becomes of the question for a later one.
    server.state().hangs = true;
    for _ in 0..3 {
        stage.prepare().await.expect("known");
    }
    drop(server);
    stage.prepare().await.expect("known");
    assert_eq!(stage.encode("{\"id\":1}").expect("fits")[4], 7);
    // Another sink of the process, made while it is away.
    let again = Stage(Encoder::new(&stage.0.format()), stage.1);
    again.prepare().await.expect("known");
}

#[tokio::test]
async fn later_schema_is_taken_when_it_is_time_and_a_fixed_version_never_changes() {
    let server = Server::start().await;
    server.latest("t-value", 1, V1);
    let stage = Stage::new(&format(RegistryConfig { refresh: Duration::ZERO, ..registry(&server.url) }));
    stage.prepare().await.expect("given");
    server.latest("t-value", 2, V2);
    stage.until(2).await;
    let server = Server::start().await;
    let given = serde_json::json!({ "id": 1, "schema": V1 }).to_string();
    server.answer("GET /api/subjects/t-value/versions/1", 200, &given);
    let fixed = format(RegistryConfig { refresh: Duration::ZERO, ..registry(&server.url) });
    let fixed = Stage::new(&SchemaFormat { wanted: WantedSchema::Version(1), ..fixed });
    fixed.prepare().await.expect("given");
    fixed.prepare().await.expect("known");
    fixed.renew(Instant::now()).await.expect("known");
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn row_that_does_not_fit_is_judged_by_the_schema_that_the_registry_has_now() {
    let server = Server::start().await;
    server.latest("t-value", 1, V1);
    let stage = Stage::new(&format(registry(&server.url)));
    stage.prepare().await.expect("given");
    let row = "{\"id\":1,\"c\":\"x\"}";
    let failure = stage.encode(row).expect_err("unknown");
    assert_eq!((failure.class, failure.code.as_str(), failure.subject), (Class::Poison, MISMATCH, Subject::Message));
    assert!(
        failure.message.contains("subject t-value (id 1): field c: record B of the schema has no such field"),
        "{failure:?}"
    );
    assert_eq!(server.asked(), 1);
    let begun = Instant::now();
    stage.renew(begun).await.expect("the same");
    // The next row of the same batch.
    stage.renew(begun).await.expect("known");
    assert_eq!(server.asked(), 2, "an answer that is no older than the batch counts");
    server.latest("t-value", 2, V2);
    stage.renew(Instant::now()).await.expect("a later one");
    assert_eq!(stage.encode(row).expect("fits"), [0, 0, 0, 0, 2, 2, 2, b'x']);
    // One that nothing can be written by is no reason to refuse the row.
    server.latest("t-value", 3, "{\"type\":\"record\"");
    let failure = stage.renew(Instant::now()).await.expect_err("unusable");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Fatal, "schema_unusable"));
    assert_eq!(stage.encode(row).expect("the one before it stays")[4], 2);
    // While the registry is away, nothing is refused for good.
    server.state().hangs = true;
    drop(server);
    let failure = stage.renew(Instant::now()).await.expect_err("away");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "schema_registry_unavailable"));
}

#[tokio::test]
async fn each_answer_of_the_registry_has_its_consequence() {
    let server = Server::start().await;
    let question = "GET /api/subjects/t-value/versions/latest";
    let refusal = |code: i64| format!("{{\"error_code\":{code},\"message\":\"the registry's words\"}}");
    for (status, body, class, code) in [
        (404, refusal(40_401), Class::Fatal, "schema_missing"),
        (404, refusal(40_402), Class::Fatal, "schema_missing"),
        (404, "<html>".to_owned(), Class::Retry, "schema_registry_unavailable"),
        (401, refusal(40_101), Class::Fatal, "schema_registry_refused"),
        (403, String::new(), Class::Fatal, "schema_registry_refused"),
        (302, String::new(), Class::Fatal, "schema_registry_refused"),
        (409, refusal(409), Class::Fatal, "schema_refused"),
        (422, refusal(42_201), Class::Fatal, "schema_refused"),
        (400, "<html>".to_owned(), Class::Retry, "schema_registry_unavailable"),
        (413, String::new(), Class::Retry, "schema_registry_unavailable"),
        (408, String::new(), Class::Retry, "schema_registry_unavailable"),
        (429, String::new(), Class::Retry, "schema_registry_unavailable"),
        (500, refusal(50_001), Class::Retry, "schema_registry_unavailable"),
        (503, "\u{1b}[31m".to_owned(), Class::Retry, "schema_registry_unavailable"),
        (200, "{}".to_owned(), Class::Retry, "schema_registry_unavailable"),
        (200, "{\"id\":1}".to_owned(), Class::Retry, "schema_registry_unavailable"),
        (200, "<html>".to_owned(), Class::Retry, "schema_registry_unavailable"),
        (0, String::new(), Class::Retry, "schema_registry_unavailable"),
        (200, serde_json::json!({ "id": 1, "schema": "{" }).to_string(), Class::Fatal, "schema_unusable"),
        (
            200,
            serde_json::json!({ "id": 1, "schema": V1, "schemaType": "JSON" }).to_string(),
            Class::Fatal,
            "schema_unusable",
        ),
    ] {
        server.answer(question, status, &body);
        let failure = Stage::new(&format(registry(&server.url))).prepare().await.expect_err("no schema");
        assert_eq!((failure.class, failure.code.as_str()), (class, code), "{status} {body}: {failure:?}");
        assert_eq!(schema_code(&failure), Some(code), "`check` has a finding of it");
        assert_eq!(
            (failure.ambiguous, failure.subject),
            (false, Subject::Elsewhere),
            "no other relay of the cluster stops"
        );
        assert!(!body.contains("words") || failure.message.contains("the registry's words"), "{failure:?}");
        assert!(!failure.message.contains('\u{1b}') && !failure.hint.is_empty(), "{failure:?}");
    }
}

#[tokio::test]
async fn registry_that_hangs_is_given_up_in_time() {
    let server = Server::start().await;
    server.state().hangs = true;
    let begun = Instant::now();
    let timeout = Duration::from_millis(200);
    let stage = Stage::new(&format(RegistryConfig { timeout, ..registry(&server.url) }));
    let failure = stage.prepare().await.expect_err("no answer");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "schema_registry_unavailable"));
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn registry_that_has_just_given_no_answer_is_not_asked_for_each_row() {
    let server = Server::start().await;
    server.answer("GET /api/subjects/t-value/versions/latest", 503, "");
    let stage = Stage::new(&format(registry(&server.url)));
    let begun = Instant::now();
    for _ in 0..3 {
        let failure = stage.prepare().await.expect_err("away");
        assert_eq!((failure.class, failure.code.as_str()), (Class::Retry, "schema_registry_unavailable"));
    }
    let asked = server.asked();
    assert!(asked == 1 || begun.elapsed() >= Duration::from_secs(1), "{asked}");
    server.latest("t-value", 1, V1);
    let is_given = async {
        while stage.prepare().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, is_given).await.expect("it is asked again");
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

#[tokio::test]
async fn credentials_are_read_again_for_each_question_and_never_told() {
    let folder = tempfile::tempdir().expect("made");
    let secret = file(folder.path(), "secret", "canary1\n");
    let server = Server::start().await;
    let asked = |server: &Server| server.state().asked.last().map(|(_, authorization, _)| authorization.clone());
    let basic = RegistryLogin::Basic { username: "relay".to_owned(), password_file: secret.clone() };
    for (login, headers) in [
        (RegistryLogin::None, ["", ""]),
        (basic, ["Basic cmVsYXk6Y2FuYXJ5MQ==", "Basic cmVsYXk6Y2FuYXJ5Mg=="]),
        (RegistryLogin::Token(secret.clone()), ["Bearer canary1", "Bearer canary2"]),
    ] {
        let stage = Stage::new(&format(RegistryConfig { login, ..registry(&server.url) }));
        for (header, text) in headers.into_iter().zip(["canary1", "canary2"]) {
            std::fs::write(&secret, text).expect("written");
            let failure = stage.prepare().await.expect_err("missing");
            assert_eq!(asked(&server).as_deref(), Some(header));
            assert!(!format!("{failure:?}").contains("canary"), "{failure:?}");
        }
        assert!(!format!("{:?}{:?}", stage.0, stage.1).contains("canary"));
    }
    let login = RegistryLogin::Token(folder.path().join("none"));
    let failure =
        Stage::new(&format(RegistryConfig { login, ..registry(&server.url) })).prepare().await.expect_err("no file");
    assert_eq!((failure.class, failure.code.as_str()), (Class::Fatal, "schema_file_unreadable"));
}

#[tokio::test]
async fn record_that_is_too_large_is_no_misfit() {
    let server = Server::start().await;
    server.latest("t-value", 1, "\"string\"");
    let stage = Stage::new(&format(registry(&server.url)));
    stage.prepare().await.expect("given");
    let row = format!("\"{}\"", "x".repeat(2_000));
    assert!(matches!(stage.0.encode("t", row.as_bytes(), 1_000), Err(Unencoded::Large(2_007))));
    assert!(matches!(stage.0.encode("t", row.as_bytes(), 2_007), Ok(value) if value.len() == 2_007));
    assert!(matches!(stage.0.encode("other", b"1", 9), Err(Unencoded::Refused(Failure { class: Class::Retry, .. }))));
}
