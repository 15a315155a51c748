//! The owner, who changes how the table is stored and what it is made of, while everybody writes and reads it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use outbox_testkit::postgres::password;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::draw::{CreatedAt, Ddl, Draw, Kind};
use super::journal::Journal;
use super::stage::Access;
use super::table::members;

/// How long a statement of the owner waits for a lock; everybody queues behind it meanwhile.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '4s'";

/// See the module.
#[derive(Clone, Debug)]
pub struct Owner {
    draw: Draw,
    access: Access,
    journal: Journal,
    taken: Taken,
}

/// Members that were taken out of the table in the sight of others, by name.
#[derive(Clone, Debug, Default)]
pub struct Taken(Arc<Mutex<BTreeSet<String>>>);

impl Taken {
    /// All of them so far, those that are back too.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn add(&self, member: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(member.to_owned());
    }
}

impl Owner {
    /// Of a storm's table.
    pub fn new(draw: &Draw, access: &Access, journal: &Journal) -> Self {
        Self { draw: draw.clone(), access: access.clone(), journal: journal.clone(), taken: Taken::default() }
    }

    /// See [`Taken`].
    pub fn taken(&self) -> Taken {
        self.taken.clone()
    }

    /// Does what the draw says, again and again, until it is told to end.
    pub async fn work(self, end: CancellationToken) {
        let mut random = Rng::with_seed(self.draw.seed ^ 0xdd1);
        while let Some(ddl) = random.choice(&self.draw.ddl).copied() {
            match self.step(ddl, &mut random).await {
                Ok(what) => self.journal.count(ddl.word(), what),
                Err(error) => self.journal.note(format!("{} failed: {error:#}", ddl.word())),
            }
            // After a halt the operator needs a moment; the others come as often as the table bears it.
            let pause = match ddl {
                Ddl::Detach | Ddl::DetachConcurrently => random.u64(100..3_000),
                _ => random.u64(10..300),
            };
            let pause = Duration::from_millis(pause);
            if tokio::time::timeout(pause, end.cancelled()).await.is_ok() {
                return;
            }
        }
    }

    async fn step(&self, ddl: Ddl, random: &mut Rng) -> anyhow::Result<String> {
        let client = self.access.owner().await?;
        client.batch_execute(LOCK_TIMEOUT).await?;
        let members = members(&client).await?;
        let member = random.choice(&members).context("the table has no member")?.as_str();
        match ddl {
            Ddl::Rewrite => self.rewrite(&client, random).await,
            Ddl::VacuumFull => run(&client, format!("VACUUM FULL public.{member}")).await,
            Ddl::Cluster => {
                let index = "SELECT i.indexrelid::regclass::text FROM pg_index AS i WHERE i.indrelid = $1::text::regclass \
                             AND i.indisvalid ORDER BY i.indisprimary, 1 LIMIT 1";
                let index: String = client.query_one(index, &[&format!("public.{member}")]).await?.get(0);
                let index = index.rsplit('.').next().unwrap_or_default().to_owned();
                run(&client, format!("CLUSTER public.{member} USING {index}")).await
            }
            Ddl::AccessMethod => {
                let method = "SELECT a.amname = 'heap' FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam \
                              WHERE c.oid = $1::text::regclass";
                let is_heap: bool = client.query_one(method, &[&format!("public.{member}")]).await?.get(0);
                let other = if is_heap { "second_heap" } else { "heap" };
                run(&client, format!("ALTER TABLE public.{member} SET ACCESS METHOD {other}")).await
            }
            Ddl::Swap => self.swap(&client, member).await,
            Ddl::Repack => self.repack(member).await,
            Ddl::Reattach | Ddl::Detach | Ddl::DetachConcurrently => {
                self.detach(&client, ddl, self.leaf(member, &members, random), random).await
            }
        }
    }

    /// The root of an inheritance table cannot be taken out of itself.
    fn leaf<'a>(&self, member: &'a str, members: &'a [String], random: &mut Rng) -> &'a str {
        if member != "bookings" {
            return member;
        }
        let leaves: Vec<&String> = members.iter().filter(|member| *member != "bookings").collect();
        random.choice(leaves).map_or(member, |leaf| leaf)
    }

    async fn rewrite(&self, client: &Client, random: &mut Rng) -> anyhow::Result<String> {
        // A partition has no columns of its own; a child of an inheritance table may.
        let tables: &[&str] = if self.draw.table == Kind::Inheritance {
            &["bookings", "bookings_0", "bookings_1"]
        } else {
            &["bookings"]
        };
        let table = random.choice(tables).context("a table")?;
        let own = table.trim_start_matches("bookings");
        let (old, new) = if random.bool() { ("a", "b") } else { ("b", "a") };
        client.batch_execute(&format!("ALTER TABLE public.{table} DROP COLUMN IF EXISTS note{own}_{new}")).await?;
        let add = format!("ADD COLUMN note{own}_{new} float8 NOT NULL DEFAULT random()");
        run(client, format!("ALTER TABLE public.{table} DROP COLUMN IF EXISTS note{own}_{old}, {add}")).await
    }

    /// As tools without an own function do it: emptied and filled again, and no snapshot from before sees the rows.
    async fn swap(&self, client: &Client, member: &str) -> anyhow::Result<String> {
        let quiet = if self.draw.created_at == CreatedAt::Stamp {
            "SET LOCAL session_replication_role = replica; "
        } else {
            ""
        };
        let copy = format!("CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM ONLY public.{member}");
        let lock = format!("LOCK TABLE ONLY public.{member} IN ACCESS EXCLUSIVE MODE");
        let fill = format!("TRUNCATE ONLY public.{member}; INSERT INTO public.{member} SELECT * FROM kept");
        run(client, format!("BEGIN; {quiet}{lock}; {copy}; {fill}; COMMIT")).await
    }

    async fn repack(&self, member: &str) -> anyhow::Result<String> {
        let Some(program) = &self.access.repack else {
            let client = self.access.owner().await?;
            client.batch_execute(LOCK_TIMEOUT).await?;
            return self.swap_in_place_of_repack(&client, member).await;
        };
        let (port, table) = (self.access.port.to_string(), format!("public.{member}"));
        let mut command = tokio::process::Command::new(program);
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", &self.access.database]);
        command.args(["--no-order", "--no-kill-backend", "--wait-timeout=10", "-t", &table]).kill_on_drop(true);
        command.env("PGPASSWORD", password("postgres"));
        let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await??;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::ensure!(output.status.success() && !told.contains("WARNING"), "pg_repack {table}: {told}");
        Ok(format!("pg_repack {table}"))
    }

    async fn swap_in_place_of_repack(&self, client: &Client, member: &str) -> anyhow::Result<String> {
        anyhow::ensure!(self.draw.created_at != CreatedAt::Always, "pg_repack is not installed");
        self.swap(client, member).await
    }

    async fn detach(&self, client: &Client, ddl: Ddl, leaf: &str, random: &mut Rng) -> anyhow::Result<String> {
        let (out, back) = self.out_and_back(client, leaf).await?;
        if ddl == Ddl::Reattach {
            return run(client, format!("BEGIN; {out}; {back}; COMMIT")).await;
        }
        self.taken.add(leaf);
        let out = if ddl == Ddl::DetachConcurrently { format!("{out} CONCURRENTLY") } else { out };
        let taken = client.batch_execute(&out).await;
        self.journal.note(format!("{out}: {taken:?}"));
        // Back at once, it may have been away in one reading only; later, it is a partition that is attached.
        if taken.is_ok() && random.bool() {
            tokio::time::sleep(Duration::from_millis(random.u64(0..600))).await;
        }
        self.put_back(client, leaf, &back).await?;
        taken?;
        Ok(format!("{out}; {back}"))
    }

    async fn out_and_back(&self, client: &Client, leaf: &str) -> anyhow::Result<(String, String)> {
        if self.draw.table == Kind::Inheritance {
            let alter = format!("ALTER TABLE public.{leaf}");
            return Ok((format!("{alter} NO INHERIT public.bookings"), format!("{alter} INHERIT public.bookings")));
        }
        let bound = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = $1::text::regclass";
        let bound: Option<String> = client.query_one(bound, &[&format!("public.{leaf}")]).await?.get(0);
        let bound = bound.with_context(|| format!("{leaf} is no partition"))?;
        let out = format!("ALTER TABLE public.bookings DETACH PARTITION public.{leaf}");
        Ok((out, format!("ALTER TABLE public.bookings ATTACH PARTITION public.{leaf} {bound}")))
    }

    /// Until it is back, whatever is in the way: rows in a table of their own are no rows of the relay's table.
    async fn put_back(&self, client: &Client, leaf: &str, back: &str) -> anyhow::Result<()> {
        let state = "SELECT bool_or(i.inhdetachpending) FROM pg_inherits AS i WHERE i.inhrelid = $1::text::regclass";
        let mut again: Option<Client> = None;
        for _ in 0..600 {
            let client = again.as_ref().unwrap_or(client);
            let pending =
                client.query_one(state, &[&format!("public.{leaf}")]).await.map(|row| row.get::<_, Option<bool>>(0));
            let done = match pending {
                Ok(Some(false)) => return Ok(()),
                Ok(Some(true)) => {
                    let finalize = format!("ALTER TABLE public.bookings DETACH PARTITION public.{leaf} FINALIZE");
                    client.batch_execute(&finalize).await
                }
                Ok(None) => client.batch_execute(back).await,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                self.journal.note(format!("{leaf} is not back yet: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                again = self.access.owner().await.ok().or(again);
            } else {
                self.journal.note(format!("{leaf}: a step back is done"));
            }
        }
        anyhow::bail!("{leaf} cannot be put back")
    }
}

async fn run(client: &Client, sql: String) -> anyhow::Result<String> {
    client.batch_execute(&sql).await.with_context(|| sql.clone())?;
    Ok(sql)
}
