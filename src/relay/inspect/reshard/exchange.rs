//! The exchange of the two sets, in one transaction, once it is proven where the new one may begin.

use std::collections::BTreeSet;
use std::time::Instant;

use super::{Exchange, Handover, LOOK, Resharded, begins};
use crate::cursor::reshard::{New, Old, lock_orders, old, replace, slices};
use crate::database::Session;
use crate::position::{Position, Timestamp};
use crate::source::family;

impl Handover<'_> {
    /// Proves where the new set may begin, behind the locked former one, and exchanges them.
    pub(super) async fn exchange(
        &self,
        holder: &Session,
        barrier: &Session,
        olds: &[Old],
        by: &str,
    ) -> anyhow::Result<Exchange> {
        let relay = &self.relays[0].relay;
        barrier.batch_execute("ROLLBACK").await?;
        let begins = begins(olds);
        self.safe(holder, begins).await?;
        self.whole(holder, olds).await?;
        // Operators may have paused one, or ordered a change, while that took its time.
        lock_orders(holder).await?;
        let olds = &old(holder, relay).await?;
        self.judge(olds)?;
        // Before the questions: each of them sees all that this snapshot sees.
        let seen: String = holder.query_one("SELECT pg_catalog.pg_current_snapshot()::text", &[]).await?.try_get(0)?;
        if let Some(name) = self.behind(holder, olds).await? {
            return Ok(Exchange::Behind(name));
        }
        let names: Vec<String> = self.relays.iter().map(|relay| relay.name.clone()).collect();
        let at = begins.map(|created_at| Position { created_at, id: None });
        let from: Vec<&str> = olds.iter().map(|old| old.name.as_str()).collect();
        let detail = serde_json::json!({ "from": from, "to": names, "at": at.as_ref().map(ToString::to_string) });
        let (rule, order) = (self.shape.rule.as_str(), (&*self.shape.order, &*self.shape.order_columns));
        let new = New { relay, names: &names, identity: &self.identity, rule, order, at: begins, seen: &seen };
        holder.batch_execute("SET LOCAL synchronous_commit TO on").await?;
        let slices = slices(holder, olds).await?;
        replace(holder, olds, new, by, &detail).await?;
        holder.batch_execute("COMMIT").await?;
        Ok(Exchange::Done(Resharded::Done { at, slices }))
    }

    /// Locks the table against detachment and rewriting until the exchange, and makes sure that it is all there: rows of a
    /// partition that is away for an instant would be passed without a trace.
    async fn whole(&self, holder: &Session, olds: &[Old]) -> anyhow::Result<()> {
        let name = self.shape.config.table.quoted();
        holder
            .batch_execute(&format!("SET LOCAL lock_timeout TO '2s'; LOCK TABLE {name} IN ACCESS SHARE MODE"))
            .await?;
        let family = family::read(holder, self.shape.root, &name).await?;
        let known: BTreeSet<u32> = olds.iter().filter_map(Old::known).flatten().collect();
        let away: Vec<u32> = known.difference(&family).copied().collect();
        // One that was dropped does not come back.
        let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = ANY ($1::oid[]))";
        let missing: bool = holder.query_one(there, &[&away]).await?.try_get(0)?;
        anyhow::ensure!(
            family == self.shape.descendants && !missing,
            "partitions of {name} were attached or detached meanwhile, or one that the cursors have read is missing: attach \
             it, or let the relay read on without it, and run it again. Nothing has changed"
        );
        Ok(())
    }

    /// Waits until no transaction can commit a row before this instant any more.
    async fn safe(&self, holder: &Session, begins: Option<Timestamp>) -> anyhow::Result<()> {
        let Some(begins) = begins else { return Ok(()) };
        loop {
            let scan = self.watcher.scan(&self.shape).await?;
            scan.server.same_as(&holder.server)?;
            let horizon = scan.horizon;
            if horizon.at >= begins {
                return Ok(());
            }
            let (rule, table) = (self.shape.rule, &self.shape.config.table);
            let who =
                horizon.held_by.first().map_or_else(String::new, |held| format!(" {};", held.sentence(rule, table)));
            anyhow::ensure!(
                Instant::now() < self.until,
                "rows before {begins}, where a cursor stands, can still be committed:{who} nothing has changed, run it again"
            );
            tokio::time::sleep(LOOK).await;
        }
    }
}
