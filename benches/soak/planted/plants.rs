//! How a row is lost, for each kind.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use outbox_relay::position::Timestamp;
use outbox_testkit::postgres::connect;
use outbox_testkit::wait::until;
use tokio_postgres::Client;

use super::Scene;
use super::held;
use super::tables::{HASTY, SHARDED, STORM, table};
use super::topics::Topics;
use crate::soak::kinds::Plant;

const PATIENCE: Duration = Duration::from_secs(60);
/// How young the rows are that a copy of the topic lacks.
const YOUNG: Duration = Duration::from_secs(60);
/// The longest time that a row is dated back below the position, in seconds.
const BACK: f64 = 2.0;
/// An instant that was passed, and another for each row.
const AT: &str = "$1::text::timestamptz + n * interval '1 us'";
const EACH: &str = "generate_series(1, $3::int) AS n";

const BEHIND: &str = "SELECT EXISTS (SELECT FROM outbox.cursor AS c JOIN public.bookings AS b \
     ON (b.created_at, b.id) > (c.position_created_at, c.position_id::bigint) WHERE c.name = $1)";
const MOVE: &str = "UPDATE outbox.cursor SET (position_created_at, position_id) = \
     (SELECT created_at, id::text FROM public.bookings WHERE id = $2::text::bigint) WHERE name = $1";
/// As a turn leaves it that is interrupted after these rows.
const PROGRESS: &str = "INSERT INTO outbox.turn_progress (cursor, base, position_created_at, position_id, rows, observed_at, snapshot, \
     relations, partitions, rule, open_since, written_by) \
     SELECT c.name, c.xmin::text || ' ' || (extract(epoch FROM c.updated_at) * 1000000)::bigint, b.created_at, b.id::text, 1, \
     c.observed_at, pg_current_snapshot(), c.relations, c.partitions, c.rule, c.open_since, 'planted' \
     FROM outbox.cursor AS c CROSS JOIN public.bookings AS b WHERE c.name = $1 AND b.id = $2::text::bigint \
     ON CONFLICT (cursor) DO UPDATE SET base = excluded.base, position_created_at = excluded.position_created_at, \
     position_id = excluded.position_id, rows = excluded.rows, observed_at = excluded.observed_at, snapshot = excluded.snapshot, \
     relations = excluded.relations, partitions = excluded.partitions, rule = excluded.rule, open_since = excluded.open_since, \
     written_at = clock_timestamp(), written_by = excluded.written_by";

/// Rows that are lost.
#[derive(Clone, Debug)]
pub struct Loss {
    /// How they were lost.
    pub kind: Plant,
    /// Whose they are.
    pub relay: &'static str,
    /// Their ids.
    pub ids: Vec<String>,
    /// Since when, by the database's clock, in seconds since 1970.
    pub at: f64,
    /// The copy of the topic that lacks them; none when the topic itself does.
    pub copy: Option<Copied>,
}

/// A copy of the storm's topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its name.
    pub topic: String,
    /// It has the rows before this instant (RFC 3339).
    pub until: String,
}

/// Who plants.
#[derive(Debug)]
pub struct Planter<'a> {
    scene: &'a Scene,
    topics: &'a Topics,
    random: Rng,
    number: usize,
}

impl<'a> Planter<'a> {
    /// Has planted nothing.
    pub fn new(scene: &'a Scene, topics: &'a Topics, random: Rng) -> Self {
        Self { scene, topics, random, number: 0 }
    }

    /// Plants a loss; none when its rows have been delivered all the same.
    pub async fn plant(&mut self, kind: Plant) -> anyhow::Result<Option<Loss>> {
        self.number += 1;
        let (who, rows) = (format!("planted-{}-{}", self.scene.draw.seed, self.number), self.random.usize(1..=3));
        let owner = self.scene.access.owner().await?;
        let mut copy = None;
        let (relay, ids) = match kind {
            Plant::TopicCopy => {
                let (ids, copied) = self.copy(&owner, rows).await?;
                copy = Some(copied);
                (STORM, ids)
            }
            Plant::CursorMoved | Plant::ProgressTouched => (STORM, self.pass(kind, &who, rows).await?),
            Plant::LetterDeleted => (STORM, vec![self.delete_letter(&owner, &who).await?]),
            Plant::SlicesDeleted | Plant::ValueSent | Plant::View | Plant::Definer | Plant::Trigger | Plant::Rule => {
                self.date_back(&owner, kind, STORM, (who.as_str(), rows)).await?;
                (STORM, ids(&owner, STORM, &who).await?)
            }
            Plant::ReplicaRole => {
                self.date_back(&owner, kind, SHARDED, (who.as_str(), rows)).await?;
                (SHARDED, ids(&owner, SHARDED, &who).await?)
            }
            Plant::LongTransaction
            | Plant::Savepoint
            | Plant::Prepared
            | Plant::Message
            | Plant::Copy
            | Plant::OwnRole => {
                held::commit(&self.scene.access, kind, self.scene.draw.role(), (who.as_str(), rows)).await?;
                (HASTY, ids(&owner, HASTY, &who).await?)
            }
            Plant::ShardKey => match self.update_key(&owner).await? {
                Some(id) => (SHARDED, vec![id]),
                None => return Ok(None),
            },
        };
        let at = owner.query_one("SELECT extract(epoch FROM clock_timestamp())::float8", &[]).await?.get(0);
        Ok(Some(Loss { kind, relay, ids, at, copy }))
    }

    /// A copy of the topic without some rows that have been delivered.
    async fn copy(&mut self, owner: &Client, rows: usize) -> anyhow::Result<(Vec<String>, Copied)> {
        let position = "SELECT to_char(position_created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') \
                        FROM outbox.cursor WHERE name = $1";
        // Rows before the position have been acknowledged, so a copy that begins now has all of them.
        let position: String = owner.query_one(position, &[&STORM]).await?.get(0);
        let until = Timestamp::parse_rfc3339(&position)?;
        self.topics.catch_up().await?;
        let mut ids = self.topics.between(until.minus(YOUNG), until);
        ensure!(ids.len() > rows, "the topic has only {} rows of the last {YOUNG:?}", ids.len());
        self.random.shuffle(&mut ids);
        ids.truncate(rows);
        let topic = format!("{}_copy_{}", self.scene.access.database, self.number);
        self.topics.copy(&topic, &ids).await?;
        Ok((ids, Copied { topic, until: position }))
    }

    /// Has the cursor pass rows as it would if it had sent them. Without writers it is known which rows these are.
    async fn pass(&self, kind: Plant, who: &str, rows: usize) -> anyhow::Result<Vec<String>> {
        let mut client = self.scene.access.owner().await?;
        let transaction = client.transaction().await?;
        transaction
            .batch_execute("SET LOCAL lock_timeout = '30s'; LOCK TABLE public.bookings IN SHARE MODE")
            .await
            .context("the writers do not end")?;
        until(PATIENCE, "the storm's relay has passed all rows", async || {
            Ok(!transaction.query_one(BEHIND, &[&STORM]).await?.get::<_, bool>(0))
        })
        .await?;
        transaction.execute("SELECT FROM outbox.cursor WHERE name = $1 FOR UPDATE", &[&STORM]).await?;
        let insert = "INSERT INTO public.bookings (customer, region, phone, payload) \
                      SELECT $1::text, 'north', '+1', 'p' FROM generate_series(1, $2::int) RETURNING id::text";
        let rows = transaction.query(insert, &[&who, &i32::try_from(rows)?]).await?;
        let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let last = ids.last().context("no row was inserted")?;
        let sql = if kind == Plant::CursorMoved { MOVE } else { PROGRESS };
        ensure!(transaction.execute(sql, &[&STORM, last]).await? == 1, "there is no cursor {STORM}");
        transaction.commit().await?;
        Ok(ids)
    }

    /// A row that the topic does not take, without its dead letter.
    async fn delete_letter(&self, owner: &Client, who: &str) -> anyhow::Result<String> {
        let insert = "INSERT INTO public.bookings (customer, region, phone, payload) \
                      VALUES ($1, 'north', '+1', repeat('x', 2000000)) RETURNING id::text";
        let id: String = owner.query_one(insert, &[&who]).await?.get(0);
        let delete = "DELETE FROM outbox.dead_letter WHERE cursor = $1 AND message_id = $2";
        until(PATIENCE, "the row is a dead letter", async || Ok(owner.execute(delete, &[&STORM, &id]).await? == 1))
            .await?;
        Ok(id)
    }

    /// Rows with a `created_at` that was passed, in a way that asks for no privilege on the column.
    async fn date_back(
        &mut self,
        owner: &Client,
        kind: Plant,
        relay: &str,
        (who, rows): (&str, usize),
    ) -> anyhow::Result<()> {
        let passed =
            "SELECT (min(position_created_at) - make_interval(secs => $2))::text FROM outbox.cursor WHERE relay = $1";
        let back = 0.02 + self.random.f64() * BACK;
        let at: String = owner.query_one(passed, &[&relay, &back]).await?.get(0);
        let bookings = |into: &str| {
            format!(
                "INSERT INTO public.{into} (created_at, customer, region, phone, payload) \
                 SELECT {AT}, $2::text, 'north', '+1', 'p' FROM {EACH}"
            )
        };
        let (role, sql) = match kind {
            Plant::View => ("postgres", bookings("front")),
            Plant::Definer => ("app", format!("SELECT public.book({AT}, $2::text) FROM {EACH}")),
            Plant::Trigger => {
                let columns = "customer, region, phone, payload";
                let values = format!("$2::text, 'back', '+1', ({AT})::text");
                ("postgres", format!("INSERT INTO public.bookings ({columns}) SELECT {values} FROM {EACH}"))
            }
            Plant::Rule => ("postgres", format!("INSERT INTO public.intake SELECT {AT}, $2::text FROM {EACH}")),
            Plant::ReplicaRole => {
                let insert = "INSERT INTO public.sharded (created_at, customer)";
                ("postgres", format!("{insert} SELECT {AT}, $2::text FROM {EACH}"))
            }
            _ => ("postgres", bookings("bookings")),
        };
        let mut client = connect(&self.scene.access.url(role)).await?;
        let transaction = client.transaction().await?;
        if kind == Plant::ReplicaRole {
            transaction.batch_execute("SET LOCAL session_replication_role = replica").await?;
        }
        transaction.execute(&sql, &[&at, &who, &i32::try_from(rows)?]).await?;
        if kind == Plant::SlicesDeleted {
            transaction.execute("UPDATE outbox.cursor SET audit = NULL WHERE name = $1", &[&relay]).await?;
            let slices =
                "DELETE FROM outbox.audit_slice WHERE cursor = $1 AND up_to_created_at >= $2::text::timestamptz";
            transaction.execute(slices, &[&relay, &at]).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// A row whose key comes to be one of the other shard, which has passed its place by then.
    async fn update_key(&self, owner: &Client) -> anyhow::Result<Option<String>> {
        let [from, to] = &self.scene.keys;
        let gate = self.scene.access.owner().await?;
        gate.batch_execute("BEGIN").await?;
        gate.execute("SELECT FROM outbox.cursor WHERE name = $1 FOR UPDATE", &[&format!("{SHARDED}#0")]).await?;
        let insert = "INSERT INTO public.sharded (customer) VALUES ($1) RETURNING id::text, created_at::text";
        let id: String = owner.query_one(insert, &[from]).await?.get(0);
        let newer: String = owner.query_one(insert, &[to]).await?.get(1);
        let passed = "SELECT position_created_at >= $2::text::timestamptz FROM outbox.cursor WHERE name = $1";
        let other = format!("{SHARDED}#1");
        until(PATIENCE, "the other shard has passed a newer row", async || {
            Ok(owner.query_one(passed, &[&other, &newer]).await?.get(0))
        })
        .await?;
        let update = "UPDATE public.sharded SET customer = $2 WHERE id = $1::text::bigint";
        owner.execute(update, &[&id, to]).await?;
        gate.batch_execute("COMMIT").await?;
        // What was read ahead of the lock is sent all the same.
        let next: String = owner.query_one(insert, &[from]).await?.get(0);
        until(PATIENCE, "the first shard has gone on", async || Ok(self.topics.has(SHARDED, &next))).await?;
        Ok((!self.topics.has(SHARDED, &id)).then_some(id))
    }
}

async fn ids(owner: &Client, relay: &str, who: &str) -> anyhow::Result<Vec<String>> {
    let sql = format!("SELECT id::text FROM public.{} WHERE customer = $1 ORDER BY id", table(relay));
    let ids: Vec<String> = owner.query(&sql, &[&who]).await?.iter().map(|row| row.get(0)).collect();
    ensure!(!ids.is_empty(), "{who} has no rows");
    Ok(ids)
}
