//! A table that a logical subscription writes, with instants of the publisher's.

use tokio_postgres::Client;

use crate::support::outside::{standing, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

// Guarantee: horizon.subscribed
#[tokio::test(flavor = "multi_thread")]
async fn halt_of_a_subscribed_table_outlasts_the_subscription_until_an_operator_resumes() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("a", ""));
    let process = Process::spawn(&text, &["run"]);
    let printed = || process.out().lines().count();
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    eventually(PATIENCE, async || printed() == 1).await;
    run(&owner, "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port=1' PUBLICATION p WITH (connect = false, slot_name = NONE)").await;
    let listed = "INSERT INTO pg_catalog.pg_subscription_rel (srsubid, srrelid, srsubstate) \
                  SELECT oid, 'public.bookings'::regclass, 'r' FROM pg_catalog.pg_subscription WHERE subname = 's'";
    run(&owner, listed).await;
    let halted = async || {
        standing(&owner, "a").await.is_some_and(|(_, halted, _, error)| halted && error["code"] == "table_subscribed")
    };
    eventually(PATIENCE * 3, halted).await;
    run(&owner, "INSERT INTO public.bookings (created_at) VALUES (now() - interval '1 day')").await;
    run(&owner, "DELETE FROM pg_catalog.pg_subscription_rel; DROP SUBSCRIPTION s").await;
    run(&owner, "INSERT INTO public.bookings DEFAULT VALUES").await;
    // The check passes again.
    eventually(PATIENCE * 3, async || process.log().matches("relay ready").count() == 2).await;
    assert!(halted().await && printed() == 1, "{}", process.log());
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "a"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, async || printed() == 2).await;
}
