//! The operator: looks after halts, and does what their hints say where the storm makes them legitimate.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::Client;

use super::ddl::Taken;
use super::journal::Journal;
use super::receiver::Receiver;
use super::replicas::verb;
use super::stage::Access;

const LOOK: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub struct Operator {
    /// The program.
    pub relay: PathBuf,
    /// A configuration that leads to the servers directly.
    pub config: PathBuf,
    /// The storm's database.
    pub access: Access,
    /// What makes `partition_attached` legitimate.
    pub taken: Taken,
    /// Where it is written down.
    pub journal: Journal,
    /// Codes of halts that nothing in the storm explains.
    pub unexplained: Arc<Mutex<Vec<String>>>,
}

impl Operator {
    /// Halts that nothing in the storm explains.
    pub fn unexplained(&self) -> Vec<String> {
        self.unexplained.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks again and again; ends only when dropped.
    pub async fn watch(&self, receiver: &Receiver) {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(error) = self.look(receiver).await {
                self.journal.note(format!("the operator: {error:#}"));
            }
        }
    }

    async fn look(&self, receiver: &Receiver) -> anyhow::Result<()> {
        let owner = self.access.owner().await?;
        let sql =
            "SELECT cursor, last_error ->> 'code', last_error ->> 'message' FROM outbox.cursor_status WHERE halted";
        for row in owner.query(sql, &[]).await? {
            let (cursor, code, message): (String, Option<String>, Option<String>) =
                (row.get(0), row.get(1), row.get(2));
            let (code, message) = (code.unwrap_or_default(), message.unwrap_or_default());
            if code == "partition_attached" && !self.taken.all().is_empty() {
                self.journal.note(format!("halt of {cursor}: {message}"));
                self.move_back(&owner, &cursor, receiver).await.with_context(|| cursor.clone())?;
            } else {
                let said = format!("{cursor}: {code}: {message}");
                let mut unexplained = self.unexplained.lock().unwrap_or_else(PoisonError::into_inner);
                if !unexplained.iter().any(|known| known.split(": ").nth(1) == Some(&*code)) {
                    self.journal.count("halt", &said);
                    unexplained.push(said);
                }
            }
        }
        Ok(())
    }

    /// To the first row that was passed while its partition was away, if there is one; then the partition is accepted, for
    /// it has older rows that were delivered long ago.
    async fn move_back(&self, owner: &Client, cursor: &str, receiver: &Receiver) -> anyhow::Result<()> {
        let arrived = receiver.arrived().await?;
        let ids = arrived.ids();
        let mut first: Option<(String, String)> = None;
        for leaf in self.taken.all() {
            let rows = format!(
                "SELECT id::text, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') \
                 FROM public.{leaf} WHERE created_at <= (SELECT position_created_at FROM outbox.cursor WHERE name = $1) \
                 ORDER BY created_at, id"
            );
            // Behind the position only: a later row is on its way, and a move to it would pass over others.
            let rows = owner.query(&rows, &[&cursor]).await?;
            let missing = rows.iter().find(|row| !ids.contains(row.get::<_, &str>(0)));
            let missing = missing.map(|row| (row.get::<_, String>(1), row.get::<_, String>(0)));
            first = [first, missing].into_iter().flatten().min();
        }
        let mut said = String::new();
        if let Some((at, _)) = &first {
            let seek = ["cursor", "seek", cursor, "--at", at, "--yes", "--timeout", "20s"];
            said = verb(&self.relay, &self.config, &seek).await?;
        }
        let adopt = ["cursor", "adopt", cursor, "--yes", "--timeout", "20s"];
        said.push_str(&verb(&self.relay, &self.config, &adopt).await?);
        // The member is away again, or was taken in meanwhile: nothing is left to accept, but the halt stays.
        if said.contains("cursor resume") {
            said.push_str(&verb(&self.relay, &self.config, &["cursor", "resume", cursor]).await?);
        }
        self.journal.count("halt_cured", said);
        Ok(())
    }
}
