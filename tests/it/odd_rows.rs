//! Rows that are larger, emptier or wider than most, and values of every type: each arrives as what it is, in order with its
//! neighbours, or is poison. None is an outage.

mod copies;
mod empty;
mod json;
mod large;
mod max_row;
mod memory;
mod random;
mod slow;
mod types;
mod wide;

use tokio_postgres::Client;

use crate::support::records::count;
use crate::support::{Database, PATIENCE, Process, broker, eventually, toml, unique};

/// For large rows, of which one takes seconds on a busy machine: to send it, or to put it aside.
const PATIENT: &str = "[relay.turn]\ndeadline = \"30s\"\nmax_row_bytes = \"128MiB\"\n";

/// A new topic of one partition.
async fn topic(prefix: &str, settings: &[(&str, &str)]) -> String {
    let topic = unique(prefix);
    broker().await.create_topic(&topic, 1, settings).await.unwrap();
    topic
}

/// A replica as a process of its own, by the least-privilege role.
async fn replica(database: &Database, relays: &str) -> Process {
    Process::spawn(&toml(database, "relay", Some(&broker().await.bootstrap_servers()), relays), &["run"])
}

/// Waits until a topic holds at least so many records.
async fn holds(servers: &str, topic: &str, records: i64) {
    eventually(PATIENCE * 12, || async { count(servers, topic).await.is_some_and(|found| found >= records) }).await;
}

/// The most memory that a process has had, in MiB.
pub fn peak(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Rows of the table `public.bookings`, each with these many bytes of payload, in the order of their ids.
async fn fill(owner: &Client, bytes: &str, rows: i32) {
    // Lines of 64 bytes that name their row: nothing of a row can be mistaken for another's.
    // PostgreSQL's own compression takes more time than all that the relay does.
    let sql = format!(
        "ALTER TABLE bookings ALTER payload SET COMPRESSION lz4; INSERT INTO bookings (payload) SELECT repeat(lpad(n::text, 63, '.') || chr(10), ({bytes}) / 64) \
         FROM generate_series(1, {rows}) AS n"
    );
    owner.batch_execute(&sql).await.unwrap();
}

/// Whether a payload is what [`fill`] gave the row.
fn is_of(payload: &[u8], id: &str, bytes: usize) -> bool {
    let line = format!("{id:.>63}\n");
    payload.len() == bytes && payload.chunks(64).all(|found| found == line.as_bytes())
}
