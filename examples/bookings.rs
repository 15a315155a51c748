//! The local stack's application: writes bookings with long transactions, rollbacks and savepoints until a signal.
//!
//! `bookings postgresql://app:…@postgres/app 20` writes 20 rows a second.

use anyhow::Context as _;
use futures_util::StreamExt as _;
use outbox_testkit::bookings::{Load, Writers};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let usage = "usage: bookings URL ROWS_PER_SECOND";
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context(usage)?;
    let rate: f64 = arguments.next().context(usage)?.parse().context(usage)?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let load = Load { writers: 4, rows_per_second: Some(rate), payload: 100..=1_000, ..Load::default() };
    let writers = Writers::start(&url, load).await?;
    println!("Writing {rate} bookings a second");
    signals.next().await;
    let written = writers.stop().await?;
    println!("{} bookings committed, {} transactions rolled back", written.rows, written.rolled_back);
    Ok(())
}
