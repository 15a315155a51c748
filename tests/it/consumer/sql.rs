//! The page's SQL, statement by statement, by a consumer of the test's own.

use std::collections::BTreeSet;

use tokio_postgres::Transaction;

use super::topic::count;
use super::{Effect, tables, topic};
use crate::support::pages::{blocks, page};
use crate::support::{PATIENCE, Record, database, eventually};

/// The page's block that says this.
fn block(what: &str) -> String {
    let page = page("consumers");
    let [block] = blocks(&page, "sql").into_iter().filter(|sql| sql.contains(what)).collect::<Vec<_>>()[..] else {
        panic!("the page has one block with {what}")
    };
    block.to_owned()
}

/// Mark and effects of a record; whether it was fresh.
async fn process(transaction: &Transaction<'_>, record: &Record) -> bool {
    let created_at = record.header("created_at").unwrap();
    let out_of_place = record.header("late").is_some() || record.header("replayed").is_some();
    let customer = record.key.as_deref().unwrap();
    let mark = block("WITH fresh");
    let fresh = transaction
        .execute(
            &mark,
            &[&"sql", &record.header("relay").unwrap(), &record.id(), &customer, &created_at, &out_of_place],
        )
        .await
        .unwrap();
    if fresh == 1 {
        let latest = block("INSERT INTO latest_booking");
        transaction.execute(&latest, &[&customer, &record.id(), &created_at]).await.unwrap();
    }
    fresh == 1
}

// Guarantee: consumers.sql
#[tokio::test(flavor = "multi_thread")]
async fn the_sql_of_the_page_has_each_rows_effect_once_and_lets_no_old_row_win() {
    let topic = topic().await;
    let (mut next, mut again, mut crashes) = (0, 0, BTreeSet::new());
    let mut client = topic.database.connect("postgres").await;
    while let Some(record) = topic.records.get(next) {
        let transaction = client.transaction().await.unwrap();
        again += usize::from(!process(&transaction, record).await);
        if next % 30 == 29 && crashes.insert(next) {
            // A crash: neither this transaction nor the offsets of the last records are committed.
            drop(transaction);
            client = topic.database.connect("postgres").await;
            next -= 10;
        } else {
            transaction.commit().await.unwrap();
            next += 1;
        }
    }
    println!("SQL: {} copies in the topic, {again} met, {} crashes", topic.copies(), crashes.len());
    assert!(again >= topic.copies() + 10 * crashes.len(), "{again}");
    assert_eq!(Effect::of(&topic).await, Effect::exact());
    let newest = "SELECT DISTINCT ON (customer) customer, id, created_at FROM bookings ORDER BY customer, created_at DESC, id DESC";
    let differences = format!(
        "SELECT count(*) FROM ({newest}) AS b FULL JOIN latest_booking AS l USING (customer) \
         WHERE (b.id, b.created_at) IS DISTINCT FROM (l.booking, l.booked_at)"
    );
    assert_eq!(count(&topic.owner, &differences).await, 0);
}

// Guarantee: consumers.concurrent
#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_with_one_message_at_once_have_one_effect_and_the_second_takes_over_when_the_first_fails() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    tables(&owner).await;
    let mut first = database.connect("postgres").await;
    for (id, commits) in [("1", true), ("2", false)] {
        let headers = [("id", id), ("relay", "bookings"), ("created_at", "2026-01-01T00:00:00.000000Z")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let record = Record { partition: 0, offset: 0, key: Some("c".into()), payload: None, headers };
        let open = first.transaction().await.unwrap();
        assert!(process(&open, &record).await);
        let mut second = database.connect("postgres").await;
        let other = tokio::spawn(async move {
            let transaction = second.transaction().await.unwrap();
            let fresh = process(&transaction, &record).await;
            transaction.commit().await.unwrap();
            fresh
        });
        let waits = "SELECT count(*) FROM pg_stat_activity \
                     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'WITH fresh%'";
        eventually(PATIENCE, async || count(&owner, waits).await == 1).await;
        if commits {
            open.commit().await.unwrap();
        } else {
            open.rollback().await.unwrap();
        }
        assert_eq!(other.await.unwrap(), !commits);
    }
    assert_eq!(count(&owner, "SELECT count(*) FROM invoice").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_older_than_the_page_says_is_forgotten() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    tables(&owner).await;
    let fill = "INSERT INTO processed_message \
                SELECT 'sql', 'bookings', n::text, now() - n * interval '1 day' + interval '1 hour' FROM generate_series(1, 60) AS n";
    owner.batch_execute(fill).await.unwrap();
    owner.batch_execute(&block("DELETE FROM processed_message")).await.unwrap();
    let left = "SELECT max(id::integer)::bigint * 1000 + count(*) FROM processed_message";
    assert_eq!(count(&owner, left).await, 30_030, "the newest thirty");
}
