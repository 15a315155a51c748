//! Operator verbs while replicas run: what they show, what they do, what they refuse.

mod absent;
mod adopt;
mod ahead;
mod instants;
mod observe;
mod remove;
mod rename;
mod rights;
mod seek;
mod silence;
mod skip;
mod unfinished;
mod watch;
mod why;

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outbox_relay;

/// Runs a verb that must end with this code; gives standard output and standard error.
#[track_caller]
fn ends(code: i32, text: &str, args: &[&str]) -> impl Future<Output = (String, String)> {
    let caller = std::panic::Location::caller();
    let (text, args) = (text.to_owned(), args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
    async move {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (found, out, log) = outbox_relay(&text, &args).await;
        assert_eq!(found, Some(code), "{caller}: {args:?}\n{out}\n{log}");
        (out, log)
    }
}

/// The last operation of this verb: its detail.
async fn operation(owner: &Client, verb: &str) -> Option<Value> {
    let sql = "SELECT operator, detail::text FROM outbox.operation WHERE verb = $1 ORDER BY id DESC LIMIT 1";
    let row = owner.query_opt(sql, &[&verb]).await.unwrap()?;
    assert!(row.get::<_, String>(0).contains('/'), "the role, and who used it");
    Some(serde_json::from_str(row.get(1)).unwrap())
}

/// Inserts rows into `public.bookings`.
async fn insert(owner: &Client, rows: usize) {
    let sql = format!("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, {rows})");
    owner.batch_execute(&sql).await.unwrap();
}
