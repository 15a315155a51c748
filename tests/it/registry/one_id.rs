//! Two processes of one replica id: pods that share the host's name, or a copied `--replica-id`.

use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::Client;

use super::{CLOCK, PATIENCE, bookings, database, eventually, start, stdout_relay};
use crate::support::outside::{json, line, printed};
use crate::support::{outbox_relay, toml};

const INSERT: &str = "INSERT INTO public.bookings (payload) VALUES ('text')";
const WAITS: &str = "relay waits for replicas with another configuration";

/// How many rows of this id have not stopped.
async fn running(owner: &Client, id: &str) -> i64 {
    let sql = "SELECT count(*) FROM outbox.replica WHERE id = $1 AND stopped_at IS NULL";
    owner.query_one(sql, &[&id]).await.unwrap().get(0)
}

// Guarantee: failures.one-id
#[tokio::test]
async fn killed_process_of_own_id_is_not_waited_for() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut first = start(&database, &stdout_relay("shapes", ""), "same");
    line(&first, "relay ready").await;
    let second = start(&database, &stdout_relay("shapes", "on_poison = \"dead_letter\""), "same");
    line(&second, WAITS).await;
    for count in 1..=5 {
        owner.batch_execute(INSERT).await.unwrap();
        eventually(PATIENCE, async || printed(&first, "shapes").len() == count).await;
    }
    assert_eq!((printed(&second, "shapes").len(), running(&owner, "same").await), (0, 2));
    first.signal(Signal::KILL);
    first.wait().await;
    owner.batch_execute(INSERT).await.unwrap();
    // The row before it, too, where the first was killed between its delivery and its advance.
    eventually(PATIENCE, async || printed(&second, "shapes").last().is_some_and(|id| id == "6")).await;
}

// Guarantee: failures.one-id
#[tokio::test]
async fn killed_process_lives_by_no_session_of_another() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut first = start(&database, &stdout_relay("shapes", ""), "same");
    line(&first, "relay ready").await;
    let second = start(&database, &stdout_relay("shapes", ""), "same");
    line(&second, "relay ready").await;
    first.signal(Signal::KILL);
    first.wait().await;
    // As if the row of the first had been written again while it ran beside the second.
    owner.batch_execute("UPDATE outbox.replica SET stopped_at = NULL").await.unwrap();
    let third = start(&database, &stdout_relay("shapes", "on_poison = \"dead_letter\""), "other");
    let message = line(&third, WAITS).await["reason"].as_str().unwrap().to_owned();
    assert!(message.starts_with("waits for replica same"), "{message}");
    let live = async || {
        let text = toml(&database, "relay", None, &stdout_relay("shapes", ""));
        let (_, out, _) = outbox_relay(&text, &["replica", "list", "-o", "json"]).await;
        let listed = json(&out)["replicas"].as_array().unwrap().clone();
        listed.iter().filter(|replica| replica["id"] == "same" && replica["live"] == Value::Bool(true)).count()
    };
    eventually(PATIENCE, async || live().await == 1).await;
    let mut second = second;
    second.signal(Signal::KILL);
    second.wait().await;
    owner.batch_execute(INSERT).await.unwrap();
    eventually(PATIENCE, async || printed(&third, "shapes").len() == 1).await;
}

// Guarantee: failures.one-id
#[tokio::test]
async fn replicas_with_one_id_are_named() {
    let database = database().await;
    let _owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("shapes", "");
    let first = start(&database, &relay, "same");
    line(&first, "relay ready").await;
    let second = start(&database, &relay, "same");
    let said = line(&second, "another live process has the id of this replica").await;
    assert!(said["hint"].as_str().unwrap().contains("--replica-id"), "{said}");
    let text = toml(&database, "relay", None, &relay);
    for args in [&["replica", "list"][..], &["status"]] {
        let (_, out, _) = outbox_relay(&text, args).await;
        assert!(out.contains("2 live processes have the replica id same"), "{args:?}: {out}");
        println!("{out}");
    }
}

// Guarantee: failures.one-id
#[tokio::test]
async fn job_waits_only_for_live_process_of_id() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(INSERT).await.unwrap();
    let first = start(&database, &stdout_relay("shapes", ""), "same");
    eventually(PATIENCE, async || printed(&first, "shapes").len() == 1).await;
    let text = toml(&database, "relay", None, &stdout_relay("shapes", "on_poison = \"dead_letter\""));
    let job = ["run", "--once", "--timeout", "3s", "--replica-id", "same"];
    let (code, _, log) = outbox_relay(&text, &job).await;
    assert!(code != Some(0) && log.contains(WAITS), "{code:?}: {log}");
    drop(first);
    let (code, _, log) = outbox_relay(&text, &job).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(running(&owner, "same").await, 0);
}
