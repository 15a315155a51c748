//! What operators order while a relay is handed over to another number of shards.

use outbox_testkit::bookings::Table;

use super::Stage;
use crate::support::{PATIENCE, eventually, outbox_relay};

/// Sessions that wait for the table of orders.
const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE relation = 'outbox.control'::regclass AND NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

// Guarantee: shards.reshard-refused
#[tokio::test(flavor = "multi_thread")]
async fn pause_that_is_ordered_while_a_reshard_is_under_way_refuses_it_and_stands() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[2, 3]).await;
    let rows = "INSERT INTO public.bookings (customer, region, phone, payload) \
                SELECT 'c' || n, 'eu', '1', 'p' FROM generate_series(1, 20) AS n";
    stage.owner.batch_execute(rows).await.unwrap();
    let (code, _, log) = outbox_relay(&stage.toml("relay", 2), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let before = stage.cursors().await;
    // The order is given when the reshard has found no cursor paused, and is committed before it exchanges them.
    let operator = stage.database.connect("postgres").await;
    let pause = "BEGIN; INSERT INTO outbox.control (cursor, paused, paused_at) VALUES ('events#1', true, now()) \
                 ON CONFLICT (cursor) DO UPDATE SET paused = true, paused_at = now()";
    operator.batch_execute(pause).await.unwrap();
    let text = stage.toml("postgres", 3);
    let pausing = async {
        let waits = async || stage.owner.query_one(WAITING, &[]).await.unwrap().get::<_, i64>(0) > 0;
        eventually(PATIENCE * 3, waits).await;
        operator.batch_execute("COMMIT").await.unwrap();
    };
    let ((code, out, log), ()) = tokio::join!(outbox_relay(&text, &["cursor", "reshard", "events"]), pausing);
    assert!(code == Some(1) && log.contains("cursor events#1 is paused"), "{out} {log}");
    assert_eq!(stage.cursors().await, before, "nothing has changed");
    let paused = "SELECT cursor FROM outbox.control WHERE paused";
    let paused: Vec<String> = stage.owner.query(paused, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(paused, ["events#1"], "the pause is kept");
    let (code, _, log) = outbox_relay(&stage.toml("relay", 2), &["cursor", "resume", "events#1"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, out, log) = outbox_relay(&text, &["cursor", "reshard", "events"]).await;
    assert_eq!((code, stage.cursors().await.len()), (Some(0), 3), "{out} {log}");
}
