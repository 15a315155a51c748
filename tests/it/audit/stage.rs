//! A relay whose table is compared with what it passed.

use tokio_postgres::Client;

use super::{LOOKS, OWN, is_open, let_slices_be_due, let_slices_end, run};
use crate::support::outside::{get, listener, marked, stdout_relay};
use crate::support::{Database, PATIENCE, Process, bookings, database, eventually, toml};

/// Partitions by id.
const PARTITIONED: &str = "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY, \
                           created_at timestamptz NOT NULL DEFAULT clock_timestamp(), payload text, UNIQUE (created_at, id)) \
                           PARTITION BY RANGE (id); \
                           CREATE TABLE public.low PARTITION OF public.bookings FOR VALUES FROM (1) TO (1000); \
                           GRANT SELECT ON public.bookings, public.low TO relay";

/// A table, and a relay of it.
pub(super) struct Stage {
    pub(super) database: Database,
    pub(super) owner: Client,
    pub(super) text: String,
    pub(super) process: Process,
}

impl Stage {
    /// A relay that prints its table, with `more` below `[[relay]]`.
    pub(super) async fn new(more: &str) -> Self {
        let database = database().await;
        let owner = bookings(&database, OWN).await;
        let text = toml(&database, "relay", None, &stdout_relay("a", more));
        let process = Process::spawn(&text, &["run"]);
        Self { database, owner, text, process }
    }

    /// A relay that prints a table of partitions by id, the first of which takes what comes.
    pub(super) async fn partitioned() -> Self {
        let database = database().await;
        let owner = database.connect("postgres").await;
        run(&owner, PARTITIONED).await;
        let text = toml(&database, "relay", None, &stdout_relay("a", ""));
        let process = Process::spawn(&text, &["run"]);
        Self { database, owner, text, process }
    }

    /// Rows just behind the second one, in one transaction; their ids, with a star.
    pub(super) async fn insert_late(&self, rows: i32) -> Vec<String> {
        let sql = "INSERT INTO public.bookings (created_at, payload) \
                   SELECT (SELECT created_at FROM public.bookings WHERE id = 2) + make_interval(secs => n / 1e6), 'late' \
                   FROM generate_series(1, $1) AS n RETURNING id::text";
        let rows = self.owner.query(sql, &[&rows]).await.unwrap();
        rows.iter().map(|row| format!("{}*", row.get::<_, String>(0))).collect()
    }

    /// Rows in one transaction.
    pub(super) async fn insert(&self, rows: i32) {
        let sql = "INSERT INTO public.bookings (payload) SELECT 'p' FROM generate_series(1, $1)";
        self.owner.execute(sql, &[&rows]).await.unwrap();
    }

    /// The ids that were printed, with a star behind those that are marked late.
    pub(super) fn printed(&self) -> Vec<String> {
        marked(&self.process)
    }

    pub(super) async fn has_printed(&self, rows: usize) {
        eventually(LOOKS, async || self.printed().len() >= rows).await;
    }

    /// One row after the other, so that there is a position to begin a slice at, and rows between its places.
    pub(super) async fn fill(&self, rows: usize) {
        for row in 1..=rows {
            self.insert(1).await;
            self.has_printed(row).await;
        }
    }

    /// The open slice has ended, with one row more, and has been compared.
    pub(super) async fn compares(&self, printed: usize) {
        // A row is printed before the advance that records it.
        eventually(PATIENCE, async || let_slices_end(&self.owner).await > 0).await;
        self.insert(1).await;
        self.has_printed(printed + 1).await;
        eventually(PATIENCE, async || !is_open(&self.owner).await).await;
        self.compares_again().await;
    }

    pub(super) async fn compares_again(&self) {
        let checks = "SELECT COALESCE(min(checks), -1) FROM outbox.audit_slice";
        let count = async || self.owner.query_one(checks, &[]).await.unwrap().get::<_, i32>(0);
        eventually(PATIENCE, async || count().await >= 0).await;
        let before = count().await;
        let_slices_be_due(&self.owner).await;
        eventually(LOOKS, async || count().await > before).await;
    }

    pub(super) async fn counted(&self, result: &str) -> String {
        let metrics = get(&format!("{}/metrics", listener(&self.process).await)).await.1;
        let series = format!("outbox_relay_audit_slices_total{{cursor=\"a\",result=\"{result}\"}} ");
        let counted = metrics.lines().find_map(|line| line.strip_prefix(&series));
        counted.unwrap_or_else(|| panic!("no {result}: {metrics}")).to_owned()
    }
}
