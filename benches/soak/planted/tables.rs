//! Tables, relays and topics of the scene: one under a storm, one whose relay waits for no transaction, one in two shards.
//!
//! `horizon = "window"` is the switch by which the product gives its proof up, so that all that the proof closes is open again: a
//! transaction that commits after later rows were passed loses its rows for real.

use std::time::Duration;

use outbox_relay::source::shard::Shard;
use outbox_testkit::postgres::connect;
use tokio_postgres::Client;
use tokio_util::task::AbortOnDropHandle;

use crate::soak::draw::Draw;
use crate::soak::replicas;
use crate::soak::stage::Access;

/// The relay of the table under a storm, with the rule that fits it.
pub const STORM: &str = replicas::RELAY;
/// The relay that waits for no transaction.
pub const HASTY: &str = "hasty";
/// The relay in two shards.
pub const SHARDED: &str = "sharded";
/// All of them.
pub const RELAYS: [&str; 3] = [STORM, HASTY, SHARDED];

/// How often each table beside the storm's gets a row.
const EVERY: Duration = Duration::from_millis(50);

/// Tables beside the storm's, and what sends a `created_at` of its own into that.
pub const MAKE: &str = "\
CREATE TABLE public.hasty (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL, payload text NOT NULL DEFAULT 'p');
CREATE INDEX ON public.hasty (created_at, id);
CREATE TABLE public.sharded (LIKE public.hasty INCLUDING ALL);
GRANT SELECT, INSERT ON public.hasty, public.sharded TO app;
CREATE VIEW public.front AS SELECT created_at, customer, region, phone, payload FROM public.bookings;
CREATE FUNCTION public.book(at timestamptz, who text) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS
    $$ INSERT INTO bookings (created_at, customer, region, phone, payload) VALUES (at, who, 'north', '+1', 'p') $$;
CREATE FUNCTION public.book_hasty(who text) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public AS
    $$ INSERT INTO hasty (customer) VALUES (who) $$;
CREATE FUNCTION public.back_date() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN UPDATE public.bookings SET created_at = NEW.payload::timestamptz WHERE id = NEW.id; RETURN NULL; END $$;
CREATE TRIGGER back_date AFTER INSERT ON public.bookings FOR EACH ROW WHEN (NEW.region = 'back')
    EXECUTE FUNCTION public.back_date();
CREATE TABLE public.intake (at timestamptz, who text);
CREATE RULE book AS ON INSERT TO public.intake DO INSTEAD
    INSERT INTO public.bookings (created_at, customer, region, phone, payload) VALUES (NEW.at, NEW.who, 'north', '+1', 'p');";

/// The stamp trigger of the table in shards, which `session_replication_role` skips; it needs the schema `outbox`.
pub const STAMP: &str = "CREATE TRIGGER zz_stamp_created_at BEFORE INSERT OR UPDATE OF created_at ON public.sharded \
                         FOR EACH ROW EXECUTE FUNCTION outbox.stamp_created_at()";

/// The topic of a relay.
pub fn topic(access: &Access, relay: &str) -> String {
    format!("{}_{relay}", access.database)
}

/// The table of a relay.
pub fn table(relay: &str) -> &str {
    if relay == STORM { "bookings" } else { relay }
}

/// The text of the configuration.
pub fn config(draw: &Draw, postgres: &str, access: &Access, broker: &str) -> String {
    let storm = replicas::config(draw, postgres, broker, &topic(access, STORM));
    let storm = storm.replacen("start = \"beginning\"\n", "start = \"beginning\"\non_poison = \"dead_letter\"\n", 1);
    let beside = |relay: &str, lines: &str, source: &str| {
        format!(
            "[[relay]]\nname = \"{relay}\"\nstart = \"beginning\"\n{lines}[relay.source.stream]\ntable = \"public.{relay}\"\n{source}\
             [relay.sink.kafka]\ntopic = \"{}\"\nkey = \"customer\"\npayload = {{ column = \"payload\" }}\n",
            topic(access, relay)
        )
    };
    // Longer than a commit takes: only transactions that are held open on purpose are to be passed.
    let hasty = beside(HASTY, "latency_window = \"200ms\"\n", "horizon = \"window\"\n");
    format!("{storm}{hasty}{}", beside(SHARDED, "shards = 2\n", ""))
}

/// A key of each of the two shards.
pub async fn keys(owner: &Client) -> anyhow::Result<[String; 2]> {
    let of = Shard { key: "customer".into(), of: 2, number: 0 }.expression("t.");
    let sql = format!(
        "SELECT min(customer) FROM (SELECT 'k' || n AS customer FROM generate_series(1, 50) AS n) AS t GROUP BY {of} ORDER BY {of}"
    );
    let keys: Vec<String> = owner.query(&sql, &[]).await?.iter().map(|row| row.get(0)).collect();
    keys.try_into().map_err(|keys| anyhow::anyhow!("two shards have the keys {keys:?}"))
}

/// Commits single rows to a table until it is dropped.
pub fn trickle(access: &Access, table: &str) -> AbortOnDropHandle<()> {
    let url = access.url("app");
    let sql = format!("INSERT INTO public.{table} (customer) VALUES ($1)");
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut number = 0;
        loop {
            if let Ok(client) = connect(&url).await {
                while client.execute(&sql, &[&format!("c{}", number % 20)]).await.is_ok() {
                    number += 1;
                    tokio::time::sleep(EVERY).await;
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }))
}
