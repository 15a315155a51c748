//! What a dead letter of an HTTP and of an SMS relay holds, and what flows past it.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::outside::json;
use crate::support::receiver::Receiver;
use crate::support::{CLOCK, PATIENCE, Replica, bookings, config, database, eventually};

const REFUSED: [&str; 3] = ["4", "5", "10"];

async fn put_aside(relays: &str, receiver: &Receiver, sink: &str) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    receiver.answer(|request| {
        let refused = REFUSED.iter().any(|id| request.key == format!("r/{id}"));
        (if refused { 422 } else { 200 }, Duration::ZERO)
    });
    let begun = SystemTime::now();
    owner
        .batch_execute("INSERT INTO bookings (payload) SELECT 'Ünit & ' || n FROM generate_series(1, 12) AS n")
        .await
        .unwrap();
    let replica = Replica::start(&config(&database, "relay", None, relays), "r1");
    eventually(PATIENCE * 2, || async { receiver.accepted("r").len() == 9 }).await;
    replica.stop().await;
    assert_eq!(receiver.accepted("r"), ["1", "2", "3", "6", "7", "8", "9", "11", "12"], "the rest, once, in order");
    let asked: Vec<String> = receiver.requests().into_iter().map(|request| request.key).collect();
    assert_eq!(asked, (1..=12).map(|id| format!("r/{id}")).collect::<Vec<_>>(), "a refused row is asked once");

    let sql = "SELECT d.message_id, d.cursor, d.source, d.sink, d.target, d.key, d.payload, d.state, d.attempts, \
               d.dead_lettered_at, d.dead_lettered_by, d.error::text, d.created_at = b.created_at, \
               (SELECT position_id FROM outbox.cursor WHERE name = 'r') \
               FROM outbox.dead_letter AS d JOIN bookings AS b ON b.id::text = d.message_id ORDER BY b.id";
    let letters = owner.query(sql, &[]).await.unwrap();
    assert_eq!(letters.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), REFUSED);
    for letter in letters {
        let text = |column: usize| letter.get::<_, String>(column);
        assert_eq!([text(1), text(2), text(3), text(7)], ["r", "public.bookings", sink, "dead"]);
        assert!(text(4).contains(&receiver.url()) && !text(4).contains("hunter2"), "{}", text(4));
        assert_eq!(letter.get::<_, Option<String>>(5), None, "there is no key");
        let requests = receiver.requests();
        let sent = requests.iter().find(|request| request.key == format!("r/{}", text(0))).unwrap();
        assert_eq!(String::from_utf8(letter.get(6)).unwrap(), sent.body, "the payload as sent");
        assert!(sent.body.contains(&text(0)), "{}", sent.body);
        assert_eq!(letter.get::<_, i32>(8), 1);
        assert!((begun..SystemTime::now()).contains(&letter.get::<_, SystemTime>(9)));
        assert!(text(10).contains("r1"), "{}", text(10));
        let error: Value = json(&text(11));
        assert_eq!((&error["class"], &error["code"]), (&"poison".into(), &"http_422".into()));
        assert!(error["message"].as_str().unwrap().ends_with("answered 422"), "{error}");
        assert!(error["at"].is_string() && error["hint"].is_string(), "{error}");
        assert!(letter.get::<_, bool>(12), "the row's place");
        assert_eq!(text(13), "12");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_an_http_receiver_refuses_is_put_aside_as_it_was_sent_and_the_rest_goes_on() {
    let receiver = Receiver::start();
    put_aside(&receiver.relay("r", "on_poison = \"dead_letter\""), &receiver, "http").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_an_sms_provider_refuses_is_put_aside_as_it_was_sent_and_the_rest_goes_on() {
    let receiver = Receiver::start();
    put_aside(&receiver.sms("r", "on_poison = \"dead_letter\""), &receiver, "sms").await;
}
