//! Has the server judge a statement before it runs: as this role, with these types, and without running it.

use deadpool_postgres::ClientWrapper;

use super::{SqlSink, errors};
use crate::sink::{Class, Failure};

/// A name that no statement of the driver has.
const NAME: &str = "outbox_relay_inspection";

impl SqlSink {
    /// Whether the statement can be prepared and its plan begun, which is when privileges are checked. `client` must be in
    /// no transaction and is in none afterwards.
    ///
    /// # Errors
    /// What is wrong; never poison: no row is concerned.
    pub async fn inspect(&self, client: &ClientWrapper) -> Result<(), Failure> {
        client.batch_execute("BEGIN").await.map_err(|error| errors::judge(&error))?;
        let inspected = self.begun(client).await;
        client.batch_execute("ROLLBACK").await.map_err(|error| errors::judge(&error))?;
        // What SQL has prepared outlives the transaction.
        client.execute(&format!("DEALLOCATE {NAME}"), &[]).await.ok();
        inspected.map_err(|failure| match failure.class {
            Class::Poison => Failure { class: Class::Fatal, ..failure },
            Class::Retry | Class::Fatal => failure,
        })
    }

    async fn begun(&self, client: &ClientWrapper) -> Result<(), Failure> {
        // First: the driver's protocol takes one statement only.
        self.prepare(client).await?;
        if self.is_call() {
            return Ok(()); // what a CALL may do shows only when it runs
        }
        // A plan for constants would already run functions with them.
        let generic = "SET LOCAL plan_cache_mode TO force_generic_plan";
        let (types, nulls) = (self.types_in_sql().join(", "), vec!["NULL"; self.fields().len()].join(", "));
        let list = |text: String| if text.is_empty() { text } else { format!("({text})") };
        let prepare = format!("PREPARE {NAME} {} AS {}", list(types), self.statement);
        let explain = format!("EXPLAIN EXECUTE {NAME} {}", list(nulls));
        for sql in [generic, &prepare, &explain] {
            client.execute(sql, &[]).await.map_err(|error| errors::judge(&error))?;
        }
        Ok(())
    }
}
