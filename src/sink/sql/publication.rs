//! One turn's statements, and what of them stays.

use std::time::Instant;

use deadpool_postgres::ClientWrapper;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use tokio_postgres::Statement;

use super::text::{self, Text};
use super::{Each, SqlSink, errors};
use crate::batch::Batch;
use crate::sink::{Class, Failure, Flow, Mode, Published};

/// How many statements are sent ahead of their answers: a round trip is shared by as many.
const AHEAD: usize = 100;

/// The relay's own settings keep its reading on an index; the user's statement is planned by the server's.
const PLANNER: &str = "SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_bitmapscan TO DEFAULT; \
                       SET LOCAL enable_sort TO DEFAULT";
/// The settings that the advance, and the statement's next run, rest on, as SQL that makes them again; read before the statement
/// runs.
const KEPT: &str = include_str!("kept_settings.sql");
/// A function or a trigger may have left another role; the advance is the relay's.
const ROLE: &str = "RESET SESSION AUTHORIZATION; RESET ROLE";
const OPEN: &str = "SAVEPOINT outbox_relay_piece";
const UNDO: &str = "ROLLBACK TO SAVEPOINT outbox_relay_piece";
/// Has deferred constraints judge the piece while it can still be undone, and then leaves them as they were: at the commit
/// it could not be told whose row they refuse.
const CLOSE: &str = "SAVEPOINT outbox_relay_constraints; SET CONSTRAINTS ALL IMMEDIATE; \
                     ROLLBACK TO SAVEPOINT outbox_relay_constraints; RELEASE SAVEPOINT outbox_relay_piece";

/// One turn's statements.
#[derive(Debug)]
pub struct SqlPublication<'a> {
    sink: &'a SqlSink,
    transaction: &'a ClientWrapper,
    mode: Mode,
    /// Nothing is begun from then on, so that what was begun can be acknowledged and committed.
    enough: Option<Instant>,
    prepared: Option<Prepared>,
    acknowledged: usize,
    /// Set while statements are on their way; still set in `finish` when `push` was dropped.
    in_flight: bool,
    stopped: Option<Failure>,
    suspects: usize,
}

/// What all pieces of a turn need.
#[derive(Clone, Debug)]
struct Prepared {
    statement: Statement,
    /// Ends a piece.
    close: String,
}

/// Why a piece was not carried out.
struct Refusal {
    failure: Failure,
    /// The transaction cannot be gone on with.
    lost: bool,
    /// Among how many of the piece's rows the offending row stands.
    suspects: usize,
}

impl Refusal {
    fn new(error: &tokio_postgres::Error, suspects: usize) -> Self {
        Self { failure: errors::judge(error), lost: errors::ends_session(error), suspects }
    }
}

impl SqlSink {
    /// Begins one turn's statements in this transaction.
    pub(in crate::sink) fn begin<'a>(&'a self, mode: Mode, transaction: &'a ClientWrapper) -> SqlPublication<'a> {
        let now = Instant::now();
        SqlPublication {
            sink: self,
            transaction,
            mode,
            enough: mode.until.map(|until| now + until.saturating_duration_since(now) / 2),
            prepared: None,
            acknowledged: 0,
            in_flight: false,
            stopped: None,
            suspects: 1,
        }
    }
}

impl SqlPublication<'_> {
    pub(in crate::sink) async fn push(&mut self, batch: &Batch) -> Flow {
        self.in_flight = true;
        let flow = self.carry_out(batch).await;
        self.in_flight = false;
        flow
    }

    async fn carry_out(&mut self, batch: &Batch) -> Flow {
        if !self.mode.alone {
            return self.piece(batch).await;
        }
        for row in 0..batch.len() {
            if self.piece(&batch.alone(row)).await == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    /// Carries out a piece, or nothing of it.
    async fn piece(&mut self, batch: &Batch) -> Flow {
        if self.stopped.is_some() || self.acknowledged > 0 && self.is_enough() {
            return Flow::Stop;
        }
        // All of its rows were passed: an aggregate over no rows gives a row, of NULL.
        if batch.is_empty() {
            return Flow::Continue;
        }
        match self.run(batch).await {
            Ok(rows) => {
                self.acknowledged += rows;
                if rows < batch.len() { Flow::Stop } else { Flow::Continue }
            }
            Err(refusal) => {
                self.undo(refusal).await;
                Flow::Stop
            }
        }
    }

    fn is_enough(&self) -> bool {
        self.enough.is_some_and(|enough| Instant::now() >= enough)
    }

    /// How many rows were carried out: all, or fewer when the turn's time is running out.
    async fn run(&mut self, batch: &Batch) -> Result<usize, Refusal> {
        let (all, transaction) = (batch.len(), self.transaction);
        let of_all = |error| Refusal::new(&error, all);
        let Prepared { statement, close } = match &self.prepared {
            Some(prepared) => prepared.clone(),
            None => {
                let close = self.closing().await.map_err(of_all)?;
                let statement = self.prepared().await?;
                self.prepared.insert(Prepared { statement, close }).clone()
            }
        };
        let open = async { transaction.batch_execute(OPEN).await.map_err(of_all) };
        let rows = async {
            match self.sink.each {
                Each::Row => self.rows(&statement, batch).await,
                Each::Batch => self.arrays(&statement, batch).await.map_err(of_all),
            }
        };
        // Sent at once: an error leaves all that follows undone until the savepoint is gone back to.
        let ((), rows) = tokio::try_join!(biased; open, rows)?;
        transaction.batch_execute(&close).await.map_err(of_all)?;
        Ok(rows)
    }

    /// Hands the statement to the server's planner; gives what ends a piece, so that nothing which the statement, or a trigger
    /// behind it, has left in the session meets the advance.
    async fn closing(&self) -> Result<String, tokio_postgres::Error> {
        let kept = self.transaction.prepare_cached(KEPT).await?;
        let planner = self.transaction.batch_execute(PLANNER);
        let ((), kept) = tokio::try_join!(biased; planner, self.transaction.query_one(&kept, &[]))?;
        Ok(format!("{ROLE}; {}; {CLOSE}", kept.try_get::<_, &str>(0)?))
    }

    async fn prepared(&self) -> Result<Statement, Refusal> {
        // No row is the reason, and there is no savepoint yet to go back to.
        self.sink.prepare(self.transaction).await.map_err(|failure| {
            let class = if failure.class == Class::Poison { Class::Fatal } else { failure.class };
            Refusal { failure: Failure { class, ..failure }, lost: true, suspects: 1 }
        })
    }

    async fn rows(&self, statement: &Statement, batch: &Batch) -> Result<usize, Refusal> {
        let mut answers = FuturesOrdered::new();
        let mut rows = 0;
        let mut answered = |answer: Option<Result<u64, tokio_postgres::Error>>| {
            rows += usize::from(answer.is_some());
            answer.transpose().map_err(|error| Refusal::new(&error, rows))
        };
        for (row, message) in batch.messages().enumerate() {
            if row > 0 && self.is_enough() {
                break;
            }
            if answers.len() >= AHEAD {
                answered(answers.next().await)?;
            }
            let parameters: Vec<_> = (0..self.sink.fields.len()).map(|field| Text(message.value(field))).collect();
            answers.push_back(self.transaction.execute_raw(statement, parameters));
        }
        while answered(answers.next().await)?.is_some() {}
        Ok(rows)
    }

    async fn arrays(&self, statement: &Statement, batch: &Batch) -> Result<usize, tokio_postgres::Error> {
        let columns = self.sink.columns.iter().enumerate();
        let parameters: Vec<_> = columns
            .map(|(field, column)| {
                let delimiter = column.array.map_or(',', |(_, delimiter)| delimiter);
                Text(Some(text::array(batch.messages().map(|message| message.value(field)), delimiter)))
            })
            .collect();
        self.transaction.execute_raw(statement, parameters).await?;
        Ok(batch.len())
    }

    /// Leaves in the transaction what the acknowledged prefix has changed; nothing when that cannot be had any more.
    async fn undo(&mut self, refusal: Refusal) {
        // A plan that is out of date is made again, by the next user of this connection.
        self.transaction.statement_cache.remove(&self.sink.statement, &self.sink.types);
        let Refusal { mut failure, lost, suspects } = refusal;
        let lost = lost || self.transaction.batch_execute(UNDO).await.is_err();
        if lost {
            self.acknowledged = 0;
            if failure.class == Class::Poison {
                failure.class = Class::Retry;
            }
        }
        (self.stopped, self.suspects) = (Some(failure), suspects);
    }

    pub(in crate::sink) fn finish(self) -> Published {
        if self.in_flight {
            let failure = Failure::of(
                Class::Retry,
                "deadline",
                "The turn ended before its statements did: all of it was rolled back",
                "The next turns are smaller; see whether the statement waits for a lock, or raise turn.deadline",
            );
            return Published { acknowledged: 0, stopped: Some(failure), suspects: 1 };
        }
        Published { acknowledged: self.acknowledged, stopped: self.stopped, suspects: self.suspects }
    }
}
