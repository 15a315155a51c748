//! What changes under parked keys: shards, a move, a skip, an adoption, another column as the key. It works, or it is refused
//! by name.

use std::collections::BTreeSet;

use super::{Stage, book, http, no_key_is_parked, pairs, parked, refuse, refusing, stage, verb};
use crate::support::outside::halted;
use crate::support::relays::parse;
use crate::support::{CLOCK, PATIENCE, Replica, bookings, database, eventually, outbox_relay, toml};

const SHARDED: &str = "on_poison = \"park_key\"\nshards = 2\nshard_key = \"customer\"";

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_several_shards_are_parked_and_sent_in_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let relay = format!("{}[relay.turn]\nlane = \"customer\"\nrows = 50\n", receiver.relay("h", SHARDED));
    verb(&toml(&database, "postgres", None, &relay), &["migrate", "up", "--indexes"]).await;
    let text = toml(&database, "relay", None, &relay);
    // Row n is of customer k(n modulo 8); the first of k0, k1, k2 and k3 is refused.
    let fill = "INSERT INTO bookings (customer, payload) SELECT 'k' || n % 8, CASE WHEN n <= 8 AND n % 8 < 4 THEN 'bad' ELSE 'good' END \
                FROM generate_series(1, 80) AS n";
    owner.batch_execute(fill).await.unwrap();
    let replica = Replica::start(&parse(&text), "r1");
    let waiting = "SELECT count(*), count(DISTINCT cursor) FROM outbox.parked";
    eventually(PATIENCE * 2, async || owner.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 40).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 40).await;
    let cursors: i64 = owner.query_one(waiting, &[]).await.unwrap().get(1);
    println!("keys are parked in {cursors} shards");
    receiver.answer(refuse("nothing"));
    for letter in owner.query("SELECT id::text FROM outbox.dead_letter ORDER BY id", &[]).await.unwrap() {
        verb(&text, &["dead-letter", "redrive", letter.get(0), "--yes"]).await;
    }
    eventually(PATIENCE * 4, async || receiver.accepted("h").len() == 80 && no_key_is_parked(&owner).await).await;
    replica.stop().await;
    let accepted: Vec<i64> = receiver.accepted("h").iter().map(|id| id.parse().unwrap()).collect();
    assert_eq!(accepted.iter().collect::<BTreeSet<_>>().len(), 80, "each once");
    for key in 0..8 {
        let of_key: Vec<i64> = accepted.iter().copied().filter(|id| id % 8 == key).collect();
        assert!(of_key.is_sorted() && of_key.len() == 10, "k{key}: {of_key:?}");
    }
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn relay_with_parked_keys_is_not_divided_into_shards_until_their_rows_are_sent() {
    let Stage { owner, receiver, text, replica, database } = stage().await;
    replica.stop().await;
    let sharded = format!("{}[relay.turn]\nlane = \"customer\"\n", receiver.relay("h", SHARDED));
    let [as_owner, sharded] = ["postgres", "relay"].map(|role| toml(&database, role, None, &sharded));
    verb(&as_owner, &["migrate", "up", "--indexes"]).await;
    let reshard = async || outbox_relay(&as_owner, &["cursor", "reshard", "h", "--timeout", "10s"]).await;
    let (code, out, log) = reshard().await;
    assert!(code == Some(1) && log.contains("2 open dead letters"), "{code:?} {out}{log}");
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    let (code, out, log) = reshard().await;
    assert!(code == Some(1) && log.contains("2 parked keys"), "{code:?} {out}{log}");
    assert!(log.contains("`outbox-relay run --once --relay h`"), "what ends them: {log}");
    let of_a = pairs(&[("a", "4"), ("a", "6")]);
    assert_eq!(parked(&owner, "h").await, of_a, "nothing has changed");
    verb(&text, &["run", "--once", "--relay", "h"]).await;
    assert_eq!(receiver.accepted("h"), ["1", "3", "4", "6"]);
    let (code, out, log) = reshard().await;
    assert_eq!(code, Some(0), "{out}{log}");
    book(&owner, "a", &["7"]).await;
    let replica = Replica::start(&parse(&sharded), "r2");
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "4", "6", "7"]).await;
    replica.stop().await;
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn adopted_target_gets_parked_rows_in_order_before_new_ones() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let other = text.replace("/rows\"", "/other\"");
    book(&owner, "a", &["7"]).await;
    let replica = Replica::start(&parse(&other), "r2");
    let (_, error) = halted(&owner, "h").await;
    assert_eq!(error["code"], "identity_changed", "{error}");
    verb(&other, &["cursor", "adopt", "h", "--yes", "--timeout", "20s"]).await;
    book(&owner, "c", &["8"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "8"]).await;
    let waiting = pairs(&[("a", "2"), ("a", "4"), ("a", "6"), ("a", "7"), ("b", "5")]);
    eventually(PATIENCE, async || parked(&owner, "h").await == waiting).await;
    receiver.answer(refuse("nothing"));
    verb(&other, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
    assert_eq!(receiver.accepted("h")[..3], ["1", "3", "8"]);
    let of_a: Vec<String> =
        receiver.accepted("h").into_iter().filter(|id| ["2", "4", "6", "7"].contains(&&**id)).collect();
    assert_eq!(of_a, ["2", "4", "6", "7"], "in order, each once");
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn seek_forward_passes_unread_rows_of_a_parked_key_and_keeps_those_that_wait() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    for (customer, payload) in [("a", "7"), ("c", "8"), ("a", "9")] {
        book(&owner, customer, &[payload]).await;
    }
    verb(&text, &["cursor", "seek", "h", "--after-id", "7", "--yes"]).await;
    let replica = Replica::start(&parse(&text), "r2");
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "8"]).await;
    let waiting = pairs(&[("a", "2"), ("a", "4"), ("a", "6"), ("a", "9"), ("b", "5")]);
    eventually(PATIENCE, async || parked(&owner, "h").await == waiting).await;
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
    let of_a: Vec<String> =
        receiver.accepted("h").into_iter().filter(|id| ["2", "4", "6", "7", "9"].contains(&&**id)).collect();
    assert_eq!(of_a, ["2", "4", "6", "9"], "7 was passed over by the operator");
}

// Guarantee: parked.limits
#[tokio::test(flavor = "multi_thread")]
async fn skip_passes_the_row_for_which_its_key_has_no_room() {
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
    assert_eq!(error["code"], "park_limit", "{error}");
    verb(&text, &["cursor", "skip", "h", "--id", "5", "--yes"]).await;
    verb(&text, &["cursor", "resume", "h"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["4", "6"]).await;
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
    assert_eq!(receiver.accepted("h"), ["4", "6", "1", "2", "3"], "and 5 never");
}

/// Its texts are others, and rows of the parked keys would pass under them.
// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn another_column_as_the_key_halts_until_the_parked_rows_are_sent() {
    // One of what was read of the rows, and one that was not.
    for column in ["payload", "other"] {
        let Stage { owner, receiver, text, replica, database: _database } = stage().await;
        replica.stop().await;
        owner.batch_execute("ALTER TABLE bookings ADD other text NOT NULL DEFAULT 'o'").await.unwrap();
        book(&owner, "a", &["7"]).await;
        book(&owner, "c", &["8"]).await;
        let changed = text.replace("lane = \"customer\"", &format!("lane = \"{column}\""));
        let replica = Replica::start(&parse(&changed), "r2");
        let (_, error) = halted(&owner, "h").await;
        assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"keys_parked".into()), "{error}");
        assert!(error["message"].as_str().unwrap().contains("of another column"), "{error}");
        assert_eq!(receiver.accepted("h"), ["1", "3"], "{column}: nothing new is sent");
        // What waits is sent under either configuration.
        verb(&changed, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
        verb(&changed, &["cursor", "resume", "h"]).await;
        let all = ["1", "3", "4", "6", "7", "8"];
        eventually(PATIENCE * 2, async || receiver.accepted("h") == all && no_key_is_parked(&owner).await).await;
        replica.stop().await;
    }
}

/// Its key is read of the table, then: nothing else tells what it was made of.
// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn another_column_as_the_key_is_noticed_where_no_parked_row_could_be_read() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD other text NOT NULL DEFAULT 'o'").await.unwrap();
    let receiver = refusing("bad");
    let relay = http(&receiver, "").replace("rows = 50", "rows = 50\nmax_row_bytes = \"64KiB\"");
    let text = toml(&database, "relay", None, &relay);
    book(&owner, "a", &[&"x".repeat(100_000)]).await;
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || parked(&owner, "h").await == pairs(&[("a", "1")])).await;
    replica.stop().await;
    book(&owner, "a", &["2"]).await;
    book(&owner, "c", &["3"]).await;
    let changed = text.replace("lane = \"customer\"", "lane = \"other\"");
    let replica = Replica::start(&parse(&changed), "r2");
    let (_, error) = halted(&owner, "h").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"keys_parked".into()), "{error}");
    assert_eq!(receiver.accepted("h"), Vec::<String>::new(), "nothing passes the parked row");
    replica.stop().await;
    let replica = Replica::start(&parse(&text), "r3");
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["3"]).await;
    eventually(PATIENCE, async || parked(&owner, "h").await == pairs(&[("a", "1"), ("a", "2")])).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_another_replica_makes_of_another_column_halt_one_that_has_judged_those_before_them() {
    let Stage { owner, receiver, replica, database: _database, .. } = stage().await;
    book(&owner, "c", &["7"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "7"]).await;
    // As if these had ended, and a replica with another `lane` had parked the rows under its own: between two turns of this one.
    let other = "BEGIN; SELECT FROM outbox.cursor FOR UPDATE; UPDATE outbox.parked SET key = 'of ' || key; \
                 UPDATE outbox.parked_key SET key = 'of ' || key; COMMIT";
    owner.batch_execute(other).await.unwrap();
    book(&owner, "a", &["8"]).await;
    let (_, error) = halted(&owner, "h").await;
    assert_eq!(error["code"], "keys_parked", "{error}");
    assert_eq!(receiver.accepted("h"), ["1", "3", "7"], "8 would pass 2, 4 and 6");
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn the_former_column_as_the_key_ends_the_halt_and_keeps_the_order() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let changed = text.replace("lane = \"customer\"", "lane = \"payload\"");
    let replica = Replica::start(&parse(&changed), "r2");
    book(&owner, "a", &["7"]).await;
    let (_, error) = halted(&owner, "h").await;
    assert_eq!(error["code"], "keys_parked", "{error}");
    replica.stop().await;
    let replica = Replica::start(&parse(&text), "r3");
    let waiting = pairs(&[("a", "2"), ("a", "4"), ("a", "6"), ("a", "7"), ("b", "5")]);
    eventually(PATIENCE * 2, async || parked(&owner, "h").await == waiting).await;
    // Another body of the message is no other key.
    replica.stop().await;
    let body = text.replace("body = \"{{ payload }}\"", "body = \"{{ id }} {{ payload }}\"");
    let replica = Replica::start(&parse(&body), "r4");
    book(&owner, "c", &["8"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "8"]).await;
    assert_eq!(parked(&owner, "h").await, waiting);
    replica.stop().await;
}
