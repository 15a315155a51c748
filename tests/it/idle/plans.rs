//! A full look at a table is made every few seconds for as long as a relay runs: what it reads must not be planned each time.

use outbox_relay::cursor::standings;
use outbox_relay::source::table::inspect;

use crate::support::{Reader, database, sessions};

#[tokio::test]
async fn what_a_full_look_reads_is_not_planned_again_each_time() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let table = "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
                 CREATE INDEX ON bookings (created_at, id); GRANT SELECT ON bookings TO relay";
    owner.batch_execute(table).await.unwrap();
    let reader = Reader::of(&database, "relay", "table = \"public.bookings\"").await;
    let config = reader.shape.lock().await.config.clone();
    let session = sessions(&database, "relay", "plans").open().await.unwrap();
    let times = 10_i64;
    for _ in 0..times {
        inspect(&session, &config).await.unwrap();
        standings(&session, &["bookings"]).await.unwrap();
    }
    // PostgreSQL decides after five custom plans.
    let plans = "SELECT statement, custom_plans FROM pg_prepared_statements WHERE NOT from_sql AND custom_plans + generic_plans >= $1";
    let plans = session.query(plans, &[&times]).await.unwrap();
    assert!(plans.len() >= 8, "the statements of {times} readings: {}", plans.len());
    for row in plans {
        let (statement, custom): (String, i64) = (row.get(0), row.get(1));
        assert_eq!(custom, 5, "planned again each time: {statement}");
    }
}
