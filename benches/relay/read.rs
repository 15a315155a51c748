//! `read_raw`: how quickly one connection reads the rows, and nothing else.

use anyhow::ensure;
use futures_util::{TryStreamExt as _, pin_mut};
use outbox_relay::position::Timestamp;
use tokio_postgres::binary_copy::BinaryCopyOutStream;
use tokio_postgres::types::{ToSql, Type};

use super::payload::Payload;
use super::process::{Raw, Stopwatch};
use super::stage::Stage;

/// Rows a page, as many as a turn of the relay has.
const PAGE: i64 = 20_000;

/// Reads typed columns page after page by keyset.
pub async fn keyset(stage: &Stage, payload: Payload, rows: u64) -> anyhow::Result<Raw> {
    stage.rest().await?;
    let client = stage.reader().await?;
    let sql = format!(
        "SELECT t.created_at, t.id, {} FROM {} t WHERE (t.created_at, t.id) > ($1, $2) ORDER BY t.created_at, t.id LIMIT $3",
        payload.sql(),
        payload.table()
    );
    let statement = client.prepare(&sql).await?;
    let watch = Stopwatch::start()?;
    let (mut at, mut id, mut read, mut bytes) = (Timestamp::NEG_INFINITY, 0_i64, 0_u64, 0);
    loop {
        let parameters: [&(dyn ToSql + Sync); 3] = [&at, &id, &PAGE];
        let page = client.query_raw(&statement, parameters).await?;
        pin_mut!(page);
        let before = read;
        while let Some(row) = page.try_next().await? {
            (at, id) = (row.try_get(0)?, row.try_get(1)?);
            bytes += row.try_get::<_, &str>(2)?.len();
            read += 1;
        }
        if read == before {
            break;
        }
    }
    let raw = watch.stop(rows)?;
    ensure!(read == rows && bytes > 0, "read {read} rows, expected {rows}");
    Ok(raw)
}

/// Reads the same by one binary COPY.
pub async fn copy(stage: &Stage, payload: Payload, rows: u64) -> anyhow::Result<Raw> {
    stage.rest().await?;
    let client = stage.reader().await?;
    let sql = format!(
        "COPY (SELECT t.created_at, t.id, {} FROM {} t ORDER BY t.created_at, t.id) TO STDOUT (FORMAT binary)",
        payload.sql(),
        payload.table()
    );
    let watch = Stopwatch::start()?;
    let stream = BinaryCopyOutStream::new(client.copy_out(&sql).await?, &[Type::TIMESTAMPTZ, Type::INT8, Type::TEXT]);
    pin_mut!(stream);
    let (mut read, mut bytes) = (0, 0);
    while let Some(row) = stream.try_next().await? {
        let (_at, _id): (Timestamp, i64) = (row.try_get(0)?, row.try_get(1)?);
        bytes += row.try_get::<&str>(2)?.len();
        read += 1;
    }
    let raw = watch.stop(rows)?;
    ensure!(read == rows && bytes > 0, "copied {read} rows, expected {rows}");
    Ok(raw)
}
