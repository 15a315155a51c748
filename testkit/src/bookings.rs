//! The table `public.bookings` and the writers that fill it: long transactions, rollbacks, savepoints, statements of many
//! rows, COPY, small and large payloads.
//!
//! What was committed is read from the table itself when the writers have ended ([`committed`]); what the writers believe
//! to have committed must agree with it ([`Written::agrees_with`]).

use std::collections::HashSet;

use anyhow::ensure;
use tokio_postgres::Client;

use crate::delivery::Committed;
use outbox_relay::position::Timestamp;

mod writer;

pub use writer::{Load, Writers};

/// How many of its 12 pieces of time a range-partitioned table has before rows go to the default partition.
const RANGES: u32 = 12;

/// How the table is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The default of `created_at`.
    pub created_at: CreatedAt,
    /// Its partitions.
    pub layout: Layout,
}

/// The default of `created_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreatedAt {
    /// `clock_timestamp()`: when the row was made.
    ClockTimestamp,
    /// `now()`: when its transaction began.
    Now,
}

/// The partitions of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// None.
    Plain,
    /// By ranges of `created_at`, 5 seconds each, so that a test crosses several.
    Ranges,
    /// By a hash of the id, 4 partitions.
    Hashes,
}

/// What the writers believe to have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows of transactions whose commit was confirmed.
    pub rows: u64,
    /// The ids of those rows, as far as PostgreSQL told them: COPY does not.
    pub ids: Vec<i64>,
    /// Transactions confirmed.
    pub transactions: u64,
    /// Transactions rolled back on purpose.
    pub rolled_back: u64,
    /// Transactions that ended with an error: they may or may not have been committed.
    pub unknown: u64,
}

impl Table {
    /// With `clock_timestamp()` and without partitions.
    pub const PLAIN: Self = Self { created_at: CreatedAt::ClockTimestamp, layout: Layout::Plain };

    /// Makes the table; the roles, when they exist, get what an application needs.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub async fn create(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        client.batch_execute(&self.sql()).await
    }

    /// The statements that make the table.
    #[must_use]
    pub fn sql(&self) -> String {
        let default = match self.created_at {
            CreatedAt::ClockTimestamp => "clock_timestamp()",
            CreatedAt::Now => "now()",
        };
        // A primary key must contain the columns that decide the partition.
        let (key, by) = match self.layout {
            Layout::Plain => ("id", ""),
            Layout::Ranges => ("id, created_at", "PARTITION BY RANGE (created_at)"),
            Layout::Hashes => ("id", "PARTITION BY HASH (id)"),
        };
        let partitions = match self.layout {
            Layout::Plain => String::new(),
            Layout::Ranges => format!(
                "DO $$ DECLARE start timestamptz := now(); BEGIN
                     FOR piece IN 0..{RANGES} - 1 LOOP
                         EXECUTE format('CREATE TABLE public.bookings_%s PARTITION OF public.bookings
                             FOR VALUES FROM (%L) TO (%L)', piece,
                             start + piece * interval '5 s', start + (piece + 1) * interval '5 s');
                     END LOOP;
                 END $$;
                 CREATE TABLE public.bookings_rest PARTITION OF public.bookings DEFAULT;"
            ),
            Layout::Hashes => (0..4)
                .map(|rest| {
                    format!(
                        "CREATE TABLE public.bookings_{rest} PARTITION OF public.bookings
                             FOR VALUES WITH (MODULUS 4, REMAINDER {rest});"
                    )
                })
                .collect(),
        };
        format!(
            "CREATE TABLE public.bookings (
                 id bigint GENERATED ALWAYS AS IDENTITY,
                 created_at timestamptz NOT NULL DEFAULT {default},
                 customer text NOT NULL,
                 region text NOT NULL,
                 phone text NOT NULL,
                 payload text NOT NULL,
                 PRIMARY KEY ({key})
             ) {by};
             {partitions}
             CREATE INDEX ON public.bookings (created_at, id);
             DO $$ DECLARE name text; BEGIN
                 FOR name IN SELECT rolname FROM pg_roles WHERE rolname = 'app' LOOP
                     EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON public.bookings TO %I', name);
                 END LOOP;
                 FOR name IN SELECT rolname FROM pg_roles WHERE rolname IN ('relay', 'relay_stats') LOOP
                     EXECUTE format('GRANT SELECT ON public.bookings TO %I', name);
                 END LOOP;
             END $$;"
        )
    }
}

/// The ground truth: what the table has, in its order.
///
/// # Errors
/// PostgreSQL's.
pub async fn committed(client: &Client) -> Result<Committed, tokio_postgres::Error> {
    let statement = "SELECT id::text, (extract(epoch FROM created_at) * 1000000)::bigint
                     FROM public.bookings AS b ORDER BY b.created_at, b.id";
    let rows = client.query(statement, &[]).await?;
    let rows = rows.iter().map(|row| (row.get(0), Timestamp::from_unix_micros(row.get(1))));
    Ok(Committed::in_order(rows.collect()))
}

impl Written {
    /// The table must have exactly what the writers were told is committed: otherwise PostgreSQL, or the stage, is at
    /// fault, and nothing can be said about the relay.
    ///
    /// # Errors
    /// When it does not.
    pub fn agrees_with(&self, committed: &Committed) -> anyhow::Result<()> {
        let missing = self.ids.iter().find(|id| committed.created_at(&id.to_string()).is_none());
        ensure!(missing.is_none(), "The writers committed id {missing:?}, the table does not have it");
        let unique: HashSet<_> = self.ids.iter().collect();
        ensure!(unique.len() == self.ids.len(), "The writers were told the same id twice");
        let rows = usize::try_from(self.rows)?;
        let fits = if self.unknown == 0 { committed.len() == rows } else { committed.len() >= rows };
        ensure!(fits, "The writers committed {rows} rows, the table has {}", committed.len());
        Ok(())
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.ids.extend(other.ids);
        self.transactions += other.transactions;
        self.rolled_back += other.rolled_back;
        self.unknown += other.unknown;
    }
}
