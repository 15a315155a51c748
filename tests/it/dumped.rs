//! A table, or all of a database, that the real `pg_dump` and `pg_restore` have brought back: nothing is lost, nothing comes again,
//! and no row is taken for late because of the transaction numbers that it carries.

use std::path::Path;

use outbox_testkit::postgres::{Options, Postgres, binaries, password, without_password};
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::outside::stdout_relay;
use crate::support::servers::prepare;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

const SWEPT: &str = "ALTER TABLE public.bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                     CREATE INDEX bookings_txid ON public.bookings (txid, created_at, id)";

/// Runs one of PostgreSQL's programs as the superuser of a database.
fn runs(program: &str, database: &Database, args: &[&str]) {
    // Behind links, there may be links to some programs only.
    let initdb = std::fs::canonicalize(binaries().unwrap().join("initdb")).unwrap();
    let mut command = std::process::Command::new(initdb.with_file_name(program));
    let output = command
        .args(["-d", &without_password(&database.url("postgres"))])
        .args(args)
        .env("PGPASSWORD", password("postgres"));
    let output = output.output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

fn printing(database: &Database) -> Process {
    Process::spawn(&toml(database, "relay", None, &stdout_relay("late", "")), &["run"])
}

/// The ids that it has printed, with a star behind those that are marked late.
fn marked(process: &Process) -> Vec<String> {
    let out = process.out();
    let rows = out.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let id = |row: &serde_json::Value| row["id"].as_str().unwrap().to_owned();
    rows.map(|row| if row["late"] == true { format!("{}*", id(&row)) } else { id(&row) }).collect()
}

async fn prints(process: &Process, ids: &[&str]) {
    eventually(PATIENCE * 2, async || marked(process).len() >= ids.len()).await;
    assert_eq!(marked(process), ids, "{}", process.log());
}

async fn end(mut process: Process) {
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
}

async fn insert(owner: &Client, rows: u32, minutes: i32) {
    let sql = format!(
        "INSERT INTO bookings (created_at) SELECT clock_timestamp() - make_interval(mins => {minutes}) FROM generate_series(1, {rows})"
    );
    owner.batch_execute(&sql).await.unwrap();
}

/// Rows 1 to 20, each of its own transaction, were printed, 11 to 20 as late ones; 21 to 23 wait; the relay is stopped.
async fn stage() -> (Database, Client) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(SWEPT).await.unwrap();
    let process = printing(&database);
    let expected: Vec<String> = (1..=20).map(|n| if n <= 10 { n.to_string() } else { format!("{n}*") }).collect();
    for n in 1..=20 {
        insert(&owner, 1, if n <= 10 { 0 } else { 60 }).await;
        eventually(PATIENCE * 2, async || marked(&process).len() == n).await;
    }
    assert_eq!(marked(&process), expected);
    end(process).await;
    insert(&owner, 3, 0).await;
    (database, owner)
}

/// The relay halts on what was restored; adopted, it goes on after its position, and finds what comes late from then on.
async fn goes_on(database: &Database, code: &str) {
    let owner = database.connect("postgres").await;
    let process = printing(database);
    let halted = "SELECT last_error ->> 'code' FROM outbox.cursor_status WHERE cursor = 'late' AND halted";
    let found = async || owner.query_opt(halted, &[]).await.unwrap().and_then(|row| row.get::<_, Option<String>>(0));
    eventually(PATIENCE * 2, async || found().await.is_some()).await;
    assert_eq!(found().await.as_deref(), Some(code));
    assert_eq!(marked(&process), [""; 0]);
    let text = toml(database, "relay", None, &stdout_relay("late", ""));
    let (ended, out, log) = outbox_relay(&text, &["cursor", "adopt", "late", "--yes", "--timeout", "20s"]).await;
    assert_eq!(ended, Some(0), "{out}{log}");
    prints(&process, &["21", "22", "23"]).await;
    // Late rows of this server's own transactions, before and after its counter passes the numbers that came with the rows.
    insert(&owner, 1, 30).await;
    prints(&process, &["21", "22", "23", "24*"]).await;
    owner.batch_execute("SET synchronous_commit TO off").await.unwrap();
    let last: String = owner.query_one("SELECT max(txid::text::bigint)::text FROM bookings", &[]).await.unwrap().get(0);
    let passed = "SELECT pg_snapshot_xmax(pg_current_snapshot()) > $1::text::xid8";
    while !owner.query_one(passed, &[&last]).await.unwrap().get::<_, bool>(0) {
        let take =
            "DO $$ BEGIN FOR n IN 1..2000 LOOP PERFORM pg_catalog.pg_current_xact_id(); COMMIT; END LOOP; END $$";
        owner.batch_execute(take).await.unwrap();
    }
    insert(&owner, 1, 30).await;
    insert(&owner, 1, 0).await;
    eventually(PATIENCE * 2, async || marked(&process).len() >= 6).await;
    let mut rest = marked(&process).split_off(4);
    rest.sort();
    assert_eq!(rest, ["25*", "26"], "{}", process.log());
    let late: i64 =
        owner.query_one("SELECT count(*) FROM outbox.dead_letter WHERE error ? 'late'", &[]).await.unwrap().get(0);
    assert_eq!(late, 12, "10 before the dump, 2 after it");
    end(process).await;
}

fn archive(dir: &Path) -> String {
    dir.join("dump").display().to_string()
}

// Guarantee: late.dumped
#[tokio::test(flavor = "multi_thread")]
async fn table_that_is_restored_in_its_place_is_read_on_after_the_position() {
    let (database, _owner) = stage().await;
    let dir = tempfile::tempdir().unwrap();
    let file = archive(dir.path());
    runs("pg_dump", &database, &["-Fc", "-t", "public.bookings", "-f", &file]);
    runs("pg_restore", &database, &["--clean", &file]);
    goes_on(&database, "relation_replaced").await;
}

// Guarantee: late.dumped
#[tokio::test(flavor = "multi_thread")]
async fn database_that_is_restored_into_another_of_the_same_server_is_read_on_after_the_position() {
    let (database, owner) = stage().await;
    let dir = tempfile::tempdir().unwrap();
    let file = archive(dir.path());
    runs("pg_dump", &database, &["-Fc", "-f", &file]);
    let name = format!("{}_restored", database.name);
    owner.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0")).await.unwrap();
    let restored = Database { name, postgres: database.postgres };
    runs("pg_restore", &restored, &[&file]);
    goes_on(&restored, "relation_replaced").await;
}

// Guarantee: late.dumped
#[tokio::test(flavor = "multi_thread")]
async fn database_that_is_restored_on_another_server_is_read_on_after_the_position() {
    let (database, _owner) = stage().await;
    let dir = tempfile::tempdir().unwrap();
    let file = archive(dir.path());
    runs("pg_dump", &database, &["-Fc", "-f", &file]);
    // Its counter is far behind: the restored rows, and the restored snapshot of the cursor, carry numbers that it has not given yet.
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    owner.batch_execute("CREATE DATABASE restored TEMPLATE template0").await.unwrap();
    let restored = Database { name: "restored".to_owned(), postgres: Box::leak(Box::new(postgres)) };
    runs("pg_restore", &restored, &[&file]);
    goes_on(&restored, "identity_changed").await;
}
