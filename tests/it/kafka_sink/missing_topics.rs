//! Rows that name topics which are not there.

use super::{arrived, configured, relay, topic};
use crate::support::{CLOCK, PATIENCE, Process, Replica, bookings, broker, database, eventually, toml, unique};

/// 20 rows took 62 seconds when each of them waited for a topic that may be on its way.
#[tokio::test(flavor = "multi_thread")]
async fn missing_topics_hold_rows_up_once() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let there = topic("there", 1, &[]).await;
    let missing: Vec<String> = (0..20).map(|_| unique("missing")).collect();
    let insert = "INSERT INTO bookings (customer) SELECT unnest($1::text[])";
    owner.execute(insert, &[&missing]).await.unwrap();
    owner.execute(insert, &[&vec![&there]]).await.unwrap();
    let sink = "payload = { column = \"payload\" }\nkey = \"customer\"";
    let routed = relay("routed", "{{ customer }}", sink)
        .replace("name = \"routed\"\n", "name = \"routed\"\non_poison = \"dead_letter\"\n");
    let begun = std::time::Instant::now();
    let replica = Replica::start(&configured(&database, &routed).await, "r1");
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE error ->> 'code' LIKE 'kafka_unknown_topic%'";
    eventually(PATIENCE * 10, async || owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0) == 20).await;
    let took = begun.elapsed();
    arrived(&there, 1).await;
    replica.stop().await;
    assert!(took.as_secs() < 20, "{took:?}");
}

/// Beside a topic for dead letters a turn passes one row; all topics of a turn are waited for together all the same.
// Guarantee: failures.missing-topic
#[tokio::test(flavor = "multi_thread")]
async fn missing_topics_hold_rows_up_once_beside_a_dead_letter_topic() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (there, dead) = (topic("there", 1, &[]).await, topic("dead", 1, &[]).await);
    let missing: Vec<String> = (0..20).map(|_| unique("missing")).collect();
    let insert = "INSERT INTO bookings (customer) SELECT unnest($1::text[])";
    owner.execute(insert, &[&missing]).await.unwrap();
    owner.execute(insert, &[&vec![&there]]).await.unwrap();
    let sink = "payload = { column = \"payload\" }\nkey = \"customer\"";
    let more = format!("name = \"routed\"\non_poison = \"dead_letter\"\ndead_letter_topic = \"{dead}\"\n");
    let routed = relay("routed", "{{ customer }}", sink).replace("name = \"routed\"\n", &more);
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &routed);
    let (begun, process) = (std::time::Instant::now(), Process::spawn(&text, &["run"]));
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE error ->> 'code' LIKE 'kafka_unknown_topic%'";
    eventually(PATIENCE * 10, async || owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0) == 20).await;
    let took = begun.elapsed();
    arrived(&there, 1).await;
    assert_eq!(arrived(&dead, 20).await.len(), 20, "each has its copy");
    drop(process);
    assert!(took.as_secs() < 30, "{took:?}");
}

/// Each took a turn of its own. Rows that are sent stand between them, and of these none may go out of order or be lost.
// Guarantee: failures.missing-topic
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_missing_topic_become_dead_letters_together() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (there, missing) = (topic("there", 1, &[]).await, unique("missing"));
    let insert = "INSERT INTO bookings (customer, payload) SELECT CASE n % 4 WHEN 0 THEN $1::text ELSE $2::text END, n::text \
                  FROM generate_series(1, 4000) AS n";
    owner.execute(insert, &[&there, &missing]).await.unwrap();
    let sink = "payload = { column = \"payload\" }\nkey = \"customer\"";
    let routed = relay("routed", "{{ customer }}", sink)
        .replace("name = \"routed\"\n", "name = \"routed\"\non_poison = \"dead_letter\"\n");
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &routed);
    let process = Process::spawn(&text, &["run"]);
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE error ->> 'code' LIKE 'kafka_unknown_topic%'";
    eventually(PATIENCE * 6, async || owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0) == 3000).await;
    let records = arrived(&there, 1000).await;
    let payloads = records.iter().map(|record| record.payload.clone().expect("not NULL"));
    let expected = (1..=1000).map(|n| (4 * n).to_string().into_bytes());
    assert!(payloads.eq(expected), "in order, each once");
    let wrong = "SELECT count(*) FROM bookings AS b LEFT JOIN outbox.dead_letter AS d ON d.message_id = b.id::text \
                 AND d.created_at = b.created_at AND convert_from(d.payload, 'UTF8') = b.payload AND d.key = b.customer \
                 WHERE (d.id IS NULL) <> (b.customer = $1)";
    assert_eq!(owner.query_one(wrong, &[&there]).await.unwrap().get::<_, i64>(0), 0, "each refused row, whole");
    let turns = owner.query_one("SELECT count(DISTINCT xmin::text) FROM outbox.dead_letter", &[]).await.unwrap();
    let turns: i64 = turns.get(0);
    assert!(turns < 100, "3,000 rows took {turns} turns");
    drop(process);
}

/// Each dead letter is an insert of the advance: where they take long, fewer of them are passed together, and the relay goes on.
// Guarantee: failures.missing-topic
#[tokio::test(flavor = "multi_thread")]
async fn slow_database_gets_fewer_dead_letters_a_turn() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (there, missing) = (topic("there", 1, &[]).await, unique("missing"));
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$; \
                CREATE TRIGGER slow BEFORE INSERT ON outbox.dead_letter FOR EACH ROW EXECUTE FUNCTION slow()";
    owner.batch_execute(slow).await.unwrap();
    let insert = "INSERT INTO bookings (customer, payload) SELECT CASE n % 2 WHEN 0 THEN $1::text ELSE $2::text END, n::text \
                  FROM generate_series(1, 120) AS n";
    owner.execute(insert, &[&there, &missing]).await.unwrap();
    let sink = "payload = { column = \"payload\" }\nkey = \"customer\"\n[relay.turn]\ndeadline = \"1s\"";
    let routed = relay("routed", "{{ customer }}", sink)
        .replace("name = \"routed\"\n", "name = \"routed\"\non_poison = \"dead_letter\"\n");
    let process =
        Process::spawn(&toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &routed), &["run"]);
    let letters = "SELECT count(*) FROM outbox.dead_letter WHERE error ->> 'code' LIKE 'kafka_unknown_topic%'";
    eventually(PATIENCE * 6, async || owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0) == 60).await;
    let mut seen: Vec<u32> = Vec::new();
    eventually(PATIENCE, async || {
        let records = arrived(&there, 60).await;
        seen = records.iter().map(|record| record.text().parse().unwrap()).collect();
        seen.last() == Some(&120)
    })
    .await;
    println!("{} rows were sent again; {}", seen.len() - 60, process.log().matches("turn failed").count());
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.into_iter().eq((1..=60).map(|n| 2 * n)), "none is lost");
}
