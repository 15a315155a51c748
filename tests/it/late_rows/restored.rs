//! Rows that carry the transaction numbers of another server, as a logical dump restores them.

use super::{LONG_ENOUGH, insert, late_rows, marked, printing, prints, run, swept, transactions};
use crate::support::{PATIENCE, database, eventually};

/// How far the other server's numbers are ahead of this one's: none is that of an update which follows the restore.
const AHEAD: std::ops::Range<u32> = 1_000..4_000;
/// A row for each so many numbers.
const STEP: usize = 30;

// Guarantee: late.restored
#[tokio::test]
async fn restored_rows_are_not_taken_for_late_when_the_counter_passes_their_numbers_and_late_ones_are_found() {
    let database = database().await;
    let owner = swept(&database).await;
    let restore = format!(
        "INSERT INTO bookings (created_at, payload, txid) SELECT clock_timestamp() - interval '1 hour', 'restored', \
         (pg_current_xact_id()::text::bigint + n)::text::xid8 FROM generate_series({}, {} - 1, {STEP}) AS n",
        AHEAD.start, AHEAD.end
    );
    run(&owner, &restore).await;
    let rows = AHEAD.len() / STEP;
    let process = printing(&database, "");
    let all: Vec<String> = (1..=rows).map(|id| id.to_string()).collect();
    prints(&process, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let last: String = owner.query_one("SELECT max(txid::text::bigint)::text FROM bookings", &[]).await.unwrap().get(0);
    let passed = async || {
        transactions(&owner, 200).await;
        let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot()) > $1::text::xid8";
        owner.query_one(sql, &[&last]).await.unwrap().get::<_, bool>(0)
    };
    let update = async |rest: usize| {
        let updated = format!("UPDATE bookings SET payload = 'updated' WHERE payload = 'restored' AND id % 3 = {rest}");
        run(&owner, &updated).await;
    };
    update(0).await;
    // Late rows among them, one of a savepoint.
    transactions(&owner, AHEAD.end / 2).await;
    let late = "INSERT INTO bookings (created_at, payload) VALUES (clock_timestamp() - interval '2 hours', 'late')";
    let writer = database.connect("app").await;
    run(&writer, &format!("BEGIN; {late}; SAVEPOINT a; {late}; RELEASE a; COMMIT")).await;
    eventually(PATIENCE, passed).await;
    let [first, second] = [rows + 1, rows + 2].map(|id| format!("{id}*"));
    eventually(PATIENCE, async || marked(&process).contains(&second)).await;
    insert(&owner, 180, "dated back").await;
    let third = format!("{}*", rows + 3);
    eventually(PATIENCE, async || marked(&process).contains(&third)).await;
    update(1).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!(marked(&process)[rows..], [first, second, third], "{}", process.log());
    assert_eq!(late_rows(&owner).await, 3);
}
