//! Pictures of the status page in real states, by a real browser: `make test-page`, outside of CI. Each state is looked at light and
//! dark, wide and 390 pixels wide, by `look.mjs`, which fails when the page does not show what it is a picture of, or axe complains.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "as in tests/it, of whose support little is used here"
)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::outside::{get, listener, stdout_relay};
use support::receiver::Receiver;
use support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

#[path = "../it/support/mod.rs"]
mod support;

/// Has the page looked at; panics with what was found.
fn look(url: &str, state: &str, texts: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kit = root.join("target/page-kit");
    let pictures = std::env::var_os("PICTURES").map_or_else(|| root.join("target/page"), Into::into);
    std::fs::create_dir_all(&pictures).unwrap();
    let mut node = Command::new("node");
    node.arg(root.join("tests/page/look.mjs")).arg(kit).arg(format!("{url}/")).arg(state).arg(pictures).args(texts);
    let output = node.output().expect("node on PATH");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn says(url: &str, texts: &[&str]) {
    eventually(PATIENCE * 3, async || {
        let html = get(&format!("{url}/")).await.1;
        texts.iter().all(|text| html.contains(text))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_state_is_seen_at_a_glance_in_a_browser() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE TABLE payments (LIKE bookings INCLUDING ALL); GRANT SELECT ON payments TO relay; \
                         GRANT INSERT, SELECT ON payments TO app",
        )
        .await
        .unwrap();
    let receiver = Receiver::start();
    let relays = [
        stdout_relay("booking_audit", ""),
        stdout_relay("booking_events", ""),
        receiver.relay("booking_sms", ""),
        stdout_relay("invoices", "").replace("public.bookings", "public.payments"),
        stdout_relay("payment_events", "").replace("public.bookings", "public.payments"),
        format!(
            "[[relay]]\nname = \"reports\"\n[relay.source.schedule]\n[relay.sink.http]\nurl = \"{}/reports\"\nbody = '{{}}'\n",
            receiver.url()
        ),
    ]
    .concat();
    let text = toml(&database, "relay", None, &relays);
    let first = Process::spawn(&text, &["run", "--replica-id", "outbox-relay-7d9c6b5f4-x2x9q"]);
    let second = Process::spawn(&text, &["run", "--replica-id", "outbox-relay-7d9c6b5f4-k8mtz"]);
    let url = listener(&first).await;
    eventually(PATIENCE * 3, async || get(&format!("{url}/readyz")).await.0 == 200).await;
    let schedule = "INSERT INTO outbox.schedule (name, tenant, relay, rule, time_zone) VALUES \
                    ('monthly invoices', 'acme', 'reports', 'FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=3', 'Europe/Berlin'), \
                    ('weekly report', 'acme', 'reports', 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=9', 'Europe/Berlin')";
    owner.batch_execute(schedule).await.unwrap();
    let writer = database.connect("app").await;
    let load = tokio::spawn(async move {
        loop {
            writer
                .batch_execute(
                    "INSERT INTO bookings (payload) VALUES ('p'); INSERT INTO payments (payload) VALUES ('p')",
                )
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(45)).await; // so long the charts are
    says(&url, &["All 6 cursors are well", "weekly report"]).await;
    look(
        &url,
        "calm",
        &["All 6 cursors are well", "Nothing needs attention", "booking_sms", "outbox-relay-7d9c6b5f4-k8mtz", "CET"],
    );

    let mut session = database.connect("app").await;
    session.batch_execute("SET application_name = 'nightly-import'").await.unwrap();
    let open = session.transaction().await.unwrap();
    open.batch_execute("INSERT INTO payments (payload) VALUES ('open')").await.unwrap();
    says(&url, &["2 of 6 need attention: 2 held", "pg_terminate_backend"]).await;
    look(
        &url,
        "held",
        &["2 of 6 need attention: 2 held", "(nightly-import), open for", "SELECT pg_terminate_backend(", "Copy"],
    );

    receiver.answer(|_| (400, Duration::ZERO));
    says(&url, &["3 of 6 need attention: 1 halted, 2 held", "outbox-relay cursor resume booking_sms"]).await;
    look(
        &url,
        "halted",
        &[
            "3 of 6 need attention: 1 halted, 2 held",
            "booking_sms is halted at message",
            "outbox-relay cursor resume booking_sms",
        ],
    );
    load.abort();
    drop((open, first, second));
}
