//! How much may be parked, and rows whose key cannot be.

use super::{Stage, book, http, no_key_is_parked, pairs, parked, refuse, refusing, stage, verb};
use crate::support::outside::halted;
use crate::support::relays::parse;
use crate::support::{CLOCK, PATIENCE, Replica, bookings, database, eventually, toml};

// Guarantee: parked.limits
#[tokio::test(flavor = "multi_thread")]
async fn at_park_limit_the_relay_halts_and_goes_on_when_the_key_is_released() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, "park_limit = 3"));
    book(&owner, "a", &["bad", "2", "3"]).await;
    book(&owner, "c", &["4"]).await;
    book(&owner, "a", &["5"]).await;
    book(&owner, "c", &["6"]).await;
    let replica = Replica::start(&parse(&text), "r1");
    let (_, error) = halted(&owner, "h").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"park_limit".into()), "{error}");
    assert_eq!(receiver.accepted("h"), ["4"], "and nothing behind the row that has no room");
    eventually(PATIENCE, async || parked(&owner, "h").await == pairs(&[("a", "1"), ("a", "2"), ("a", "3")])).await;
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    verb(&text, &["cursor", "resume", "h"]).await;
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await && receiver.accepted("h").len() == 6).await;
    let of_a: Vec<String> =
        receiver.accepted("h").into_iter().filter(|id| ["1", "2", "3", "5"].contains(&&**id)).collect();
    assert_eq!(of_a, ["1", "2", "3", "5"]);
    replica.stop().await;
}

// Guarantee: parked.limits
#[tokio::test(flavor = "multi_thread")]
async fn at_park_keys_the_relay_halts_at_the_next_refused_message() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, "park_keys = 2"));
    for customer in ["a", "b", "c", "d"] {
        book(&owner, customer, &[if customer == "d" { "good" } else { "bad" }]).await;
    }
    let replica = Replica::start(&parse(&text), "r1");
    let (message_id, error) = halted(&owner, "h").await;
    assert_eq!((message_id.as_deref(), &error["class"]), (Some("3"), &"fatal".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("park_keys allows 2"), "{error}");
    assert_eq!(parked(&owner, "h").await, pairs(&[("a", "1"), ("b", "2")]));
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    verb(&text, &["cursor", "resume", "h"]).await;
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await && receiver.accepted("h").len() == 4).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_too_large_to_be_read_parks_its_key_all_the_same() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let relay = http(&receiver, "").replace("rows = 50", "rows = 50\nmax_row_bytes = \"64KiB\"");
    let text = toml(&database, "relay", None, &relay);
    let large = "x".repeat(100_000);
    book(&owner, "a", &["1", &large, "3"]).await;
    book(&owner, "c", &["4"]).await;
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "4"]).await;
    eventually(PATIENCE, async || parked(&owner, "h").await == pairs(&[("a", "2"), ("a", "3")])).await;
    owner.execute("UPDATE bookings SET payload = 'small' WHERE id = 2", &[]).await.unwrap();
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "4", "2", "3"]).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_too_long_to_be_parked_halts_the_relay_and_a_row_without_one_is_dead_lettered_alone() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ALTER customer DROP NOT NULL").await.unwrap();
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, ""));
    owner.execute("INSERT INTO bookings (customer, payload) VALUES (NULL, 'bad'), (NULL, '2')", &[]).await.unwrap();
    book(&owner, &"k".repeat(2001), &["bad"]).await;
    let replica = Replica::start(&parse(&text), "r1");
    let (message_id, error) = halted(&owner, "h").await;
    assert_eq!(message_id.as_deref(), Some("3"), "{error}");
    assert!(error["message"].as_str().unwrap().contains("2001 bytes"), "{error}");
    assert!(!error.to_string().contains("kkk"), "a key is not shown: {error}");
    assert_eq!(receiver.accepted("h"), ["2"]);
    assert!(no_key_is_parked(&owner).await);
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_parked_row_whose_own_row_is_gone_goes_out_as_it_was_parked() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    owner.batch_execute("DELETE FROM bookings WHERE id IN (2, 4)").await.unwrap();
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await).await;
    let sent = receiver.requests();
    let body =
        |id: &str| sent.iter().rfind(|request| request.key == format!("h/{id}")).map(|request| request.body.clone());
    assert_eq!((body("2").as_deref(), body("4").as_deref()), (Some("bad"), Some("4")));
    let of_a: Vec<String> = receiver.accepted("h").into_iter().filter(|id| ["2", "4", "6"].contains(&&**id)).collect();
    assert_eq!(of_a, ["2", "4", "6"]);
    replica.stop().await;
}
