//! `dead-letter list|show|redrive|discard`: what they show, what they do, what they refuse.

use std::time::Duration;

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outside::{json, keys};
use crate::support::receiver::Receiver;
use crate::support::{CLOCK, Database, PATIENCE, Replica, bookings, config, database, eventually, outbox_relay, toml};

/// A relay `r` that has put rows 2, 3 and 4 of six aside.
async fn stage(receiver: &Receiver) -> (Database, Client, String, Replica) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    refuse(receiver, &["2", "3", "4"]);
    owner
        .batch_execute("INSERT INTO bookings (payload) SELECT 'p' || n FROM generate_series(1, 6) AS n")
        .await
        .unwrap();
    let relays = receiver.relay("r", "on_poison = \"dead_letter\"");
    let replica = Replica::start(&config(&database, "relay", None, &relays), "r1");
    eventually(PATIENCE * 2, || async { receiver.accepted("r") == ["1", "5", "6"] }).await;
    let text = toml(&database, "relay", None, &relays);
    (database, owner, text, replica)
}

fn refuse(receiver: &Receiver, ids: &[&str]) {
    let refused: Vec<String> = ids.iter().map(|id| format!("r/{id}")).collect();
    receiver.answer(move |request| (if refused.contains(&request.key) { 422 } else { 200 }, Duration::ZERO));
}

async fn ends(code: i32, text: &str, args: &[&str]) -> (String, String) {
    let (found, out, log) = outbox_relay(text, &[&["dead-letter"], args].concat()).await;
    assert_eq!(found, Some(code), "{args:?}\n{out}\n{log}");
    (out, log)
}

/// The letters that wait: number and row.
async fn waiting(text: &str, more: &[&str]) -> Vec<(String, String)> {
    let (out, _) = ends(0, text, &[&["list", "-o", "json"], more].concat()).await;
    let letters = json(&out)["dead_letters"].as_array().unwrap().clone();
    letters.iter().map(|letter| (letter["id"].to_string(), letter["key"][0].as_str().unwrap().to_owned())).collect()
}

async fn state(owner: &Client, row: &str) -> (String, i32) {
    let sql = "SELECT state, attempts FROM outbox.dead_letter WHERE message_id = $1";
    let row = owner.query_one(sql, &[&row]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Who did what, as JSON: verb and detail, oldest first.
async fn operations(owner: &Client) -> Vec<(String, Value)> {
    let sql = "SELECT verb, detail::text, operator, cursor FROM outbox.operation ORDER BY id";
    let rows = owner.query(sql, &[]).await.unwrap();
    for row in &rows {
        assert!(row.get::<_, String>(2).starts_with("relay/"), "the role, and who used it");
        assert_eq!(row.get::<_, String>(3), "r");
    }
    rows.iter().map(|row| (row.get(0), json(row.get(1)))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_and_shown_and_nothing_is_done_without_consent() {
    let receiver = Receiver::start();
    let (_database, owner, text, replica) = stage(&receiver).await;
    let letters = waiting(&text, &[]).await;
    assert_eq!(letters.iter().map(|(_, row)| row.as_str()).collect::<Vec<_>>(), ["2", "3", "4"]);
    assert_eq!(waiting(&text, &["--cursor", "r"]).await, letters);
    ends(2, &text, &["list", "--cursor", "other"]).await;
    let id = letters[0].0.as_str();
    let (out, _) = ends(0, &text, &["show", id, "-o", "json"]).await;
    let shown = json(&out);
    let documented = [
        "attempts",
        "created_at",
        "cursor",
        "dead_lettered_at",
        "error",
        "id",
        "key",
        "message_key",
        "parked_rows",
        "payload",
        "source",
        "status",
        "target",
    ];
    assert_eq!(keys(&shown).into_iter().collect::<Vec<_>>(), documented);
    assert_eq!((&shown["payload"], &shown["status"], &shown["attempts"]), (&"p2".into(), &"dead".into(), &1.into()));
    let (out, _) = ends(0, &text, &["show", id]).await;
    assert!(out.contains("2 of public.bookings, ") && out.contains("poison http_422: "), "{out}");
    let (out, _) = ends(0, &text, &["list"]).await;
    assert!(out.starts_with("ID") && out.lines().count() == 4, "{out}");
    let (_, log) = ends(1, &text, &["show", "99"]).await;
    assert!(log.contains("there is no dead letter 99"), "{log}");

    receiver.answer(|_| (200, Duration::ZERO));
    for verb in ["redrive", "discard"] {
        let (out, log) = ends(0, &text, &[verb, "--cursor", "r", "--dry-run"]).await;
        assert!(out.lines().count() == 4 && log.contains("dry run: nothing was done"), "{out}{log}");
        let (_, log) = ends(2, &text, &[verb, id]).await;
        assert!(log.contains("standard input is no terminal") && log.contains("--yes"), "{log}");
        ends(2, &text, &[verb]).await;
        ends(2, &text, &[verb, id, "--yes", "--dry-run"]).await;
        let (_, log) = ends(1, &text, &[verb, id, "99", "--yes"]).await;
        assert!(log.contains("there is no dead letter 99"), "{log}");
    }
    // What comes now would be overtaken by nothing: had one been sent again, it would stand before this row.
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p7')").await.unwrap();
    eventually(PATIENCE, || async { receiver.accepted("r") == ["1", "5", "6", "7"] }).await;
    assert_eq!(waiting(&text, &[]).await, letters);
    assert!(operations(&owner).await.is_empty());
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redriven_row_keeps_its_id_is_marked_and_a_discarded_one_is_never_sent() {
    let receiver = Receiver::start();
    let (_database, owner, text, replica) = stage(&receiver).await;
    let letters = waiting(&text, &[]).await;
    let id = |row: usize| letters[row].0.clone();
    // Mended: it goes out fixed. Gone: what was stored goes out.
    owner
        .batch_execute("UPDATE bookings SET payload = 'fixed' WHERE id = 2; DELETE FROM bookings WHERE id = 3")
        .await
        .unwrap();

    // Refused again: it waits on, with one attempt more.
    let (out, _) = ends(0, &text, &["redrive", &id(0), "--yes"]).await;
    assert!(out.contains("1 of 1: will be sent again by the cursor's next turn"), "{out}");
    eventually(PATIENCE * 2, || async { state(&owner, "2").await == ("dead".to_owned(), 2) }).await;
    refuse(&receiver, &["4"]);
    let (out, _) = ends(0, &text, &["redrive", &id(0), &id(1), "--yes"]).await;
    assert!(out.contains("2 of 2"), "{out}");
    eventually(PATIENCE * 2, || async { receiver.accepted("r") == ["1", "5", "6", "2", "3"] }).await;
    for (row, body) in [("2", "fixed"), ("3", "p3")] {
        eventually(PATIENCE, || async { state(&owner, row).await.0 == "redriven" }).await;
        let requests = receiver.requests();
        let sent = requests.iter().rfind(|request| request.key == format!("r/{row}")).unwrap();
        assert_eq!((sent.body.as_str(), sent.replayed), (body, true));
        assert!(
            !requests.iter().find(|request| request.key == sent.key).unwrap().replayed,
            "the first time it was not"
        );
    }
    let position = "SELECT position_id FROM outbox.cursor WHERE name = 'r'";
    assert_eq!(owner.query_one(position, &[]).await.unwrap().get::<_, String>(0), "6", "the position stays");

    let (out, _) = ends(0, &text, &["discard", "--cursor", "r", "--yes"]).await;
    assert!(out.contains("1 of 1: given up"), "{out}");
    assert_eq!(state(&owner, "4").await, ("discarded".to_owned(), 1));
    for (verb, letter, is) in [("discard", 2, "discarded"), ("redrive", 2, "discarded"), ("redrive", 0, "redriven")] {
        let (out, _) = ends(0, &text, &[verb, &id(letter), "--yes"]).await;
        assert_eq!(out, format!("dead letter {} does not wait: it is {is}\nnothing to do\n", id(letter)));
    }
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p7')").await.unwrap();
    eventually(PATIENCE, || async { receiver.accepted("r").last().is_some_and(|id| id == "7") }).await;
    assert_eq!(receiver.accepted("r"), ["1", "5", "6", "2", "3", "7"]);
    assert!(waiting(&text, &[]).await.is_empty());
    let expected = [("redrive", vec![id(0)]), ("redrive", vec![id(0), id(1)]), ("discard", vec![id(2)])];
    let found = operations(&owner).await;
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((verb, detail), (wanted, ids)) in found.iter().zip(&expected) {
        let mut concerned: Vec<String> = detail["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
        concerned.sort();
        assert_eq!((verb.as_str(), &concerned), (&*format!("dead-letter {wanted}"), ids));
    }
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_sends_all_redriven_letters_before_it_ends() {
    let receiver = Receiver::start();
    let (_database, owner, text, replica) = stage(&receiver).await;
    replica.stop().await;
    receiver.answer(|_| (200, Duration::ZERO));
    let text = text.replace("on_poison = \"dead_letter\"", "on_poison = \"dead_letter\"\nturn = { rows = 1 }");
    ends(0, &text, &["redrive", "--cursor", "r", "--yes"]).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    let left: i64 =
        owner.query_one("SELECT count(*) FROM outbox.dead_letter WHERE state <> 'redriven'", &[]).await.unwrap().get(0);
    assert_eq!((code, left), (Some(0), 0), "{log}");
    assert_eq!(receiver.accepted("r"), ["1", "5", "6", "2", "3", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_exits_1_while_redriven_letters_are_left() {
    let receiver = Receiver::start();
    let (_database, owner, text, replica) = stage(&receiver).await;
    replica.stop().await;
    receiver.answer(|_| (503, Duration::ZERO));
    ends(0, &text, &["redrive", "--cursor", "r", "--yes"]).await;
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "3s"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("3 dead letters are still to be sent again"), "{log}");
    assert_eq!(state(&owner, "2").await.0, "redriving");
}

// Guarantee: failures.redrive-rate
#[tokio::test(flavor = "multi_thread")]
async fn redrives_keep_the_rate_over_replicas() {
    let receiver = Receiver::start();
    let (database, owner, text, replica) = stage(&receiver).await;
    replica.stop().await;
    receiver.answer(|_| (200, Duration::ZERO));
    ends(0, &text, &["redrive", "--cursor", "r", "--yes"]).await;
    let before = receiver.requests().len();
    let relay = format!("{}rate_per_second = 0.25\n", receiver.relay("r", "on_poison = \"dead_letter\""));
    let config = config(&database, "relay", None, &relay);
    let replicas = ["r2", "r3"].map(|name| Replica::start(&config, name));
    let done = "SELECT count(*) = 3 FROM outbox.dead_letter WHERE state = 'redriven'";
    eventually(PATIENCE * 3, async || owner.query_one(done, &[]).await.unwrap().get(0)).await;
    let requests = receiver.requests().split_off(before);
    let [first, _, last] = &requests[..] else { panic!("{} requests", requests.len()) };
    // Twice four seconds, but for what the receiver noted late; four, if each replica kept a rate of its own, and none without one.
    let took = last.at.duration_since(first.at).unwrap();
    assert!(took > Duration::from_secs(6), "{took:?}");
    for replica in replicas {
        replica.stop().await;
    }
}
