//! Many tables at rest are asked for together: what that costs, and that none of them is forgotten for another.

use tokio_postgres::Client;

use super::{RESTED, run};
use crate::support::outside::{halted, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

const TABLES: usize = 20;

struct Stage {
    database: Database,
    owner: Client,
    process: Process,
    relays: String,
}

impl Stage {
    /// One relay for each of twenty tables, all of which have relayed their first row and rest.
    async fn start(poll: &str) -> Self {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let mut relays = String::new();
        for n in 0..TABLES {
            let sql = format!(
                "CREATE TABLE t{n} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}); \
                 CREATE INDEX ON t{n} (created_at, id); GRANT SELECT ON t{n} TO relay; INSERT INTO t{n} DEFAULT VALUES"
            );
            run(&owner, &sql).await;
            relays.push_str(&stdout_relay(&format!("t{n}"), poll).replace("public.bookings", &format!("public.t{n}")));
        }
        let process = Process::spawn(&toml(&database, "relay", None, &relays), &["run"]);
        let stage = Self { database, owner, process, relays };
        for n in 0..TABLES {
            stage.has(n, 1).await;
        }
        tokio::time::sleep(RESTED).await;
        stage
    }

    async fn insert(&self, n: usize) {
        run(&self.owner, &format!("INSERT INTO t{n} DEFAULT VALUES")).await;
    }

    /// Waits until this many rows of a table have come, in order.
    async fn has(&self, n: usize, rows: usize) {
        let relay = format!("t{n}");
        eventually(PATIENCE, async || printed(&self.process, &relay).len() >= rows).await;
        let ids: Vec<String> = (1..=rows).map(|id| id.to_string()).collect();
        assert_eq!(printed(&self.process, &relay), ids, "{relay}");
    }

    async fn transactions(&self) -> i64 {
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
        self.owner.query_one(sql, &[]).await.unwrap().get(0)
    }
}

// Guarantee: delivery.idle-shared-poll
#[tokio::test]
async fn twenty_tables_that_rest_are_asked_for_by_one_statement_and_each_row_is_still_found() {
    const SECONDS: i64 = 10;
    let stage = Stage::start("[relay.poll]\nmax = \"50ms\"\n").await;
    // Each statement outside a transaction is one of its own.
    let before = stage.transactions().await;
    tokio::time::sleep(std::time::Duration::from_secs(SECONDS.unsigned_abs())).await;
    let per_second = (stage.transactions().await - before) / SECONDS;
    // Each on its own they would ask four hundred times a second.
    assert!(per_second < 200, "{per_second} statements a second");
    assert!(per_second > 0, "nobody looks");
    for n in 0..TABLES {
        stage.insert(n).await;
        stage.has(n, 2).await;
    }
    // And while one of them is written to all the time.
    for rows in 3..20 {
        stage.insert(0).await;
        let n = 1 + rows % (TABLES - 1);
        stage.insert(n).await;
        stage.has(n, 3).await;
    }
    stage.has(0, 19).await;
}

// Guarantee: delivery.idle-blocked-table
#[tokio::test]
async fn a_table_that_is_locked_forbidden_or_dropped_among_those_that_rest_blinds_no_other() {
    let stage = Stage::start("").await;
    let locker = stage.database.connect("postgres").await;
    run(&locker, "BEGIN; LOCK TABLE t1 IN ACCESS EXCLUSIVE MODE; INSERT INTO t1 DEFAULT VALUES").await;
    tokio::time::sleep(RESTED).await;
    stage.insert(2).await;
    stage.has(2, 2).await;
    run(&locker, "COMMIT").await;
    stage.has(1, 2).await;

    run(&stage.owner, "REVOKE SELECT ON t3 FROM relay; INSERT INTO t3 DEFAULT VALUES").await;
    tokio::time::sleep(RESTED).await;
    stage.insert(4).await;
    stage.has(4, 2).await;
    run(&stage.owner, "GRANT SELECT ON t3 TO relay").await;
    // A relay whose table may not be read is checked again every five seconds.
    eventually(PATIENCE * 2, async || printed(&stage.process, "t3").len() == 2).await;

    run(&stage.owner, "DROP TABLE t5").await;
    stage.insert(6).await;
    stage.has(6, 2).await;
    // A check in the middle of the DROP may find a table without its indexes; the next one, after five seconds, none.
    eventually(PATIENCE * 2, async || halted(&stage.owner, "t5").await.1["code"] == "table_missing").await;
    // The others rest again, without it.
    tokio::time::sleep(RESTED).await;
    for n in [7, 8] {
        stage.insert(n).await;
        stage.has(n, 2).await;
    }
}

// Guarantee: delivery.idle-shared-poll
#[tokio::test]
async fn operators_reach_one_of_many_relays_that_rest() {
    let stage = Stage::start("").await;
    let owners = toml(&stage.database, "postgres", None, &stage.relays);
    let verb = async |args: &[&str]| {
        let (code, out, err) = outbox_relay(&owners, args).await;
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    };
    verb(&["cursor", "pause", "t7"]).await;
    tokio::time::sleep(RESTED).await;
    stage.insert(7).await;
    stage.insert(8).await;
    stage.has(8, 2).await;
    tokio::time::sleep(RESTED).await;
    assert_eq!(printed(&stage.process, "t7"), ["1"]);
    verb(&["cursor", "resume", "t7"]).await;
    stage.has(7, 2).await;
    tokio::time::sleep(RESTED).await;
    verb(&["cursor", "seek", "t7", "--beginning", "--yes"]).await;
    eventually(PATIENCE, async || printed(&stage.process, "t7") == ["1", "2", "1", "2"]).await;
    stage.has(9, 1).await;
}
