//! Fair shares: each of many cursors gets the same backlog at the same instant; how long does each take?

use std::time::{Duration, Instant};

use anyhow::bail;

use super::figure::median;
use super::many::Many;

const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(250);

/// What was found.
#[derive(Debug)]
pub struct Shares {
    /// How many rows each cursor had to deliver.
    pub rows: u64,
    /// The seconds that each took.
    seconds: Vec<f64>,
}

/// Fills all tables in one transaction and waits until each cursor stands at its table's last row.
pub async fn measure(many: &Many, rows: u64) -> anyhow::Result<Shares> {
    let owner = &many.owner;
    let insert = many.tables.iter().map(|table| {
        format!(
            "INSERT INTO {table} (customer, payload) \
             SELECT 'c' || i % 50, rpad(i::text, 200, 'x') FROM generate_series(1, {rows}) AS i;"
        )
    });
    owner.batch_execute(&format!("BEGIN; {} COMMIT", insert.collect::<String>())).await?;
    let start: String = owner.query_one("SELECT clock_timestamp()::text", &[]).await?.get(0);
    let mut last = Vec::new();
    for table in &many.tables {
        last.push(owner.query_one(&format!("SELECT max(id)::text FROM {table}"), &[]).await?.get::<_, String>(0));
    }
    // The number of a cursor says its table.
    let sql = "SELECT count(*) FROM outbox.cursor AS c WHERE c.name LIKE 'many-%' \
        AND c.position_id = ($1::text[])[1 + substr(c.name, 6)::int % cardinality($1::text[])]";
    let begun = Instant::now();
    while owner.query_one(sql, &[&last]).await?.get::<_, i64>(0) < i64::try_from(many.cursors)? {
        if begun.elapsed() > PATIENCE {
            bail!("not all cursors are done within {PATIENCE:?}");
        }
        tokio::time::sleep(POLL).await;
    }
    let sql = "SELECT extract(epoch FROM advanced_at - $1::text::timestamptz)::float8 \
        FROM outbox.cursor WHERE name LIKE 'many-%'";
    let seconds = owner.query(sql, &[&start]).await?.iter().map(|row| row.get(0)).collect();
    Ok(Shares { rows, seconds })
}

impl Shares {
    fn longest(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }

    /// The rate of the slowest cursor by that of the median one.
    pub fn slowest_by_median(&self) -> f64 {
        median(&self.seconds) / self.longest()
    }

    /// Of all cursors together, until the last is done.
    pub fn rows_per_second(&self) -> f64 {
        self.rows as f64 * self.seconds.len() as f64 / self.longest()
    }
}
