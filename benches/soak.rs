//! Storms, one after the other: `make soak`, `make soak HOURS=3 SEED=7 ARGS=--help`.
//!
//! A storm is one table, one relay of several replicas, writers, an owner who changes the table, and faults, all drawn from
//! one seed. In the end what the table has is compared with what arrived; docs/SOAK.md says what a verdict means.

/// The parts.
#[allow(unreachable_pub, reason = "a program: `pub` says what a module offers the others")]
mod soak {
    pub mod ddl;
    pub mod draw;
    pub mod faults;
    pub mod journal;
    pub mod judge;
    pub mod kinds;
    pub mod moves;
    pub mod operator;
    pub mod options;
    pub mod proxy;
    pub mod receiver;
    pub mod replicas;
    pub mod stage;
    pub mod storm;
    pub mod table;
    pub mod tally;
    pub mod writers;
}

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use soak::draw::Draw;
use soak::options::Options;
use soak::stage::Stage;
use soak::storm;
use soak::tally::Tally;
use tokio_util::sync::CancellationToken;

/// After so many storms in a row that could not be played the next one could not be, either.
const BROKEN: u32 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Some(options) = Options::from_args(std::env::args().skip(1))? else { return Ok(ExitCode::SUCCESS) };
    // What is pinned wrongly is said before servers are started.
    Draw::new(options.seed, &options.pins)?;
    std::fs::create_dir_all("target/soak")?;
    let stop = CancellationToken::new();
    outbox_relay::shutdown::watch(stop.clone(), CancellationToken::new(), Duration::ZERO)?;
    let mut stage = Stage::start().await.context("the stage")?;
    let mut tally = Tally::new(&options.relay, stage.access.major);
    println!("seed {}, PostgreSQL {}, {}", options.seed, stage.access.major, options.relay.display());
    let mut broken = 0;
    while broken < BROKEN && tally.storms() < options.storms && tally.elapsed() < options.duration {
        let draw = Draw::new(options.seed.wrapping_add(tally.storms()), &options.pins)?;
        let played = tokio::select! {
            played = storm::play(&mut stage, draw.clone(), &options.relay) => played,
            // What is dropped here kills what it has started.
            () = stop.cancelled() => break,
        };
        match played {
            Ok(storm) => {
                broken = 0;
                tally.add(&storm)?;
            }
            Err(error) => {
                broken += 1;
                tally.add_broken(&draw, &error)?;
                drop(stage);
                stage = Stage::start().await.context("the stage, again")?;
            }
        }
    }
    tally.print();
    stage.stop().await?;
    Ok(ExitCode::from(tally.exit_code()))
}
