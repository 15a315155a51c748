//! A row's JSON is PostgreSQL's own, byte for byte, whatever its types, and whatever the database's own settings are.

use rdkafka::message::Message;
use tokio_postgres::Client;

use super::random::Values;
use super::types::{self, COLUMNS, TYPES};
use super::{holds, replica, topic};
use crate::support::records::each;
use crate::support::{Database, broker, database};

mod changed;

/// What a relay's session sets, as far as it shows in values; written down here, so that the product cannot change its mind.
const SETTINGS: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; \
     SET extra_float_digits = 1; SET bytea_output = 'hex'; SET search_path = ''";

/// Of a relay of the table `public.odd`.
pub(super) enum Payload {
    Row,
    Columns(Vec<String>),
}

impl Payload {
    fn toml(&self) -> String {
        match self {
            Self::Row => "{ row = true }".to_owned(),
            Self::Columns(names) => format!("{{ columns = {} }}", serde_json::to_string(names).unwrap()),
        }
    }

    fn sql(&self) -> String {
        match self {
            Self::Row => "pg_catalog.row_to_json(t)::text".to_owned(),
            Self::Columns(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("t.{}", quoted(name))).collect();
                format!("(SELECT pg_catalog.row_to_json(x)::text FROM (SELECT {}) AS x)", names.join(", "))
            }
        }
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A relay of the table `public.odd`, named like its topic.
fn relay(topic: &str, payload: &Payload) -> String {
    format!(
        "[[relay]]\nname = \"{topic}\"\n[relay.source.stream]\ntable = \"public.odd\"\n[relay.sink.kafka]\n\
         topic = \"{topic}\"\nkey = \"id\"\npayload = {}\n",
        payload.toml()
    )
}

/// The payloads of a topic, in order.
async fn payloads(servers: &str, topic: &str) -> Vec<String> {
    each(servers, topic, |message| String::from_utf8(message.payload().unwrap().to_vec()).unwrap()).await
}

/// Relays the table `public.odd` once for each payload, and compares every record with what a session with the relay's
/// settings makes of the row.
pub(super) async fn compare(database: &Database, rows: i64, payloads: &[Payload]) {
    compare_as(database, rows, payloads, "relay").await;
}

/// The same, where another role asks PostgreSQL.
async fn compare_as(database: &Database, rows: i64, payloads: &[Payload], role: &str) {
    let (mut relays, mut topics) = (String::new(), Vec::new());
    for payload in payloads {
        let topic = topic("json", &[("max.message.bytes", "4000000")]).await;
        relays += &relay(&topic, payload);
        topics.push(topic);
    }
    let replica = replica(database, &relays).await;
    let witness = database.connect(role).await;
    witness.batch_execute(SETTINGS).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    for (payload, topic) in payloads.iter().zip(&topics) {
        holds(&servers, topic, rows).await;
        let came = each(&servers, topic, |message| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(message.key().unwrap()), text(message.payload().unwrap()))
        });
        let sql = format!("SELECT t.id::text, {} FROM public.odd AS t ORDER BY t.created_at, t.id", payload.sql());
        let made: Vec<(String, String)> =
            witness.query(&sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
        let came = came.await;
        for (came, made) in came.iter().zip(&made) {
            assert_eq!(came, made);
        }
        assert_eq!((came.len(), made.len()), (usize::try_from(rows).unwrap(), usize::try_from(rows).unwrap()));
    }
    drop(replica);
}

/// The database's own settings say the opposite of the relay's.
async fn contrary(owner: &Client, database: &Database) {
    for setting in [
        "\"TimeZone\" = 'Asia/Kathmandu'",
        "\"DateStyle\" = 'German, DMY'",
        "\"IntervalStyle\" = 'iso_8601'",
        "extra_float_digits = -5",
        "bytea_output = 'escape'",
    ] {
        owner.batch_execute(&format!("ALTER DATABASE {} SET {setting}", database.name)).await.unwrap();
    }
}

/// The table `public.odd` of these columns, and one that was dropped.
async fn table(owner: &Client, columns: &[(&str, &str)]) {
    let definitions: Vec<_> = columns.iter().map(|(name, of)| format!("{} {of}", quoted(name))).collect();
    owner
        .batch_execute(&format!(
            "CREATE TABLE public.odd (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, gone text DEFAULT 'gone', \
             created_at timestamptz NOT NULL DEFAULT clock_timestamp(), {}); \
             CREATE INDEX ON public.odd (created_at, id); ALTER TABLE public.odd DROP COLUMN gone; \
             GRANT SELECT ON public.odd TO relay",
            definitions.join(", ")
        ))
        .await
        .unwrap();
}

async fn insert(owner: &Client, columns: &[(&str, &str)], values: &[String]) {
    let names: Vec<_> = columns.iter().map(|(name, _)| quoted(name)).collect();
    let sql = format!("INSERT INTO public.odd ({}) VALUES ({})", names.join(", "), values.join(", "));
    owner.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{error:?}: {sql}"));
}

/// Rows of each column's values in turn, and one without any; how many.
async fn fill(owner: &Client, columns: &[(&str, &str)], of: &[&types::Column]) -> i64 {
    let rows = of.iter().map(|(_, _, values)| values.len()).max().unwrap();
    for row in 0..rows {
        let values: Vec<_> = of.iter().map(|(_, _, values)| values[row % values.len()].to_owned()).collect();
        insert(owner, columns, &values).await;
    }
    // Without a default: NULL, where the server does not make the value.
    insert(owner, columns, &vec!["DEFAULT".to_owned(); columns.len()]).await;
    i64::try_from(rows).unwrap() + 1
}

/// All columns, in another order than the table's.
fn backwards(columns: &[(&str, &str)]) -> Payload {
    let names = columns.iter().rev().map(|(name, _)| (*name).to_owned());
    Payload::Columns(names.chain(["created_at".to_owned(), "id".to_owned()]).collect())
}

// Guarantee: delivery.json
#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_a_row_of_every_type_is_postgresqls_own_byte_for_byte() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    contrary(&owner, &database).await;
    owner.batch_execute(TYPES).await.unwrap();
    let more = types::of_this_server(&owner).await;
    let all: Vec<_> = COLUMNS.iter().chain(&more).collect();
    let columns: Vec<(&str, &str)> = all.iter().map(|(name, of, _)| (*name, *of)).collect();
    table(&owner, &columns).await;
    let rows = fill(&owner, &columns, &all).await;
    println!("{} types, {rows} rows", columns.len());
    compare(&database, rows, &[Payload::Row, backwards(&columns)]).await;
}

// Guarantee: delivery.json
#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_rows_drawn_at_random_is_postgresqls_own_byte_for_byte() {
    const ROWS: usize = 400;
    let seed = std::env::var("OUTBOX_RELAY_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("OUTBOX_RELAY_SEED={seed}");
    let database = database().await;
    let owner = database.connect("postgres").await;
    contrary(&owner, &database).await;
    owner.batch_execute(TYPES).await.unwrap();
    let mut values = Values::new(seed);
    table(&owner, Values::COLUMNS).await;
    owner.batch_execute("BEGIN").await.unwrap();
    for _ in 0..ROWS {
        insert(&owner, Values::COLUMNS, &values.row()).await;
    }
    owner.batch_execute("COMMIT").await.unwrap();
    compare(&database, i64::try_from(ROWS).unwrap(), &[Payload::Row, backwards(Values::COLUMNS)]).await;
}

/// Types whose JSON the relay makes itself, by their names in the lists of columns.
const MADE_HERE: &[&str] = &[
    "bool",
    "int2",
    "int4",
    "int8",
    "numeric",
    "scaled",
    "text",
    "varchar",
    "char",
    "uuid",
    "date",
    "timestamp",
    "timestamptz",
    "timestamptz0",
    "json",
    "jsonb",
];

/// From then on nobody but a superuser has PostgreSQL make JSON of a row.
async fn forbid(owner: &Client) {
    owner
        .batch_execute(
            "REVOKE EXECUTE ON FUNCTION pg_catalog.row_to_json(record), pg_catalog.row_to_json(record, boolean) FROM PUBLIC",
        )
        .await
        .unwrap();
}

// Guarantee: delivery.json
#[tokio::test(flavor = "multi_thread")]
async fn the_json_that_the_relay_makes_itself_is_postgresqls_own_byte_for_byte() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    contrary(&owner, &database).await;
    forbid(&owner).await;
    let made: Vec<_> = COLUMNS.iter().filter(|(name, _, _)| MADE_HERE.contains(name)).collect();
    assert_eq!(made.len(), MADE_HERE.len(), "each is in the list");
    let names: Vec<_> = made.iter().enumerate().map(|(n, _)| odd_name(n)).collect();
    let columns: Vec<_> = made.iter().zip(&names).map(|((_, of, _), name)| (name.as_str(), *of)).collect();
    table(&owner, &columns).await;
    let rows = fill(&owner, &columns, &made).await;
    compare_as(&database, rows, &[Payload::Row, backwards(&columns)], "postgres").await;
}

/// A name that JSON thinks something of.
fn odd_name(number: usize) -> String {
    ["\"quoted\"", "back\\slash", "line\nfeed\t\u{1}", "Käfer 🦀", "{a:1}, ' b '"][number % 5].to_owned()
        + &number.to_string()
}

// Guarantee: delivery.json
#[tokio::test(flavor = "multi_thread")]
async fn the_json_that_the_relay_makes_of_rows_drawn_at_random_is_postgresqls_own_byte_for_byte() {
    const ROWS: usize = 2_000;
    let seed = std::env::var("OUTBOX_RELAY_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("OUTBOX_RELAY_SEED={seed}");
    let database = database().await;
    let owner = database.connect("postgres").await;
    forbid(&owner).await;
    let is_made = |(name, _): &&(&str, &str)| MADE_HERE.contains(name);
    let columns: Vec<_> = Values::COLUMNS.iter().filter(is_made).copied().collect();
    table(&owner, &columns).await;
    let mut values = Values::new(seed);
    owner.batch_execute("BEGIN").await.unwrap();
    for _ in 0..ROWS {
        let row = values.row();
        let row = Values::COLUMNS.iter().zip(row).filter(|(column, _)| is_made(column)).map(|(_, value)| value);
        insert(&owner, &columns, &row.collect::<Vec<_>>()).await;
    }
    owner.batch_execute("COMMIT").await.unwrap();
    compare_as(&database, i64::try_from(ROWS).unwrap(), &[Payload::Row, backwards(&columns)], "postgres").await;
}
