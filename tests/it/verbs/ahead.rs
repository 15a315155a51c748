//! A position beyond the clock: set by an operator, or by another role that can write it.

use super::{ends, insert};
use crate::support::outside::{halted, printed, standing, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

// Guarantee: security.foreign-position
#[tokio::test(flavor = "multi_thread")]
async fn position_that_no_command_has_set_beyond_the_clock_halts_by_name() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    eventually(PATIENCE, async || printed(&process, "s") == ["1"]).await;
    let stands = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = '1')";
    eventually(PATIENCE, async || owner.query_one(stands, &[]).await.unwrap().get(0)).await;
    let ahead =
        "UPDATE outbox.cursor SET position_created_at = clock_timestamp() + interval '1 day', position_id = NULL";
    owner.batch_execute(ahead).await.unwrap();
    insert(&owner, 2).await;
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "position_in_future", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("outbox-relay cursor seek s --at"), "{error}");
    // What the halt is about is still so.
    ends(0, &text, &["cursor", "resume", "s"]).await;
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "position_in_future", "{error}");
    assert_eq!(printed(&process, "s"), ["1"]);
    ends(0, &text, &["cursor", "seek", "s", "--after-id", "1", "--yes"]).await;
    ends(0, &text, &["cursor", "resume", "s"]).await;
    eventually(PATIENCE, async || printed(&process, "s") == ["1", "2", "3"]).await;
}

// Guarantee: security.foreign-position
#[tokio::test(flavor = "multi_thread")]
async fn position_that_an_operator_has_set_beyond_the_clock_stays() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &format!("{}{}", stdout_relay("s", ""), stdout_relay("other", "")));
    let process = Process::spawn(&text, &["run"]);
    insert(&owner, 1).await;
    let both = async |id: &str| ["s", "other"].map(|relay| printed(&process, relay).contains(&id.to_owned()));
    eventually(PATIENCE, async || both("1").await == [true; 2]).await;
    ends(0, &text, &["cursor", "seek", "s", "--at", "2100-01-01T00:00:00Z", "--yes"]).await;
    // Both relays are of one table, so each look at it sees both positions.
    insert(&owner, 1).await;
    eventually(PATIENCE, async || both("2").await[1]).await;
    insert(&owner, 1).await;
    eventually(PATIENCE, async || both("3").await[1]).await;
    let halted = standing(&owner, "s").await.is_some_and(|(_, halted, ..)| halted);
    assert!(!halted, "{}", process.log());
    assert_eq!(printed(&process, "s"), ["1"]);
}
