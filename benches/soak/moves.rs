//! What a writer's transaction does.

use std::time::Duration;

use axum::body::Bytes;
use fastrand::Rng;
use futures_util::SinkExt as _;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::draw::{CreatedAt, Draw, Move};

const REGIONS: [&str; 4] = ["north", "east", "south", "west"];

/// How a transaction ended.
#[derive(Debug)]
pub enum Done {
    /// The ids that the server told, and how many rows there were.
    Committed(Vec<i64>, u64),
    /// On purpose.
    RolledBack,
}

/// The moves of one writer.
#[derive(Debug)]
pub struct Moves {
    writer: usize,
    /// Whether the value of `created_at` is sent.
    sent: bool,
    /// Milliseconds, at most.
    pause: u64,
    random: Rng,
    prepared: u64,
    /// Transactions that were prepared and whose second phase was not confirmed.
    unresolved: Vec<String>,
}

impl Moves {
    /// Of a writer with this number.
    pub fn new(writer: usize, draw: &Draw, random: Rng) -> Self {
        let sent = draw.created_at == CreatedAt::Sent;
        Self { writer, sent, pause: draw.pause, random, prepared: 0, unresolved: Vec::new() }
    }

    /// Commits what was prepared before the connection broke: left alone, it would hold the relay for the rest of the storm.
    pub async fn resolve(&mut self, client: &Client) {
        for name in std::mem::take(&mut self.unresolved) {
            // One that is resolved already is no error here.
            let _ = client.batch_execute(&format!("COMMIT PREPARED '{name}'")).await;
        }
    }

    /// Makes one, with about this many rows for each of its statements.
    pub async fn make(&mut self, kind: Move, rows: usize, client: &mut Client) -> Result<Done, Error> {
        match kind {
            Move::Single => {
                let insert = self.insert_into("bookings", rows);
                send(client, &insert).await
            }
            Move::Child => {
                let child = ["bookings_0", "bookings_1"][self.random.usize(0..2)];
                let insert = self.insert_into(child, rows);
                send(client, &insert).await
            }
            Move::Block => self.block(client, rows, false).await,
            Move::Copy => self.block(client, rows, true).await,
            Move::Prepared => self.prepare(client, rows).await,
            Move::Message => self.message(client, rows).await,
            Move::Update => self.update(client).await,
        }
    }

    async fn block(&mut self, client: &mut Client, rows: usize, copies: bool) -> Result<Done, Error> {
        let statements = if copies { self.random.usize(1..=3) } else { self.random.usize(1..=6) };
        let pause_after = (self.random.u8(0..4) == 0).then(|| self.random.usize(0..statements));
        let transaction = client.transaction().await?;
        let (mut told, mut written) = (Vec::new(), 0);
        for number in 0..statements {
            let insert = self.insert_into("bookings", rows);
            if copies && number == 0 {
                written += self.copy(&transaction, rows.max(3)).await?;
            }
            match self.random.u8(0..10) {
                0 => transaction.batch_execute(&format!("SAVEPOINT a; {insert}; ROLLBACK TO SAVEPOINT a")).await?,
                1 => {
                    transaction.batch_execute("SAVEPOINT b").await?;
                    told.extend(ids(&transaction.simple_query(&insert).await?));
                    transaction.batch_execute("RELEASE SAVEPOINT b").await?;
                }
                _ => told.extend(ids(&transaction.simple_query(&insert).await?)),
            }
            if pause_after == Some(number) {
                // A part of the load: this is what makes rows visible late.
                tokio::time::sleep(self.some_pause()).await;
            }
        }
        if self.random.u8(0..10) == 0 {
            transaction.rollback().await?;
            return Ok(Done::RolledBack);
        }
        transaction.commit().await?;
        written += told.len() as u64;
        Ok(Done::Committed(told, written))
    }

    async fn copy(&mut self, transaction: &tokio_postgres::Transaction<'_>, rows: usize) -> Result<u64, Error> {
        let (columns, stamp) = if self.sent {
            let read = transaction.simple_query("SELECT clock_timestamp()::text").await?;
            let stamp = read.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            ("created_at, ", format!("{}\t", stamp.unwrap_or_default()))
        } else {
            ("", String::new())
        };
        let copy = format!("COPY public.bookings ({columns}customer, region, phone, payload) FROM STDIN");
        let sink = transaction.copy_in::<_, Bytes>(&copy).await?;
        let mut sink = std::pin::pin!(sink);
        for _ in 0..rows {
            let [customer, region, phone, payload] = row(&mut self.random);
            let line = format!("{stamp}{customer}\t{region}\t{phone}\t{payload}\n");
            sink.send(Bytes::from(line)).await?;
        }
        sink.finish().await
    }

    /// Two phases; between them the session is in its next transaction, or the server has all of it in one message.
    async fn prepare(&mut self, client: &Client, rows: usize) -> Result<Done, Error> {
        self.prepared += 1;
        let name = format!("writer-{}-{}", self.writer, self.prepared);
        let (insert, pause) = (self.insert_into("bookings", rows), self.some_pause());
        self.unresolved.push(name.clone());
        // Long enough that no latency window hides a bound that is the next transaction's.
        let open = self.random.f64() * 0.3;
        let first = format!("BEGIN; {insert}; SELECT pg_sleep({open}); PREPARE TRANSACTION '{name}'");
        let next = format!("BEGIN; SELECT pg_sleep({}); COMMIT", pause.as_secs_f64());
        let told = if self.random.bool() {
            let told = ids(&client.simple_query(&format!("{first}; {next}")).await?);
            tokio::time::sleep(self.some_pause()).await;
            told
        } else {
            let told = ids(&client.simple_query(&first).await?);
            client.batch_execute(&next).await?;
            told
        };
        let commits = self.random.u8(0..8) > 0;
        let word = if commits { "COMMIT" } else { "ROLLBACK" };
        client.batch_execute(&format!("{word} PREPARED '{name}'")).await?;
        self.unresolved.retain(|one| *one != name);
        let rows = told.len() as u64;
        Ok(if commits { Done::Committed(told, rows) } else { Done::RolledBack })
    }

    /// `now()` of the second transaction is when the message came.
    async fn message(&mut self, client: &Client, rows: usize) -> Result<Done, Error> {
        let (insert, pause) = (self.insert_into("bookings", rows), self.some_pause().as_secs_f64());
        // The longer the second transaction is open, the more likely it is seen.
        let open = self.random.f64() * 0.1;
        let first = format!("BEGIN; SELECT pg_sleep({pause}); COMMIT");
        send(client, &format!("{first}; BEGIN; {insert}; SELECT pg_sleep({open}); COMMIT")).await
    }

    async fn update(&mut self, client: &Client) -> Result<Done, Error> {
        let some = "SELECT id FROM public.bookings ORDER BY created_at DESC, id DESC LIMIT 5";
        let sql = format!("UPDATE public.bookings SET payload = payload || '.' WHERE id IN ({some})");
        client.batch_execute(&sql).await?;
        Ok(Done::Committed(Vec::new(), 0))
    }

    fn insert_into(&mut self, table: &str, rows: usize) -> String {
        let (column, value) = if self.sent { ("created_at, ", "clock_timestamp(), ") } else { ("", "") };
        let value = |_| {
            let [customer, region, phone, payload] = row(&mut self.random);
            format!("({value}'{customer}', '{region}', '{phone}', '{payload}')")
        };
        let values = (0..rows).map(value).collect::<Vec<_>>().join(", ");
        format!(
            "INSERT INTO public.{table} ({column}customer, region, phone, payload) VALUES {values} RETURNING 'id', id"
        )
    }

    fn some_pause(&mut self) -> Duration {
        Duration::from_millis(self.random.u64(0..=self.pause))
    }
}

/// A message by the simple protocol: whatever DDL does, no prepared statement is stale.
async fn send(client: &Client, sql: &str) -> Result<Done, Error> {
    let ids = ids(&client.simple_query(sql).await?);
    let rows = ids.len() as u64;
    Ok(Done::Committed(ids, rows))
}

/// Letters, digits and signs that neither SQL nor COPY reads otherwise.
fn row(random: &mut Rng) -> [String; 4] {
    let payload = (0..random.usize(20..400)).map(|_| random.alphanumeric()).collect();
    [
        format!("customer-{}", random.u16(0..200)),
        REGIONS[random.usize(0..REGIONS.len())].to_owned(),
        format!("+1555{:07}", random.u32(0..10_000_000)),
        payload,
    ]
}

/// The ids that an answer tells; other rows of a message have another first column.
fn ids(messages: &[SimpleQueryMessage]) -> Vec<i64> {
    let id = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) if row.len() == 2 && row.get(0) == Some("id") => row.get(1)?.parse().ok(),
        _ => None,
    };
    messages.iter().filter_map(id).collect()
}
