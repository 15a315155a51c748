//! What relays record of the rows that they pass: all of them, whatever becomes of each.

use serde_json::json;

use super::super::{differences, drain, insert, verify};
use super::{KEEP, SWEPT, Sent};
use crate::support::{outbox_relay, toml};

// Guarantee: verify.sinks
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_and_rows_that_an_operator_passed_over_are_explained() {
    let sent = Sent::new(2, "", "on_poison = \"dead_letter\"", "").await;
    sent.hook.answer(400, None);
    sent.deliver(1).await;
    sent.hook.answer(200, None);
    sent.deliver(1).await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({ "dead_letter": 1 })), "{document}{log}");
    assert_eq!(document["rows"], json!({ "table": 4, "delivered": 3, "topic": null }));
    insert(&sent.owner, 4).await;
    let (code, _, log) = outbox_relay(&sent.text, &["cursor", "seek", "hooks", "--after-id", "7", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    drain(&sent.text).await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], json!({ "dead_letter": 1, "skipped": 3 }), "{document}");
    assert_eq!(document["rows"], json!({ "table": 8, "delivered": 4, "topic": null }), "{document}");
}

// Guarantee: verify.sinks
// Guarantee: audit.kept-all
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_came_late_are_delivered_once_and_count_as_delivered() {
    let sent = Sent::new(5, SWEPT, "", KEEP).await;
    let late = sent.insert_late().await;
    drain(&sent.text).await;
    assert_eq!(sent.hook.accepted().last(), Some(&format!("hooks/{late}")), "found by its transaction");
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &6.into()), "{document}{log}");
    // More of them than the sums can name.
    let many = "INSERT INTO bookings (created_at) SELECT b.created_at - make_interval(secs => n / 1e6) \
                FROM bookings AS b, generate_series(2, 41) AS n WHERE b.id = 2";
    for _ in 0..3 {
        sent.owner.batch_execute(many).await.unwrap();
    }
    drain(&sent.text).await;
    assert_eq!(sent.hook.accepted().len(), 126);
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["table"]), (Some(0), &126.into()), "{document}{log}");
}

// Guarantee: audit.kept-all
#[tokio::test(flavor = "multi_thread")]
async fn kept_slices_have_the_rows_of_filters_parked_keys_and_lanes() {
    let filter = Sent::new(9, "", "", KEEP).await;
    let filtered = filter
        .text
        .replace("table = \"public.bookings\"", "table = \"public.bookings\"\nwhere = { customer = \"c1\" }");
    let filtered = filtered.replace("name = \"hooks\"", "name = \"some\"");
    let (code, _, log) = outbox_relay(&filtered, &["cursor", "create", "some", "--beginning"]).await;
    assert_eq!(code, Some(0), "{log}");
    drain(&filtered).await;
    let (code, document, log) = verify(&filtered, &["some"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &3.into()), "{document}{log}");
    let parked =
        Sent::new(3, "", "on_poison = \"park_key\"", &format!("[relay.turn]\nlane = \"customer\"\n{KEEP}")).await;
    parked.hook.answer(400, None);
    parked.owner.batch_execute("INSERT INTO bookings (customer) VALUES ('p')").await.unwrap();
    drain(&parked.text).await;
    parked.hook.answer(200, None);
    parked.owner.batch_execute("INSERT INTO bookings (customer) VALUES ('p'), ('q')").await.unwrap();
    drain(&parked.text).await;
    let (code, document, log) = verify(&parked.text, &["hooks"]).await;
    assert_eq!(
        (code, &document["rows"]),
        (Some(0), &json!({ "table": 6, "delivered": 4, "topic": null })),
        "{document}{log}"
    );
    assert_eq!(document["explained"], json!({ "dead_letter": 1, "parked": 1 }));
    let lanes = Sent::new(40, "", "", "[relay.turn]\nin_flight = 4\nlane = \"customer\"\n").await;
    let (code, document, log) = verify(&lanes.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &40.into()), "{document}{log}");
}

// Guarantee: verify.sinks
#[tokio::test(flavor = "multi_thread")]
async fn turn_that_was_interrupted_has_recorded_how_far_it_came() {
    let sent = Sent::plain(4).await;
    insert(&sent.owner, 3).await;
    // As the turn that takes over leaves it.
    let taken_over = "INSERT INTO outbox.audit_slice \
                      (cursor, reads, after_created_at, after_id, up_to_created_at, up_to_id, row_count, sums) \
                      SELECT c.name, ('x' || encode(substring(c.audit FROM 10 FOR 8), 'hex'))::bit(64)::bigint, \
                      c.position_created_at, c.position_id, b.created_at, b.id::text, 3, ''::bytea \
                      FROM outbox.cursor AS c, bookings AS b WHERE b.id = 7";
    sent.owner.batch_execute(taken_over).await.unwrap();
    super::pass_over(&sent.owner, "hooks", 7).await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &7.into()), "{document}{log}");
    assert!(document["notes"].to_string().contains("3 rows between"), "{document}");
}

// Guarantee: verify.sinks
#[tokio::test(flavor = "multi_thread")]
async fn shards_and_read_models_are_compared_as_well() {
    let index = "CREATE INDEX ON bookings (((COALESCE(hashtextextended(customer::text COLLATE \"C\", 0), 0) & 2147483647) % 2), \
                 created_at, id)";
    let sent = Sent::new(12, index, "shards = 2\nshard_key = \"customer\"", "").await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &12.into()), "{document}{log}");
    let late = sent.insert_late().await;
    let (code, document, log) = verify(&sent.text, &["hooks"]).await;
    assert_eq!((code, differences(&document)), (Some(3), vec![format!("not_delivered {late}")]), "{document}{log}");
    let seen = "CREATE TABLE public.seen (id bigint PRIMARY KEY); GRANT SELECT, INSERT ON public.seen TO relay";
    sent.owner.batch_execute(seen).await.unwrap();
    let model = "[[relay]]\nname = \"model\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.sql]\n\
                 statement = \"INSERT INTO public.seen VALUES ($1)\"\nparameters = [\"id\"]\n";
    let text = toml(&sent.database, "relay", None, model);
    drain(&text).await;
    let (code, document, log) = verify(&text, &["model"]).await;
    assert_eq!((code, &document["rows"]["delivered"]), (Some(0), &13.into()), "{document}{log}");
    assert_eq!(document["sink"], "sql");
}
