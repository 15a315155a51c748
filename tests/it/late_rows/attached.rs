//! Late rows where the table, or what its rows go to, is another than before.

use std::time::Duration;

use outbox_relay::late::{Parts, Swept};
use outbox_relay::position::Position;
use outbox_relay::source::fetch::FetchError;

use super::sinks::accepted;
use super::{LONG_ENOUGH, insert, late_rows, run, swept};
use crate::support::outside::halted;
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, Reader, database, eventually, outbox_relay, toml};

// Guarantee: late.parts
#[tokio::test]
async fn look_that_takes_too_long_does_not_make_a_partition_known_that_was_not_judged() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    run(
        &owner,
        "CREATE TABLE bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
         customer text NOT NULL DEFAULT 'c', payload text, txid xid8 NOT NULL DEFAULT pg_current_xact_id(), \
         PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at); \
         CREATE INDEX ON bookings (txid, created_at, id); \
         CREATE TABLE leaf PARTITION OF bookings FOR VALUES FROM ('2020-01-01') TO ('2100-01-01'); \
         CREATE TABLE old (LIKE bookings INCLUDING ALL); GRANT SELECT ON bookings TO relay; INSERT INTO bookings (id) VALUES (1)",
    )
    .await;
    let reader = Reader::new(&database, "relay").await;
    let known = reader.shape.lock().await.descendants.clone();
    let sql = "SELECT created_at, id::text, pg_current_snapshot()::text FROM bookings";
    let row = owner.query_one(sql, &[]).await.unwrap();
    let after = Position { created_at: row.get(0), id: Some(row.get(1)) };
    let column = reader.shape.lock().await.sweep.unwrap();
    let swept = Swept { snapshot: row.get(2), column };
    let parts = |limit| Parts { span: 1_000, most: 1, limit };
    let (none, enough) = (parts(Duration::ZERO), parts(Duration::from_secs(10)));
    let known_alone = reader.opened_knowing(Some(&known), &after, &swept, none).await.unwrap();
    assert!(known_alone.part, "a look that took too long is carried on: {known_alone:?}");
    run(
        &owner,
        "INSERT INTO old (id, created_at) VALUES (7, '2019-06-01'); \
         ALTER TABLE bookings ATTACH PARTITION old FOR VALUES FROM (MINVALUE) TO ('2020-01-01')",
    )
    .await;
    reader.catalogue().await;
    let judged = reader.opened_knowing(Some(&known), &after, &swept, enough).await;
    assert!(judged.as_ref().is_err_and(|error| !matches!(error, FetchError::Late(_))), "{judged:?}");
    let unjudged = reader.opened_knowing(Some(&known), &after, &swept, none).await;
    assert!(matches!(unjudged, Err(FetchError::Late(_))), "{unjudged:?}");
}

// Guarantee: late.adopt
#[tokio::test(flavor = "multi_thread")]
async fn late_rows_that_wait_come_late_when_another_target_of_the_same_table_is_adopted() {
    let (database, before, after) = (database().await, Receiver::start(), Receiver::start());
    let owner = swept(&database).await;
    let mut process = Process::spawn(&toml(&database, "relay", None, &before.relay("r", "")), &["run"]);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || accepted(&before) == ["1"]).await;
    let advanced = "SELECT count(*) FROM outbox.cursor WHERE position_id = '1' AND snapshot IS NOT NULL";
    eventually(PATIENCE, async || owner.query_one(advanced, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    process.signal(rustix::process::Signal::TERM);
    process.wait().await;
    insert(&owner, 10, "late").await;
    let text = toml(&database, "relay", None, &after.relay("r", ""));
    let mut process = Process::spawn(&text, &["run"]);
    insert(&owner, 0, "second").await;
    let (_, error) = halted(&owner, "r").await;
    assert_eq!(error["code"], "identity_changed", "{error}");
    insert(&owner, 20, "later").await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "adopt", "r", "--yes", "--timeout", "20s"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let comes = tokio::time::timeout(PATIENCE, async {
        while accepted(&after).len() < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let _what_has_come_tells_more = comes.await;
    let mut all = accepted(&after);
    all.sort();
    assert_eq!(all, ["2*", "3", "4*"], "{}", process.log());
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!((accepted(&after).len(), late_rows(&owner).await), (3, 2));
    process.signal(rustix::process::Signal::TERM);
    process.wait().await;
}
