//! After the load: all is delivered, and compared, and then it is known what is lost.

use std::time::{Duration, Instant};

use anyhow::ensure;
use outbox_testkit::wait::until;
use tokio_postgres::Client;

use super::findings::Findings;
use super::tables::{HASTY, SHARDED, STORM};
use super::topics::Topics;
use super::{PATIENCE, Scene};

/// A slice ends after a minute and is compared a minute later, or when the pauses between comparisons let it.
const AUDIT: Duration = Duration::from_secs(300);
/// All slices that are left are compared within this.
const ALL_SLICES: Duration = Duration::from_secs(900);

impl Scene {
    /// Lets all be delivered, and all slices be compared; then it is known what is lost.
    pub(super) async fn calm(&self, topics: &Topics, findings: &mut Findings) -> anyhow::Result<()> {
        let owner = self.access.owner().await?;
        self.drain(&owner, topics).await?;
        let begun = Instant::now();
        while findings.audit_is_open() && begun.elapsed() < AUDIT {
            tokio::time::sleep(Duration::from_secs(1)).await;
            findings.letters(&owner).await?;
        }
        self.finish_audit(&owner).await?;
        findings.letters(&owner).await?;
        let sent = "SELECT NOT EXISTS (SELECT FROM outbox.dead_letter WHERE state = 'redriving')";
        until(PATIENCE, "late rows are sent", async || Ok(owner.query_one(sent, &[]).await?.get(0))).await?;
        findings.close(self, topics, &owner).await
    }

    /// A row behind all others, of each relay and shard, has come.
    async fn drain(&self, owner: &Client, topics: &Topics) -> anyhow::Result<()> {
        let bookings = "INSERT INTO public.bookings (customer, region, phone, payload) VALUES ($1, 'north', '+1', 'p') \
                        RETURNING id::text";
        let beside = |table: &str| format!("INSERT INTO public.{table} (customer) VALUES ($1) RETURNING id::text");
        let [first, second] = &self.keys;
        let inserts = [
            (STORM, bookings.to_owned(), first),
            (HASTY, beside(HASTY), first),
            (SHARDED, beside(SHARDED), first),
            (SHARDED, beside(SHARDED), second),
        ];
        for (relay, insert, key) in inserts {
            let id: String = owner.query_one(&insert, &[key]).await?.get(0);
            until(PATIENCE, "the last row has come", async || Ok(topics.has(relay, &id))).await?;
        }
        Ok(())
    }

    /// Lets all slices end, and be compared now: a calm table would let that take minutes, and nothing of it is measured any more.
    async fn finish_audit(&self, owner: &Client) -> anyhow::Result<()> {
        let halted = "SELECT cursor || ' ' || (last_error ->> 'code') FROM outbox.cursor_status WHERE halted";
        let halted: Vec<String> = owner.query(halted, &[]).await?.iter().map(|row| row.get(0)).collect();
        ensure!(halted.is_empty(), "halted: {}", halted.join(", "));
        let rest = "DELETE FROM outbox.turn_progress; \
                    UPDATE outbox.cursor SET advanced_at = advanced_at - interval '1 minute' WHERE audit IS NOT NULL";
        owner.batch_execute(rest).await?;
        let ended = "SELECT NOT EXISTS (SELECT FROM outbox.cursor AS c WHERE NOT EXISTS (SELECT FROM outbox.audit_slice AS s \
                     WHERE s.cursor = c.name AND s.up_to_created_at = c.position_created_at AND s.up_to_id = c.position_id))";
        until(AUDIT, "open slices have ended", async || Ok(owner.query_one(ended, &[]).await?.get(0))).await?;
        owner.batch_execute("UPDATE outbox.audit_slice SET check_at = clock_timestamp() WHERE checks = 0").await?;
        let compared = "SELECT NOT EXISTS (SELECT FROM outbox.audit_slice WHERE checks = 0)";
        until(ALL_SLICES, "all slices have been compared", async || Ok(owner.query_one(compared, &[]).await?.get(0)))
            .await
    }
}
