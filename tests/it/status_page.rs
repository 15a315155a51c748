//! The status page: what is wrong, why, and what to type, for those who may see it and at no cost otherwise.

use std::time::{Duration, Instant};

use outbox_testkit::postgres::{Options, Postgres};
use reqwest::Response;

use crate::support::outside::{client, get, listener, stdout_relay};
use crate::support::receiver::Receiver;
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

mod live;
mod looks;
mod tokens;

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&";

/// A replica with these relays, ready, and the address of its page.
async fn running(database: &Database, relays: &str) -> (Process, String) {
    let process = Process::spawn(&toml(database, "relay", None, relays), &["run", "--replica-id", "eu-1"]);
    let url = listener(&process).await;
    eventually(PATIENCE * 2, async || get(&format!("{url}/readyz")).await.0 == 200).await;
    (process, url)
}

async fn page(url: &str) -> String {
    let (status, html) = get(&format!("{url}/")).await;
    assert_eq!(status, 200, "{html}");
    html
}

/// Waits until the page says all of this; the page.
#[track_caller]
fn says<'a>(url: &'a str, texts: &'a [&str]) -> impl Future<Output = String> + 'a {
    let said = eventually(PATIENCE * 2, async || {
        let html = page(url).await;
        texts.iter().all(|text| html.contains(text))
    });
    async move {
        said.await;
        page(url).await
    }
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

// Guarantee: page.whole
#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_whole_without_a_script_and_loads_nothing_from_elsewhere() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute("INSERT INTO bookings (customer, payload) VALUES ('secret-customer', 'secret-payload')")
        .await
        .unwrap();
    let (_process, url) = running(&database, &(stdout_relay("events", "") + &stdout_relay("mails", ""))).await;
    let html = says(&url, &["All 2 cursors are well", ">events</th>", ">mails</th>", "<b>eu-1</b>", "2 relays"]).await;
    assert!(!html.contains("secret-"), "rows are no part of it: {html}");
    assert!(html.starts_with("<!doctype html>\n<html lang=en>"), "{html}");
    for elsewhere in ["http:", "https:", "//", "style=", "onclick", "<style", "<script>"] {
        assert!(!html.contains(elsewhere), "{elsewhere} is in the page: {html}");
    }
    let paths =
        [("", "text/html"), ("events", "text/event-stream"), ("page.css", "text/css"), ("page.js", "text/javascript")];
    for (path, kind) in paths {
        let mut response = client().get(format!("{url}/{path}")).send().await.unwrap();
        assert!(header(&response, "content-type").starts_with(kind), "{path}");
        let policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
        for (name, value) in [
            ("content-security-policy", policy),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("set-cookie", ""),
        ] {
            assert_eq!(header(&response, name), value, "{name} of /{path}");
        }
        // A stream has no end: its first event.
        let text = match path {
            "events" => response.chunk().await.unwrap().expect("an event"),
            _ => response.bytes().await.unwrap(),
        };
        let text = std::str::from_utf8(&text).unwrap();
        assert!(
            !text.contains("http:") && !text.contains("https:") && !text.contains("@import"),
            "/{path} names no host"
        );
    }
}

// Guarantee: page.held
#[tokio::test(flavor = "multi_thread")]
async fn a_held_cursor_is_told_with_the_session_that_holds_it_and_the_command_that_ends_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    let mut writer = database.connect("app").await;
    writer.execute(&format!("SET application_name = {}", quoted(HOSTILE)), &[]).await.unwrap();
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings (payload) VALUES ('open')").await.unwrap();
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('waits')").await.unwrap();
    let command = format!("<pre data-copy><code>SELECT pg_terminate_backend({pid});</code></pre>");
    let html = says(&url, &["1 of 1 needs attention: 1 held", "class=\"verdict bad\"", &command]).await;
    assert!(html.contains(&format!("held by pid {pid} (&lt;img src=x onerror=alert(1)&gt;")), "{html}");
    assert!(!html.contains("<img"), "{html}");
    open.rollback().await.unwrap();
    says(&url, &["The cursor is well", "Nothing needs attention"]).await;
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

// Guarantee: page.halted
#[tokio::test(flavor = "multi_thread")]
async fn a_halted_cursor_is_told_with_its_error_its_fix_and_the_command_that_resumes_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start();
    receiver.answer(|_| (400, Duration::ZERO));
    let (_process, url) = running(&database, &(receiver.relay("hooks", "") + &stdout_relay("events", ""))).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('secret-payload')").await.unwrap();
    let resume = "<pre data-copy><code>outbox-relay cursor resume hooks</code></pre>";
    let html = says(&url, &["1 of 2 needs attention: 1 halted", "hooks is halted", resume]).await;
    assert!(html.contains("<pre data-copy><code>outbox-relay cursor skip hooks</code></pre>"), "{html}");
    assert!(!html.contains("secret-payload"), "{html}");
    owner.batch_execute("INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, payload, fields, field_values, error, \
             dead_lettered_by) VALUES ('events', 'public.bookings', now(), 'x', 'stdout', 'x', 'secret-letter', '{}', '{}', '{}', 'r')").await.unwrap();
    let html = says(&url, &["dead letters", "outbox-relay dead-letter list --cursor events"]).await;
    assert!(!html.contains("secret-letter"), "{html}");
}

// Guarantee: page.hostile
#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_errors_in_the_schema_are_text() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (_process, url) = running(&database, &stdout_relay("events", "")).await;
    let name = "<script>alert(1)</script>; rm -rf /";
    let cursor =
        "INSERT INTO outbox.cursor (name, relay, identity, relations) VALUES ($1, $1, '{\"table\": \"a\"}', '{1,1}')";
    owner.execute(cursor, &[&name]).await.unwrap();
    let status = "INSERT INTO outbox.cursor_status (cursor, state, halted, last_error) VALUES ($1, 'halted', true, $2::text::jsonb)";
    let error =
        serde_json::json!({ "class": "fatal", "code": HOSTILE, "message": HOSTILE, "hint": HOSTILE, "at": HOSTILE });
    owner.execute(status, &[&name, &error.to_string()]).await.unwrap();
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;; rm -rf /";
    let html = says(&url, &[escaped]).await;
    assert!(!html.contains("<script>") && !html.contains("<img"), "{html}");
    assert!(!html.contains("<code>outbox-relay cursor remove &lt;script"), "no command with such a name: {html}");
}

// Guarantee: page.away
#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_the_page_still_answers_and_says_so() {
    let mut postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let owner = postgres.connect("postgres", "template_outbox").await.unwrap();
    owner
        .batch_execute(
            "CREATE TABLE bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL \
             DEFAULT clock_timestamp(), payload text); CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay",
        )
        .await
        .unwrap();
    let process = Process::spawn(
        &toml_of(&postgres.url("relay", "template_outbox"), None, &stdout_relay("events", "")),
        &["run"],
    );
    let url = listener(&process).await;
    says(&url, &["The cursor is well", ">events</th>"]).await;
    postgres.kill9().await.unwrap();
    let html = says(&url, &["<strong>PostgreSQL does not answer</strong>", "connect_failed"]).await;
    assert!(html.contains(">events</th>") && html.contains("Seen "), "what was seen last stays: {html}");
    let begun = Instant::now();
    page(&url).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let (status, said) = get(&format!("{url}/readyz")).await;
    assert_eq!((status, said.as_str()), (200, "ready\n"));
    // A replica that has never reached it knows its own relays.
    let late = Process::spawn(
        &toml_of(&postgres.url("relay", "template_outbox"), None, &stdout_relay("events", "")),
        &["run"],
    );
    let url = listener(&late).await;
    let html = says(&url, &["<strong>PostgreSQL does not answer</strong>", ">events</th>"]).await;
    assert!(html.contains("This replica is not ready: PostgreSQL has not been reached yet"), "{html}");
    postgres.restart().await.unwrap();
    says(&url, &["The cursor is well"]).await;
    drop((process, late));
    postgres.stop().await.unwrap();
}
