//! What the engine makes of a sink's answers: dead letters, the circuit, unknown outcomes; and the sources beside streams.

use outbox_relay::migrate::app_grants;

use super::Stage;
use crate::support::outside::{get, halted, listener};
use crate::support::{PATIENCE, database, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_an_own_sink_refuses_becomes_a_dead_letter_and_can_be_sent_again() {
    let stage = Stage::of_bookings("on_poison = \"dead_letter\"").await;
    stage.socket.refuse("sold twice");
    stage.insert(3, "seat").await;
    stage.insert(1, "sold twice").await;
    stage.insert(3, "seat").await;
    let _replica = stage.replica("r1").await;
    stage.settled(7).await;
    assert_eq!(stage.socket.ids(), [1, 2, 3, 4, 5, 6, 7]);
    let id: i64 = stage.owner.query_one("SELECT id FROM outbox.dead_letter", &[]).await.unwrap().get(0);
    let document = stage.json(&["dead-letter", "show", &id.to_string(), "-o", "json"]).await;
    let text = document.to_string();
    for part in ["custom_refused", "no such seat", "sold twice", "unix_socket", "Correct the row"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    stage.socket.refuse("nothing");
    let (code, _, log) = stage.command(&["dead-letter", "redrive", "--cursor", "own", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 2, async || stage.socket.ids() == [1, 2, 3, 4, 5, 6, 7, 4]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_an_own_sink_refuses_halts_its_relay_behind_the_rows_before_it() {
    let stage = Stage::of_bookings("").await;
    stage.socket.refuse("sold twice");
    stage.insert(3, "seat").await;
    stage.insert(1, "sold twice").await;
    stage.insert(3, "seat").await;
    let _replica = stage.replica("r1").await;
    halted(&stage.owner, "own").await;
    assert_eq!((stage.position().await.0, stage.socket.ids()), (3, vec![1, 2, 3, 4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_whose_receiver_is_away_opens_its_circuit_and_gets_everything_when_it_is_back() {
    let mut stage = Stage::of_bookings("").await;
    stage.socket.down().await;
    stage.insert(20, "seat").await;
    let replica = stage.replica("r1").await;
    let listener = listener(&replica).await;
    let gauge = async |value| {
        let metrics = get(&format!("{listener}/metrics")).await.1;
        metrics.contains(&format!("outbox_relay_sink_circuit_open{{cursor=\"own\",sink=\"unix_socket\"}} {value}\n"))
    };
    eventually(PATIENCE * 3, async || gauge(1).await).await;
    let status = stage.json(&["status", "-o", "json"]).await;
    let cursor = &status["cursors"][0];
    assert_eq!(
        (&cursor["sink"]["kind"], &cursor["sink"]["circuit"]),
        (&"unix_socket".into(), &"open".into()),
        "{status}"
    );
    let error = &cursor["last_error"];
    assert_eq!((&error["class"], &error["code"]), (&"retry".into(), &"custom_away".into()), "{status}");
    stage.socket.up();
    stage.settled(20).await;
    assert_eq!(stage.socket.ids(), (1..=20).collect::<Vec<_>>());
    eventually(PATIENCE * 2, async || gauge(0).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_does_not_answer_leaves_an_own_sinks_row_unknown_under_at_most_once() {
    let stage = Stage::of_bookings("guarantee = \"at_most_once\"\n[relay.turn]\ndeadline = \"1s\"").await;
    stage.socket.answer(|row| (!row.contains("lost")).then(|| "ok".to_owned()));
    stage.insert(1, "lost").await;
    stage.insert(2, "seat").await;
    let _replica = stage.replica("r1").await;
    stage.settled(3).await;
    assert_eq!(stage.socket.ids(), [1, 2, 3]);
    let document = stage.json(&["request", "list", "--unknown", "-o", "json"]).await;
    assert_eq!(document["requests"].as_array().unwrap().len(), 1, "{document}");
    assert_eq!(document["requests"][0]["key"][0], "1", "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_gets_due_work_once_with_its_instant_in_the_key() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(
            "CREATE TABLE todos (id integer PRIMARY KEY, at timestamptz NOT NULL, sent boolean NOT NULL DEFAULT false); \
             GRANT SELECT, UPDATE (sent) ON todos TO relay; \
             INSERT INTO todos SELECT n, '2026-11-21T08:00:00Z' FROM generate_series(1, 30) AS n; \
             INSERT INTO todos VALUES (99, 'infinity')",
        )
        .await
        .unwrap();
    let relay = "[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\nsent = \"sent\"\n";
    let stage = Stage::of(database, owner, relay);
    let (_one, _two) = (stage.replica("r1").await, stage.replica("r2").await);
    eventually(PATIENCE * 3, async || {
        let sql = "SELECT count(*) FROM todos WHERE sent";
        stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 30
    })
    .await;
    let mut keys: Vec<String> = stage.socket.lines().into_iter().map(|line| line.key).collect();
    keys.sort();
    let mut expected: Vec<String> = (1..=30).map(|id| format!("own/{id}/2026-11-21T08:00:00.000000Z")).collect();
    expected.sort();
    assert_eq!(keys, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_sends_a_request_once_and_one_without_an_answer_is_unknown() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute("INSERT INTO outbox.template (name, relay) VALUES ('welcome', 'own')").await.unwrap();
    owner.batch_execute(&app_grants("app")).await.unwrap();
    let app = database.connect("app").await;
    let relay = "[relay.source.requests]\ntemplates = [\"welcome\"]\n[relay.turn]\ndeadline = \"1s\"";
    let stage = Stage::of(database, owner, relay);
    stage.socket.answer(|row| (!row.contains("silent")).then(|| "ok".to_owned()));
    let _replica = stage.replica("r1").await;
    for _ in 0..2 {
        for user in ["ann", "silent"] {
            let sql = "SELECT FROM outbox.enqueue_once($1 || ':welcome', $1, 'welcome')";
            app.query_one(sql, &[&user]).await.unwrap();
        }
    }
    let having = async |status: &str| -> i64 {
        let sql = "SELECT count(*) FROM outbox.request WHERE status = $1";
        stage.owner.query_one(sql, &[&status]).await.unwrap().get(0)
    };
    eventually(PATIENCE * 3, async || having("completed").await == 1 && having("unknown").await == 1).await;
    let lines = stage.socket.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().any(|line| line.row.contains("\"ann\"")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_carries_out_schedules() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let sql = "INSERT INTO outbox.schedule (name, relay, rule) VALUES ('ticks', 'own', 'FREQ=SECONDLY')";
    owner.batch_execute(sql).await.unwrap();
    let stage = Stage::of(database, owner, "[relay.source.schedule]");
    let _replica = stage.replica("r1").await;
    eventually(PATIENCE * 3, async || {
        let sql = "SELECT count(*) FROM outbox.action WHERE status = 'completed'";
        stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) >= 2
    })
    .await;
    assert!(stage.socket.lines().iter().all(|line| line.row.contains("ticks")), "{:?}", stage.socket.lines());
    assert!(stage.socket.lines().len() >= 2);
}
