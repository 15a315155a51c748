//! A cursor goes on only with what it belongs to: the same table, the same rule, a clock that has not stepped back, the
//! same sink. Everything else halts with the choice explained.

mod away;
mod deleted;
mod order;
mod refused;
mod relation;
mod standing;
mod subscribed;

use outbox_relay::position::Timestamp;
use tokio_postgres::Client;

use crate::support::{Database, PATIENCE, Process, eventually, outbox_relay, toml};

/// A relay `r` of this source to standard output.
fn stdout_relay(stream: &str) -> String {
    format!("[[relay]]\nname = \"r\"\n[relay.source.stream]\n{stream}\n[relay.sink.stdout]\n")
}

const BOOKINGS: &str = "table = \"public.bookings\"";

/// Starts a relay of `public.bookings` to standard output.
fn start(database: &Database, role: &str) -> Process {
    Process::spawn(&toml(database, role, None, &stdout_relay(BOOKINGS)), &["run"])
}

/// The ids that a relay has printed, in order.
fn printed(process: &Process) -> Vec<String> {
    let out = process.out();
    let whole = out.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    whole.lines().map(id).collect()
}

/// Waits until exactly these ids are printed.
#[track_caller]
fn prints<T: ToString>(process: &Process, ids: &[T]) -> impl Future<Output = ()> {
    let expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let come = eventually(PATIENCE * 2, {
        let expected = expected.clone();
        move || std::future::ready(printed(process).len() >= expected.len())
    });
    async move {
        come.await;
        assert_eq!(printed(process), expected);
    }
}

/// Waits until the cursor `r` stands at this id.
async fn advanced(owner: &Client, id: &str) {
    let sql = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE name = 'r' AND position_id = $1)";
    eventually(PATIENCE, || async { owner.query_one(sql, &[&id]).await.unwrap().get(0) }).await;
}

/// Waits for a halt of the cursor `r` with this code; gives message and hint.
async fn halted(owner: &Client, code: &str) -> (String, String) {
    let sql = "SELECT last_error ->> 'message', last_error ->> 'hint' FROM outbox.cursor_status \
               WHERE cursor = 'r' AND halted AND last_error ->> 'code' = $1";
    eventually(PATIENCE, || async { owner.query_opt(sql, &[&code]).await.unwrap().is_some() }).await;
    let row = owner.query_one(sql, &[&code]).await.unwrap();
    (row.get(0), row.get(1))
}

/// What an operator does to end a halt.
async fn resume(owner: &mut Client) {
    outbox_relay::cursor::control::resume(owner, "r", "test").await.unwrap();
}

/// What an operator does to let the cursor go on with what there is now: a relay of this source finds it.
async fn adopt(database: &Database, role: &str, stream: &str) {
    let text = toml(database, role, None, &stdout_relay(stream));
    let (code, out, log) = outbox_relay(&text, &["cursor", "adopt", "r", "--yes", "--timeout", "20s"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.ends_with("r: adopted\n"), "{out}");
}

/// The server's clock.
async fn clock(owner: &Client) -> Timestamp {
    owner.query_one("SELECT clock_timestamp()", &[]).await.unwrap().get(0)
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}
