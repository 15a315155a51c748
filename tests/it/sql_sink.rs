//! The SQL sink: what its statement changes and the advance over its rows are one transaction, so a read model in the
//! database changes exactly once for each row. All as the role that the product has, with the grants that it needs.

mod leak;
mod page;
mod poison;
mod policies;
mod refused;
mod retry;
mod types;

use outbox_testkit::bookings::{self, Load, Table, Writers};
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::{Database, PATIENCE, Process, database, eventually, toml};

/// What the read model must be: made from the rows themselves.
const DIRECT: &str = "SELECT customer, count(*), sum(length(payload))::bigint, \
     (array_agg(id ORDER BY created_at DESC, id DESC))[1] FROM public.bookings GROUP BY customer";

const BY_ROW: &str = "INSERT INTO app.customers AS c VALUES ($1, 1, length($2), $3) ON CONFLICT (customer) DO UPDATE \
     SET bookings = c.bookings + 1, bytes = c.bytes + excluded.bytes, last_id = excluded.last_id";

const BY_BATCH: &str = "INSERT INTO app.customers AS c \
     SELECT u.customer, count(*), sum(length(u.payload)), (array_agg(u.id ORDER BY u.n DESC))[1] \
     FROM unnest($1, $2, $3) WITH ORDINALITY AS u (customer, payload, id, n) GROUP BY u.customer \
     ON CONFLICT (customer) DO UPDATE \
     SET bookings = c.bookings + excluded.bookings, bytes = c.bytes + excluded.bytes, last_id = excluded.last_id";

/// A relay of `public.bookings` into this database; `more` is added below `[[relay]]`, `keys` below the sink.
fn relay(name: &str, more: &str, statement: &str, parameters: &str, keys: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\n{more}\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.sql]\n\
         statement = '''{statement}'''\nparameters = [{parameters}]\n{keys}\n"
    )
}

/// The read model `app.customers`.
async fn customers(owner: &Client) {
    owner
        .batch_execute(
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO relay; \
             CREATE TABLE app.customers (customer text PRIMARY KEY, bookings bigint NOT NULL, bytes bigint NOT NULL, \
             last_id bigint NOT NULL); GRANT SELECT, INSERT, UPDATE ON app.customers TO relay",
        )
        .await
        .unwrap();
}

/// How many rows have been counted in a read model.
async fn counted(owner: &Client, model: &str) -> i64 {
    let sql = format!("SELECT COALESCE(sum(bookings), 0)::bigint FROM {model}");
    owner.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Rows of a read model that the direct aggregate has not, or has otherwise, and the other way round.
async fn differences(owner: &Client, model: &str, direct: &str) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM ((TABLE {model} EXCEPT ALL {direct}) UNION ALL ({direct} EXCEPT ALL TABLE {model})) AS d"
    );
    owner.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Replicas under load, of which some are killed at any moment of a turn.
struct Fleet {
    database: Database,
    owner: Client,
    toml: String,
    replicas: Vec<Process>,
    writers: Writers,
    /// How many rows there were before the writers came.
    history: usize,
    random: fastrand::Rng,
}

impl Fleet {
    async fn start(database: Database, owner: Client, toml: String, replicas: usize, rate: f64) -> Self {
        let seed = std::env::var("OUTBOX_RELAY_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
        println!("OUTBOX_RELAY_SEED={seed}");
        let replicas = (0..replicas).map(|n| Self::replica(&toml, n)).collect();
        let history = bookings::committed(&owner).await.unwrap().len();
        let load = Load { writers: 6, rows_per_second: Some(rate), payload: 50..=500, seed, ..Load::default() };
        let writers = Writers::start(&database.url("app"), load).await.unwrap();
        Self { database, owner, toml, replicas, writers, history, random: fastrand::Rng::with_seed(seed) }
    }

    fn replica(toml: &str, n: usize) -> Process {
        Process::spawn(toml, &["run", "--replica-id", &format!("r{n}")])
    }

    /// Kills one, as soon as the read model has grown since the last time.
    async fn kill(&mut self, model: &str) {
        let before = counted(&self.owner, model).await;
        eventually(PATIENCE * 4, async || counted(&self.owner, model).await > before).await;
        let n = self.random.usize(..self.replicas.len());
        self.replicas[n].signal(Signal::KILL);
        assert_eq!(self.replicas[n].wait().await, None, "{}", self.replicas[n].log());
        self.replicas[n] = Self::replica(&self.toml, n);
    }

    /// Ends the load, and waits until the read model has as many rows as were committed.
    async fn settle(self, model: &str) -> (Database, Client, i64) {
        let written = self.writers.stop().await.unwrap();
        let committed = bookings::committed(&self.owner).await.unwrap();
        assert_eq!((written.unknown, committed.len()), (0, self.history + written.rows as usize));
        let rows = i64::try_from(committed.len()).unwrap();
        eventually(PATIENCE * 4, async || counted(&self.owner, model).await >= rows).await;
        (self.database, self.owner, rows)
    }
}

async fn equals_the_aggregate_after_kills(statement: &str, each: &str) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    customers(&owner).await;
    let relays = relay("customers", "", statement, r#""customer", "payload", "id""#, &format!("each = \"{each}\""));
    let text = toml(&database, "relay", None, &relays);
    let mut fleet = Fleet::start(database, owner, text, 3, 600.0).await;
    for _ in 0..24 {
        fleet.kill("app.customers").await;
    }
    let (_database, owner, rows) = fleet.settle("app.customers").await;
    println!("{rows} rows by {each}, 24 kills");
    assert_eq!(differences(&owner, "app.customers", DIRECT).await, 0);
    let letters = "SELECT count(*) FROM outbox.dead_letter";
    assert_eq!(owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0), 0);
}

// Guarantee: read-models.exactly-once
#[tokio::test(flavor = "multi_thread")]
async fn a_read_model_changes_exactly_once_for_each_row_whoever_is_killed() {
    equals_the_aggregate_after_kills(BY_ROW, "row").await;
}

// Guarantee: read-models.exactly-once
#[tokio::test(flavor = "multi_thread")]
async fn a_read_model_changes_exactly_once_for_each_batch_whoever_is_killed() {
    equals_the_aggregate_after_kills(BY_BATCH, "batch").await;
}
