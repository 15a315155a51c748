//! Webhooks by the program itself: signed, stopped by 410, and never connected to an address that is not public unless it
//! is allowed.

use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::support::hook::Hook;
use crate::support::outside::{fixed, halted, json, standing};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

mod due;

const FIRST: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECOND: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const THIRD: &str = "whsec_IB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE=";

/// A database with bookings, and a folder with the files of two secrets.
struct Stage {
    database: Database,
    owner: Client,
    folder: TempDir,
}

impl Stage {
    async fn start() -> Self {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let stage = Self { database, owner, folder: tempfile::tempdir().unwrap() };
        stage.secret("new", FIRST);
        stage.secret("old", SECOND);
        stage
    }

    fn secret(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).unwrap();
    }

    /// A relay of bookings to this URL; `more` is added to its sink.
    fn relay(&self, name: &str, url: &str, more: &str) -> String {
        let folder = self.folder.path().display();
        format!(
            "[[relay]]\nname = \"{name}\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
             [relay.sink.webhook]\nurl = \"{url}\"\nsecret_files = [\"{folder}/new\", \"{folder}/old\"]\n{more}\n"
        )
    }

    /// The whole configuration.
    fn toml(&self, relays: &str) -> String {
        toml(&self.database, "relay", None, relays)
    }

    async fn book(&self, count: i32) {
        let sql = "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, $1)";
        self.owner.execute(sql, &[&count]).await.unwrap();
    }

    async fn resume(&self, text: &str) {
        let (code, _, log) = outbox_relay(text, &["cursor", "resume", "hook"]).await;
        assert_eq!(code, Some(0), "{log}");
    }

    async fn status(&self, text: &str, cursor: &str) -> Value {
        let (_, out, log) = outbox_relay(text, &["status", "-o", "json"]).await;
        let cursors = json(&out)["cursors"].clone();
        let found = cursors.as_array().unwrap().iter().find(|found| found["name"] == cursor).cloned();
        found.unwrap_or_else(|| panic!("{out} {log}"))
    }
}

// Guarantee: secrets.webhook-signatures
#[tokio::test(flavor = "multi_thread")]
async fn each_row_is_put_at_its_own_address_signed_with_both_secrets_and_a_rotation_needs_no_restart() {
    let (stage, hook) = (Stage::start().await, Hook::start(&["127.0.0.1"]).await);
    let url = format!("http://127.0.0.1:{}/notifications/delayed-{{{{ id }}}}", hook.port);
    let text = stage.toml(&stage.relay("hook", &url, "method = \"PUT\"\nallow = [\"127.0.0.1/32\"]"));
    stage.book(3).await;
    let process = Process::spawn_with(&text, &["run"], &[("RUST_LOG", "trace".to_owned())]);
    eventually(PATIENCE * 2, || async { hook.accepted() == ["hook/1", "hook/2", "hook/3"] }).await;
    for (hooked, id) in hook.asked().iter().zip(1..) {
        assert_eq!((hooked.method.as_str(), hooked.path.clone()), ("PUT", format!("/notifications/delayed-{id}")));
        assert_eq!(hooked.header("idempotency-key"), hooked.header("webhook-id"));
        assert_eq!(json(&hooked.body)["id"], id);
        assert!(hooked.is_signed_with(FIRST) && hooked.is_signed_with(SECOND) && !hooked.is_signed_with(THIRD));
    }
    stage.secret("old", FIRST);
    stage.secret("new", THIRD);
    stage.book(1).await;
    eventually(PATIENCE, || async { hook.accepted().len() == 4 }).await;
    let rotated = &hook.asked()[3];
    assert!(rotated.is_signed_with(FIRST) && rotated.is_signed_with(THIRD) && !rotated.is_signed_with(SECOND));

    let log = process.log();
    assert!(log.contains("TRACE"), "the log is as loud as can be");
    let (code, shown, _) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
    let folder = stage.folder.path().display();
    assert!(
        code == Some(0) && shown.contains(&format!("secret_files = [\"{folder}/new\", \"{folder}/old\"]")),
        "{shown}"
    );
    for secret in [FIRST, SECOND, THIRD] {
        let secret = secret.strip_prefix("whsec_").unwrap();
        assert!(!log.contains(secret) && !shown.contains(secret), "a secret is shown");
    }
    let (_, findings, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let findings = json(&findings);
    let whole = findings["findings"].as_array().unwrap().iter().find(|found| found["code"] == "whole_row").unwrap();
    assert!(whole["level"] == "warn" && whole["fix_setting"].as_str().unwrap().contains("template"), "{whole}");
}

// Guarantee: secrets.webhook-signatures
#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_has_the_same_id_and_a_signature_of_its_own() {
    let (stage, hook) = (Stage::start().await, Hook::start(&["127.0.0.1"]).await);
    hook.answer(503, None);
    let url = format!("http://127.0.0.1:{}/", hook.port);
    let text = stage.toml(&stage.relay("hook", &url, "allow = [\"127.0.0.1/32\"]"));
    stage.book(1).await;
    let _process = Process::spawn(&text, &["run"]);
    let times = || hook.asked().iter().map(|hooked| hooked.header("webhook-timestamp").to_owned()).collect::<Vec<_>>();
    // Pauses double from 100 ms on: the seconds differ after a few.
    eventually(PATIENCE * 2, || async { times().first() != times().last() }).await;
    hook.answer(200, None);
    eventually(PATIENCE * 2, || async { hook.accepted() == ["hook/1"] }).await;
    let asked = hook.asked();
    assert!(asked.iter().all(|hooked| hooked.header("webhook-id") == "hook/1" && hooked.is_signed_with(FIRST)));
    let signatures = [asked[0].header("webhook-signature"), asked[asked.len() - 1].header("webhook-signature")];
    assert_ne!(signatures[0], signatures[1]);
}

// Guarantee: failures.webhook-410
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_answers_410_disables_its_relay_until_somebody_resumes_it() {
    let (stage, hook) = (Stage::start().await, Hook::start(&["127.0.0.1"]).await);
    hook.answer(410, None);
    let url = format!("http://127.0.0.1:{}/", hook.port);
    let text = stage.toml(&stage.relay("hook", &url, "allow = [\"127.0.0.1/32\"]"));
    stage.book(2).await;
    let _process = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&stage.owner, "hook").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"webhook_gone".into()));
    let status = stage.status(&text, "hook").await;
    assert_eq!((&status["state"], &status["last_error"]["code"]), (&"halted".into(), &"webhook_gone".into()));
    assert!(status["last_error"]["hint"].as_str().unwrap().contains("cursor resume"), "{status}");
    let (code, why, log) = outbox_relay(&text, &["cursor", "why", "hook"]).await;
    assert!(code == Some(3) && why.contains("410") && why.contains("cursor resume"), "{why} {log}");
    assert_eq!(hook.asked().len(), 1, "nothing more is sent");
    hook.answer(200, None);
    stage.resume(&text).await;
    eventually(PATIENCE * 2, || async { hook.accepted() == ["hook/1", "hook/2"] }).await;
    fixed(&stage.owner, "hook").await;
}

// Guarantee: secrets.webhook-addresses
#[tokio::test(flavor = "multi_thread")]
async fn no_connection_reaches_this_machine_under_any_name_before_its_range_is_allowed() {
    const HOSTS: [(&str, &str); 8] = [
        ("name", "localhost"),
        ("v4", "127.0.0.1"),
        ("decimal", "2130706433"),
        ("octal", "0177.0.0.1"),
        ("hexadecimal", "0x7f.1"),
        ("v6", "[::1]"),
        ("mapped", "[::ffff:127.0.0.1]"),
        ("mapped_hexadecimal", "[0:0:0:0:0:ffff:7f00:1]"),
    ];
    let (stage, hook) = (Stage::start().await, Hook::start(&["127.0.0.1", "::1"]).await);
    let relays = |more: &str| {
        let relay = |(name, host)| stage.relay(name, &format!("http://{host}:{}/{name}", hook.port), more);
        HOSTS.into_iter().map(relay).collect::<String>()
    };
    stage.book(1).await;
    let blocked = stage.toml(&relays(""));
    let mut process = Process::spawn(&blocked, &["run"]);
    for (name, host) in HOSTS {
        let (_, error) = halted(&stage.owner, name).await;
        assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"address_blocked".into()), "{host}");
        assert!(error["hint"].as_str().unwrap().contains("allow = "), "{error}");
    }
    let status = stage.status(&blocked, "name").await;
    assert_eq!((&status["state"], &status["last_error"]["code"]), (&"halted".into(), &"address_blocked".into()));
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    assert_eq!(hook.connections(), 0);

    // The same with the ranges allowed: it was the filter, and another configuration ends the halt.
    let _process = Process::spawn(&stage.toml(&relays("allow = [\"127.0.0.0/8\", \"::1/128\"]")), &["run"]);
    eventually(PATIENCE * 3, || async { hook.accepted().len() == HOSTS.len() }).await;
    let mut accepted = hook.accepted();
    accepted.sort();
    let mut expected = HOSTS.map(|(name, _)| format!("{name}/1"));
    expected.sort();
    assert_eq!(accepted, expected);
}

// Guarantee: secrets.webhook-addresses
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_wherever_it_leads_and_no_proxy_is_used() {
    let stage = Stage::start().await;
    let (hook, inner) = (Hook::start(&["127.0.0.1"]).await, Hook::start(&["127.0.0.1", "::1"]).await);
    hook.answer(307, Some(format!("http://127.0.0.1:{}/", inner.port)));
    let url = format!("http://127.0.0.1:{}/", hook.port);
    let text = stage.toml(&stage.relay("hook", &url, "allow = [\"127.0.0.1/32\"]"));
    stage.book(1).await;
    // A proxy would connect wherever it likes.
    let proxy = format!("http://127.0.0.1:{}", inner.port);
    let environment = ["http_proxy", "HTTP_PROXY", "ALL_PROXY"].map(|name| (name, proxy.clone()));
    let _process = Process::spawn_with(&text, &["run"], &environment);
    let (_, error) = halted(&stage.owner, "hook").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"http_307".into()));
    assert_eq!((hook.asked().len(), inner.connections()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_above_the_limit_halts_as_poison_and_a_secret_that_is_none_as_fatal() {
    let (stage, hook) = (Stage::start().await, Hook::start(&["127.0.0.1"]).await);
    let url = format!("http://127.0.0.1:{}/", hook.port);
    let more = "allow = [\"127.0.0.1/32\"]\nbody_limit = \"1KiB\"\nbody = \"{{ payload }}\"";
    let text = stage.toml(&stage.relay("hook", &url, more));
    stage.owner.batch_execute("INSERT INTO bookings (payload) VALUES (repeat('x', 1025))").await.unwrap();
    let _process = Process::spawn(&text, &["run"]);
    let (message_id, error) = halted(&stage.owner, "hook").await;
    assert_eq!((&error["class"], &error["code"]), (&"poison".into(), &"message_too_large".into()));
    assert_eq!(error["message"], "The body has 1025 bytes, body_limit allows 1024");
    assert_eq!((message_id.as_deref(), hook.connections()), (Some("1"), 0));
    stage.owner.batch_execute("UPDATE bookings SET payload = repeat('x', 1024)").await.unwrap();
    stage.secret("old", "hunter2");
    stage.resume(&text).await;
    let unreadable = || async { standing(&stage.owner, "hook").await.unwrap().3["code"] == "secret_unreadable" };
    eventually(PATIENCE * 2, unreadable).await;
    let (_, error) = halted(&stage.owner, "hook").await;
    assert!(error["class"] == "fatal" && !error.to_string().contains("hunter2"), "{error}");
    assert_eq!(hook.connections(), 0, "nothing goes out with one signature of two");
    stage.secret("old", SECOND);
    stage.resume(&text).await;
    eventually(PATIENCE * 2, || async { hook.accepted() == ["hook/1"] }).await;
}
