//! Commands of a role without rights on the schema `outbox`.

use super::silence::CALLS;
use crate::support::{CLOCK, bookings, database, kafka_relay, outbox_relay, toml};

#[tokio::test(flavor = "multi_thread")]
async fn role_without_rights_is_told_how_to_get_them() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("REVOKE USAGE ON SCHEMA outbox FROM relay").await.unwrap();
    let text = toml(&database, "relay", Some("127.0.0.1:1"), &kafka_relay("events", "t", ""));
    let (mut asked, mut wrong) = (0, Vec::new());
    // `migrate` is for an owner, and `check` has a finding of its own for it.
    for (path, more) in CALLS.iter().filter(|(path, _)| !path.starts_with("migrate") && *path != "check") {
        let args: Vec<&str> = path.split(' ').chain(more.split(' ')).collect();
        let (code, out, log) = outbox_relay(&text, &args).await;
        asked += 1;
        if code != Some(1)
            || !log.contains("role relay has no rights on schema outbox: run `outbox-relay migrate up --relay-role")
        {
            wrong.push(format!("{path}: {code:?} {out}{log}"));
        }
    }
    assert!(asked > 20 && wrong.is_empty(), "{}", wrong.join("\n"));
}
