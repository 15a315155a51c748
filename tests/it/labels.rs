//! `where` of a stream over an enum whose labels change while a relay runs.

use tokio_postgres::Client;

use crate::support::outside::{halted, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

mod keys;
mod pending;

/// A table with a column of an enum, and a relay of its rows that are open. The schema of the type is closed to the relay's role.
async fn stage() -> (Database, Client, Process) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE SCHEMA hidden; CREATE TYPE hidden.state AS ENUM ('open', 'closed', 'it''s'); \
             ALTER TABLE bookings ADD state hidden.state",
        )
        .await
        .unwrap();
    let filter = "table = \"public.bookings\"\nwhere = { state = [\"open\", \"it's\"] }\n";
    let relay = stdout_relay("s", "").replace("table = \"public.bookings\"\n", filter);
    let process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    insert(&owner, &["'open'", "'closed'", "NULL", "'it''s'"]).await;
    eventually(PATIENCE * 2, async || printed(&process, "s") == ["1", "4"]).await;
    (database, owner, process)
}

async fn insert(owner: &Client, states: &[&str]) {
    for state in states {
        owner.batch_execute(&format!("INSERT INTO bookings (state) VALUES ({state})")).await.unwrap();
    }
}

/// At once: these are one transaction.
async fn rename(owner: &Client, labels: &str) {
    let each: Vec<_> =
        labels.split("; ").map(|label| format!("ALTER TYPE hidden.state RENAME VALUE {label}")).collect();
    owner.batch_execute(&each.join("; ")).await.unwrap();
}

/// A session keeps the constants of its prepared statements, and no rename of a label has it prepare them again: the rows that are
/// open now would be passed for good.
// Guarantee: filter.labels
#[tokio::test(flavor = "multi_thread")]
async fn rows_match_by_the_labels_that_their_enum_has_when_they_are_read() {
    let (_database, owner, process) = stage().await;
    rename(&owner, "'open' TO 'other'; 'closed' TO 'open'; 'other' TO 'closed'").await;
    insert(&owner, &["'closed'", "'open'", "NULL", "'open'"]).await;
    eventually(PATIENCE, async || printed(&process, "s") == ["1", "4", "6", "8"]).await;
}

// Guarantee: filter.labels
#[tokio::test(flavor = "multi_thread")]
async fn label_that_its_enum_has_no_more_halts_the_relay_until_it_is_back() {
    let (_database, owner, process) = stage().await;
    rename(&owner, "'open' TO 'fresh'").await;
    insert(&owner, &["'closed'", "'fresh'"]).await;
    let (_, error) = halted(&owner, "s").await;
    assert_eq!(error["code"], "column_unreadable", "{error}");
    for (key, part) in [("message", "\"open\""), ("hint", "relay.source.stream.where")] {
        assert!(error[key].as_str().unwrap().contains(part), "{error}");
    }
    assert_eq!(printed(&process, "s"), ["1", "4"]);
    rename(&owner, "'fresh' TO 'open'").await;
    eventually(PATIENCE * 2, async || printed(&process, "s") == ["1", "4", "6"]).await;
}
