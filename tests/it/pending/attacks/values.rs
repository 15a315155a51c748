//! Due times and keys of values and types that a table may have, and that few have.

use super::users;
use crate::pending::{count, tables, welcome};
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

#[tokio::test(flavor = "multi_thread")]
async fn due_times_at_the_ends_of_time_disturb_nothing_with_or_without_an_index() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    users(&owner, 1, 1).await;
    owner
        .batch_execute(
            "INSERT INTO users VALUES (50, 'x', '294276-12-31 23:00:00'), (51, 'y', 'infinity'), \
             (53, 'bc', '4713-01-01 00:00:00 BC')",
        )
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
    assert_eq!(code, Some(0), "{log}");
    owner.batch_execute("DROP INDEX users_created_id_idx").await.unwrap();
    users(&owner, 60, 60).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut ids = receiver.accepted("welcome");
    ids.sort();
    assert_eq!(ids, ["1", "53", "60"]);
}

/// East of UTC, the first hours of such a column lie before the first instant that PostgreSQL knows: one of them failed every claim.
#[tokio::test(flavor = "multi_thread")]
async fn due_times_that_are_no_instants_in_their_zone_disturb_nothing() {
    for (of, first) in [("timestamp", "4714-11-24 00:00:00 BC"), ("date", "4714-11-24 BC")] {
        let (database, receiver) = (database().await, Receiver::start());
        let owner = database.connect("postgres").await;
        let create = format!(
            "CREATE TABLE job (id text PRIMARY KEY, due {of}, payload text); CREATE INDEX ON job (due, id); \
             GRANT SELECT ON job TO relay; \
             INSERT INTO job VALUES ('first', '{first}', 'p'), ('old', '2020-01-01', 'p'), ('never', 'infinity', 'p')"
        );
        owner.batch_execute(&create).await.unwrap();
        let relay = format!(
            "[[relay]]\nname = \"job\"\n[relay.source.pending]\ntable = \"public.job\"\nkey = [\"id\"]\ndue = \"due\"\n\
             due_after = \"30d\"\ntime_zone = \"Etc/GMT-14\"\n[relay.sink.http]\nurl = \"{}/rows\"\nbody = \"{{{{ payload }}}}\"\n",
            receiver.url()
        );
        for _ in 0..2 {
            let text = toml(&database, "relay", None, &relay);
            let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "20s"]).await;
            assert_eq!(code, Some(0), "{of}: {log}");
        }
        let mut accepted = receiver.accepted("job");
        accepted.sort();
        assert_eq!(accepted, ["first/-infinity", "old"], "{of}: each once; the first with its due instant");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_becomes_wider_while_the_relay_runs_is_followed() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute(
            "CREATE TABLE jobs (id integer PRIMARY KEY, due timestamptz NOT NULL, sent boolean NOT NULL DEFAULT false); \
             GRANT SELECT, UPDATE (sent) ON jobs TO relay; INSERT INTO jobs VALUES (1, now())",
        )
        .await
        .unwrap();
    let relay = format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\n\
         sent = \"sent\"\n[relay.sink.http]\nurl = \"{}/jobs\"\n",
        receiver.url()
    );
    let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    eventually(PATIENCE, async || count(&owner, "SELECT count(*) FROM jobs WHERE sent").await == 1).await;
    owner
        .batch_execute("ALTER TABLE jobs ALTER id TYPE bigint; INSERT INTO jobs VALUES (3000000000, now())")
        .await
        .unwrap();
    eventually(PATIENCE * 2, async || count(&owner, "SELECT count(*) FROM jobs WHERE sent").await == 2).await;
    assert_eq!(receiver.accepted("jobs"), ["1", "3000000000"]);
}
