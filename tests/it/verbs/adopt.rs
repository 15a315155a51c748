//! `cursor adopt`: what it shows, and that exactly this is taken over. The halts that it cures are in `identity`.

use super::{ends, insert, operation};
use crate::support::outside::{printed, stdout_relay};
use crate::support::{
    CLOCK, PATIENCE, Process, bookings, broker, database, eventually, ids, kafka_relay, toml, unique,
};

// Guarantee: commands.adopt-facts
#[tokio::test(flavor = "multi_thread")]
async fn adopt_shows_what_has_changed_and_does_nothing_when_nothing_has() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    insert(&owner, 2).await;
    ends(0, &text, &["run", "--once"]).await;
    let (out, _) = ends(0, &text, &["cursor", "adopt", "s", "--yes"]).await;
    assert_eq!(out, "s: nothing to adopt: it belongs to what its relay finds\n");
    assert_eq!(operation(&owner, "cursor adopt").await, None);

    owner
        .batch_execute(
            "CREATE TABLE tours (LIKE bookings INCLUDING ALL); GRANT SELECT ON tours TO relay; \
             INSERT INTO tours DEFAULT VALUES; UPDATE tours SET created_at = '2020-01-01'; INSERT INTO tours DEFAULT VALUES",
        )
        .await
        .unwrap();
    let other = text.replace("public.bookings", "public.tours");
    let (out, log) = ends(2, &other, &["cursor", "adopt", "s"]).await;
    for part in
        ["table", "public.bookings", "public.tours", "bookings (oid ", "tours (oid ", "sent before or never: 1\n"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(log.contains("--yes"), "{log}");
    // Stored: the first turn of a relay that finds the same takes it over, position and all.
    ends(0, &other, &["cursor", "adopt", "s", "--yes"]).await;
    assert_eq!(operation(&owner, "cursor adopt").await.unwrap()["changes"][0]["current"], "public.tours");
    let process = Process::spawn(&other, &["run"]);
    eventually(PATIENCE * 2, || async { printed(&process, "s") == ["2"] }).await;
    let taken = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE identity ->> 'table' = 'public.tours' \
                 AND relations[1] = 'tours'::regclass)";
    assert!(owner.query_one(taken, &[]).await.unwrap().get::<_, bool>(0));
}

// Guarantee: commands.adopt
#[tokio::test(flavor = "multi_thread")]
async fn adopt_writes_down_how_many_partitions_the_topic_has_now() {
    let (database, broker, topic) = (database().await, broker().await, unique("adopt"));
    broker.create_topic(&topic, 3, &[]).await.unwrap();
    let kafka = broker.bootstrap_servers();
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some(&kafka), &kafka_relay("k", &topic, ""));
    insert(&owner, 1).await;
    ends(0, &text, &["run", "--once"]).await;
    owner.batch_execute("UPDATE outbox.cursor SET partitions = 1").await.unwrap();
    let (out, _) = ends(0, &text, &["cursor", "adopt", "k", "--yes"]).await;
    let line = out.lines().find(|line| line.starts_with("topic partitions")).unwrap_or_default();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["topic", "partitions", "1", "3"], "{out}");
    let process = Process::spawn(&text, &["run"]);
    let taken = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE partitions = 3)";
    eventually(PATIENCE * 2, || async { owner.query_one(taken, &[]).await.unwrap().get(0) }).await;
    insert(&owner, 1).await;
    eventually(PATIENCE, || async { ids(&kafka, &topic).await.len() == 2 }).await;
    drop(process);
}
