//! A sink of one's own keeps the guarantees that need no transaction of the database: the program of `examples/own-sink`, and
//! sinks that are registered here.

mod kills;
mod lanes;
mod outcomes;
mod panics;
mod socket;
mod words;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use self::socket::Socket;
use crate::support::outside::json;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

/// The program of `examples/own-sink`, as it is now.
async fn program() -> &'static Path {
    static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
    BUILT.get_or_init(build).await
}

async fn build() -> PathBuf {
    let mut cargo = tokio::process::Command::new(env!("CARGO"));
    // As for a test of its own: a mere build selects other features of what both share, and compiles the library again.
    cargo.args(["test", "--no-run", "--test", "program", "--message-format=json-render-diagnostics"]);
    let built = cargo.stderr(std::process::Stdio::inherit()).output().await.unwrap();
    assert!(built.status.success(), "examples/own-sink is not built");
    let messages = String::from_utf8(built.stdout).unwrap();
    let mut executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        (message["target"]["name"] == "own-sink").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    executables.next().expect("the program")
}

/// A table, a receiver, and a configuration whose relay is named `own`.
struct Stage {
    database: Database,
    owner: Client,
    socket: Socket,
    toml: String,
}

impl Stage {
    /// `more` is added below `[[relay]]`.
    async fn of_bookings(more: &str) -> Self {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let stream = format!("start = \"beginning\"\n{more}\n[relay.source.stream]\ntable = \"public.bookings\"\n");
        Self::of(database, owner, &stream)
    }

    /// `relay` is what stands below `[[relay]]`.
    fn of(database: Database, owner: Client, relay: &str) -> Self {
        let socket = Socket::start();
        let relay = format!("[[relay]]\nname = \"own\"\n{relay}\n{}", socket.sink());
        let toml = toml(&database, "relay", None, &relay);
        Self { database, owner, socket, toml }
    }

    async fn replica(&self, name: &str) -> Process {
        Process::spawn_program(program().await, &self.toml, &["run", "--replica-id", name], &[])
    }

    /// Runs a command of the program to its end: exit code, standard output, standard error.
    async fn command(&self, args: &[&str]) -> (Option<i32>, String, String) {
        command(&self.toml, args).await
    }

    async fn json(&self, args: &[&str]) -> Value {
        let (_, out, log) = self.command(args).await;
        assert!(!out.is_empty(), "{args:?}: {log}");
        json(&out)
    }

    async fn insert(&self, rows: i32, payload: &str) {
        let sql = "INSERT INTO bookings (payload) SELECT $2 FROM generate_series(1, $1)";
        self.owner.execute(sql, &[&rows, &payload]).await.unwrap();
    }

    /// The replica that advanced the cursor last.
    async fn holder(&self) -> Option<String> {
        self.owner.query_opt("SELECT advanced_by FROM outbox.cursor", &[]).await.unwrap()?.get(0)
    }

    /// Where the cursor stands, and whether rows are in flight; 0 is before every row.
    async fn position(&self) -> (i64, bool) {
        let sql = "SELECT COALESCE(position_id::bigint, 0), token IS NOT NULL FROM outbox.cursor WHERE name = 'own'";
        self.owner.query_opt(sql, &[]).await.unwrap().map_or((0, false), |row| (row.get(0), row.get(1)))
    }

    /// Waits until the cursor stands at this row, with nothing in flight.
    async fn settled(&self, last: i64) {
        eventually(PATIENCE * 6, async || self.position().await == (last, false)).await;
    }
}

async fn command(toml: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut process = Process::spawn_program(program().await, toml, args, &[]);
    let code = process.wait().await;
    (code, process.out(), process.log())
}
