//! Transactions that commit after later rows were passed: each kind as it was found, against the relay that waits for none.

use std::time::Duration;

use anyhow::Context as _;
use axum::body::Bytes;
use futures_util::SinkExt as _;
use outbox_testkit::postgres::connect;
use outbox_testkit::wait::until;
use tokio_postgres::Client;
use tokio_util::task::AbortOnDropHandle;

use super::tables::HASTY;
use crate::soak::kinds::Plant;
use crate::soak::stage::Access;

/// What the second transaction of a message waits for.
const GATE: i64 = 7;

/// Commits so many rows of a customer that the relay has passed by then.
pub async fn commit(access: &Access, kind: Plant, role: &str, (who, rows): (&str, usize)) -> anyhow::Result<()> {
    let owner = access.owner().await?;
    match kind {
        Plant::Message => return message(access, &owner, who, rows).await,
        Plant::Copy => return copy(access, &owner, who, rows).await,
        _ => {}
    }
    let insert = format!("INSERT INTO public.hasty (customer) SELECT '{who}' FROM generate_series(1, {rows})");
    let (role, open, end) = match kind {
        Plant::Savepoint => {
            let saved =
                format!("SAVEPOINT a; {insert}; ROLLBACK TO SAVEPOINT a; SAVEPOINT b; {insert}; RELEASE SAVEPOINT b");
            ("app", saved, "COMMIT".to_owned())
        }
        Plant::Prepared => {
            ("app", format!("{insert}; PREPARE TRANSACTION '{who}'"), format!("COMMIT PREPARED '{who}'"))
        }
        Plant::OwnRole => {
            let booked = format!("SELECT public.book_hasty('{who}') FROM generate_series(1, {rows})");
            (role, booked, "COMMIT".to_owned())
        }
        _ => ("app", insert, "COMMIT".to_owned()),
    };
    let writer = connect(&access.url(role)).await?;
    writer.batch_execute(&format!("BEGIN; {open}")).await?;
    is_passed(&owner).await?;
    Ok(writer.batch_execute(&end).await?)
}

/// Waits until a row that is committed now has been passed: whatever was stamped before is below the position.
async fn is_passed(owner: &Client) -> anyhow::Result<()> {
    let marker = "INSERT INTO public.hasty (customer) VALUES ('marker') RETURNING created_at::text";
    let marker: String = owner.query_one(marker, &[]).await?.get(0);
    let passed =
        "SELECT COALESCE(position_created_at >= $2::text::timestamptz, false) FROM outbox.cursor WHERE name = $1";
    until(Duration::from_secs(30), "a row that is newer has been passed", async || {
        Ok(owner.query_one(passed, &[&HASTY, &marker]).await?.get(0))
    })
    .await
}

async fn copy(access: &Access, owner: &Client, who: &str, rows: usize) -> anyhow::Result<()> {
    let mut writer = connect(&access.url("app")).await?;
    let transaction = writer.transaction().await?;
    let sink = transaction.copy_in::<_, Bytes>("COPY public.hasty (customer) FROM STDIN").await?;
    let mut sink = std::pin::pin!(sink);
    for _ in 0..rows {
        sink.send(Bytes::from(format!("{who}\n"))).await?;
    }
    sink.finish().await?;
    is_passed(owner).await?;
    Ok(transaction.commit().await?)
}

/// `now()` of the second transaction is when the message came.
async fn message(access: &Access, owner: &Client, who: &str, rows: usize) -> anyhow::Result<()> {
    let gate = access.owner().await?;
    gate.query_one("SELECT pg_advisory_lock($1)", &[&GATE]).await?;
    let writer = connect(&access.url("app")).await?;
    let wait = format!("SELECT pg_advisory_lock_shared({GATE}), pg_advisory_unlock_shared({GATE})");
    let insert = format!(
        "INSERT INTO public.hasty (created_at, customer) SELECT now(), '{who}' FROM generate_series(1, {rows})"
    );
    let sql = format!("BEGIN; {wait}; COMMIT; BEGIN; {insert}; COMMIT");
    let sending = AbortOnDropHandle::new(tokio::spawn(async move { writer.batch_execute(&sql).await }));
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1::bigint::oid \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    until(Duration::from_secs(30), "the message waits", async || Ok(owner.query_one(waits, &[&GATE]).await?.get(0)))
        .await?;
    is_passed(owner).await?;
    gate.query_one("SELECT pg_advisory_unlock($1)", &[&GATE]).await?;
    Ok(sending.await.context("the message")??)
}
