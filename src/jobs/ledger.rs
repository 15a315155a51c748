//! The ledger of requests: what becomes of those that a replica has claimed.
//!
//! Promise: who no longer has the claim's token changes nothing, and is told. A claim is made in the transaction that locks
//! the relay's cursor; it ends by itself only after its claimant has given up.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::Settlement;
use crate::cursor::status;
use crate::cursor::{ErrorReport, LockedCursor, Taking};
use crate::database::{Error, Session, quote_literal};

const REGISTER: &str = include_str!("sql/ledger_register.sql");

const TAKEN: &str =
    "SELECT name, relay FROM outbox.template WHERE name = ANY ($2::text[]) AND relay <> $1 ORDER BY name LIMIT 1";

const TEMPLATES: &str =
    "SELECT name, relay FROM outbox.template WHERE (name = ANY ($2::text[])) <> (relay = $1) ORDER BY name";

const ORPHANS: &str = include_str!("sql/ledger_orphans.sql");

const CLAIM: &str = include_str!("sql/ledger_claim.sql");

const GIVE_UP: &str = include_str!("sql/ledger_give_up.sql");

/// Who was slow, and not gone, may still say what became of a request that nobody else has sent since.
const COMPLETE: &str = include_str!("sql/ledger_complete.sql");

const WAIT: &str = include_str!("sql/ledger_wait.sql");

const END: &str = include_str!("sql/ledger_end.sql");

/// Waits for nobody: a row that somebody has locked is still its claimant's. What was given up meanwhile, and not sent again, too.
const KEEP: &str = include_str!("sql/ledger_keep.sql");

/// What is not pinned has certainly not been sent, even if a replica claimed it and ended: it may wait like a pending one.
const PUT_OFF: &str = include_str!("sql/ledger_put_off.sql");

const FAILED: &str = include_str!("sql/ledger_failed.sql");

/// A request that is claimed with others.
#[derive(Clone, Copy, Debug)]
pub struct ClaimedRequest<'a> {
    /// Its id.
    pub id: &'a str,
    /// What is sent, pinned now; none when it was pinned before, or cannot be rendered.
    pub body: Option<&'a [u8]>,
    /// Somebody had it, and may have sent it.
    pub interrupted: bool,
}

/// A request and the claim's token.
#[derive(Clone, Copy, Debug)]
pub struct NamedRequest<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its claim's token.
    pub token: &'a str,
}

/// A request that its receiver has accepted.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'a> {
    /// Which.
    pub request: NamedRequest<'a>,
    /// The receiver's own id of the message.
    pub provider_id: Option<&'a str>,
    /// What it said.
    pub reply: &'a str,
}

/// How a request waits for its next try.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Failures that are added.
    pub attempts: i32,
    /// The try had an outcome that nobody knows.
    pub ambiguous: bool,
    /// For how long.
    pub pause: Duration,
}

/// How a request ends that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// It was refused, and no try before can have been accepted.
    Failed,
    /// It was sent or not, nobody knows.
    Unknown,
}

impl LockedCursor {
    /// Claims requests that this transaction has locked; nothing is claimed before [`Self::claimed`].
    ///
    /// # Errors
    /// The database's.
    pub async fn claim_requests(
        &self,
        token: &str,
        by: &str,
        lease: Duration,
        requests: &[ClaimedRequest<'_>],
    ) -> Result<(), Error> {
        let ids: Vec<&str> = requests.iter().map(|request| request.id).collect();
        let bodies: Vec<Option<&[u8]>> = requests.iter().map(|request| request.body).collect();
        let interrupted: Vec<bool> = requests.iter().map(|request| request.interrupted).collect();
        let lease = lease.as_secs_f64();
        let parameters: [&(dyn ToSql + Sync); 6] = [&token, &by, &lease, &ids, &bodies, &interrupted];
        self.claim(Taking { sql: CLAIM, parameters: &parameters }).await.map(drop)
    }

    /// Records requests that this transaction has locked as unknown; `interrupted` when the last claimant's try counts as
    /// one whose outcome nobody knows.
    ///
    /// # Errors
    /// The database's.
    pub async fn give_up_requests(
        &self,
        ids: &[&str],
        interrupted: bool,
        error: &ErrorReport<'_>,
    ) -> Result<(), Error> {
        let error = status::json(error);
        self.claim(Taking { sql: GIVE_UP, parameters: &[&ids, &interrupted, &error] }).await.map(drop)
    }
}

impl Settlement {
    /// The receivers have accepted these; the ids of those that are recorded. Others have been taken up by somebody else.
    ///
    /// # Errors
    /// The database's.
    pub async fn complete(&self, accepted: &[Accepted<'_>]) -> Result<HashSet<String>, Error> {
        let ids: Vec<&str> = accepted.iter().map(|accepted| accepted.request.id).collect();
        let tokens: Vec<&str> = accepted.iter().map(|accepted| accepted.request.token).collect();
        let provider_ids: Vec<Option<&str>> = accepted.iter().map(|accepted| accepted.provider_id).collect();
        let replies: Vec<&str> = accepted.iter().map(|accepted| accepted.reply).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&ids, &tokens, &provider_ids, &replies];
        let rows = self.query(Taking { sql: COMPLETE, parameters: &parameters }).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    /// The request is retried later; false when another replica has taken it up.
    ///
    /// # Errors
    /// The database's.
    pub async fn postpone(
        &self,
        request: NamedRequest<'_>,
        error: &ErrorReport<'_>,
        wait: Wait,
    ) -> Result<bool, Error> {
        let (error, seconds) = (status::json(error), wait.pause.as_secs_f64());
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&request.id, &request.token, &error, &wait.attempts, &wait.ambiguous, &seconds];
        self.changed(WAIT, &parameters).await
    }

    /// The request ends without having been accepted, by a try of whose outcome nobody knows, or not; false when another replica has taken it up.
    ///
    /// # Errors
    /// The database's.
    pub async fn end(
        &self,
        request: NamedRequest<'_>,
        error: &ErrorReport<'_>,
        end: RequestEnd,
        ambiguous: bool,
    ) -> Result<bool, Error> {
        let error = status::json(error);
        let status = if end == RequestEnd::Unknown { "unknown" } else { "failed" };
        self.changed(END, &[&request.id, &request.token, &error, &status, &ambiguous]).await
    }
}

/// Renews claims of requests whose outcomes cannot be recorded yet; the ids of those that are still this replica's, each with
/// whether it was renewed: not when another transaction had its row locked.
///
/// # Errors
/// The database's.
pub async fn keep(
    session: &Session,
    lease: Duration,
    claims: &[NamedRequest<'_>],
) -> Result<HashMap<String, bool>, Error> {
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id).collect();
    let tokens: Vec<&str> = claims.iter().map(|claim| claim.token).collect();
    let statement = session.prepare_cached(KEEP).await?;
    let rows = session.query(&statement, &[&lease.as_secs_f64(), &ids, &tokens]).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// A request that could not be pinned is retried after `pause`; false when it has been pinned by now, or has ended.
///
/// # Errors
/// The database's.
pub async fn put_off(session: &Session, id: &str, error: &ErrorReport<'_>, pause: Duration) -> Result<bool, Error> {
    let statement = session.prepare_cached(PUT_OFF).await?;
    let (error, seconds) = (status::json(error), pause.as_secs_f64());
    Ok(session.execute(&statement, &[&id, &seconds, &error]).await? > 0)
}

/// Makes a relay's templates known; another relay's that has one of them, with its name.
///
/// # Errors
/// The database's.
pub async fn register(
    client: &tokio_postgres::Client,
    relay: &str,
    templates: &[String],
) -> Result<Option<(String, String)>, Error> {
    client.execute(REGISTER, &[&relay, &templates]).await?;
    let taken = client.query_opt(TAKEN, &[&relay, &templates]).await?;
    taken.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

/// Templates of others among these, and templates of this relay that are none of these, each with its relay.
///
/// # Errors
/// The database's.
pub async fn templates(session: &Session, relay: &str, own: &[String]) -> Result<Vec<(String, String)>, Error> {
    let rows = session.query(TEMPLATES, &[&relay, &own]).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// How an operator gives templates of one relay, with their requests that have not been completed, to another; ends with SQL. The lock waits for transactions that made requests for the first relay and have not committed yet.
#[must_use]
pub fn hand_over(from: &str, to: &str, templates: &[String]) -> String {
    let one = if templates.len() == 1 { "the template" } else { "the templates" };
    let names = templates.iter().map(|name| quote_literal(name)).collect::<Vec<_>>().join(", ");
    let steps = format!(
        "take {one} out of relay {from}, stop it, decide its requests with an unknown outcome (`outbox-relay request settle`), because \
         relay {to} sends them with another Idempotency-Key, and run:"
    );
    let (from, to) = (quote_literal(from), quote_literal(to));
    format!(
        "{steps} BEGIN; UPDATE outbox.template SET relay = {to} WHERE relay = {from} AND name IN ({names}); COMMIT; \
         BEGIN; LOCK TABLE outbox.request IN SHARE ROW EXCLUSIVE MODE; UPDATE outbox.request SET relay = {to} WHERE relay = {from} AND template IN ({names}) AND status <> 'completed'; COMMIT;"
    )
}

/// Up to here requests of a relay that is not configured are counted.
pub const MOST_ORPHANS: i64 = 1_000;

/// Relays that are none of these and have requests to be sent, with their number.
///
/// # Errors
/// The database's.
pub async fn orphans(session: &Session, relays: &[String]) -> Result<Vec<(String, i64)>, Error> {
    let rows = session.query(ORPHANS, &[&relays, &MOST_ORPHANS]).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// How many requests of a relay have failed.
///
/// # Errors
/// The database's.
pub async fn failed(session: &Session, relay: &str) -> Result<i64, Error> {
    let statement = session.prepare_cached(FAILED).await?;
    Ok(session.query_one(&statement, &[&relay]).await?.try_get(0)?)
}
