//! Storms, one after the other: `make soak`, `make soak HOURS=3 SEED=7 ARGS=--help`.
//!
//! A storm is one table, one relay of several replicas, writers, an owner who changes the table, and faults, all drawn from
//! one seed. In the end what the table has is compared with what arrived; docs/SOAK.md says what a verdict means.
//!
//! Two other parts stand on the same stage: `planted` loses rows on purpose, which `verify` and the audit must name (`make
//! test-planted`), and `promotions` makes primaries of standbys (`make test-promotions`).

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
    pub mod planted;
    pub mod promotions;
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
use soak::options::{Options, Part};
use soak::stage::Stage;
use soak::tally::Tally;
use soak::{planted, promotions, storm};
use tokio_util::sync::CancellationToken;

/// After so many storms in a row that could not be played the next one could not be, either.
const BROKEN: u32 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Some(options) = Options::from_args(std::env::args().skip(1))? else { return Ok(ExitCode::SUCCESS) };
    std::fs::create_dir_all("target/soak")?;
    let stop = CancellationToken::new();
    outbox_relay::shutdown::watch(stop.clone(), CancellationToken::new(), Duration::ZERO)?;
    let code = match options.part {
        Part::Storms => storms(&options, &stop).await?,
        // What is dropped when a signal comes kills what it has started.
        Part::Planted => stop.run_until_cancelled(planted::play(&options)).await.context("told to stop")??,
        Part::Promotions => stop.run_until_cancelled(promotions::play(&options)).await.context("told to stop")??,
    };
    Ok(ExitCode::from(code))
}

/// Plays storms until it is enough; what the program ends with.
async fn storms(options: &Options, stop: &CancellationToken) -> anyhow::Result<u8> {
    // What is pinned wrongly is said before servers are started.
    Draw::new(options.seed, &options.pins)?;
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
    Ok(tally.exit_code())
}
