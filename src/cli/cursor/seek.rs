//! `outbox-relay cursor seek`.

use std::process::ExitCode;

use super::place::Place;
use super::subject::{Subject, place};
use super::wait::Wait;
use super::{agreed, named};
use crate::cli::confirm::Consent;
use crate::cli::output::{complain, print};
use crate::config::Config;
use crate::cursor::Order;

/// Arguments of `cursor seek`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor seek booking_events --at 2026-11-21T08:00:00Z --dry-run
      which rows would come again?
  outbox-relay cursor seek booking_events --at 2026-11-21T08:00:00Z
      from this instant on, once more
  outbox-relay cursor seek booking_events --after-id 4711 --yes
      go on after row 4711
  outbox-relay cursor seek booking_sms --now
      leave the backlog behind
  outbox-relay cursor seek booking_events --beginning
      everything, once more

Back: receivers get rows again, with the same ids; for SMS that means people. Forward: the rows in between are never sent. \
It also works on a paused or a halted cursor, which stays paused or halted, and accepts PostgreSQL's clock after it was \
set back.

Exit codes: 0 done, or stored where no replica runs; 1 failed or declined; 2 usage, an unknown relay, or no terminal to confirm it: \
add --yes; 3 not carried out in time.")]
pub struct Args {
    /// The cursor's name, or that of a relay with shards: each of them is moved
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where to.
    #[command(flatten)]
    pub place: Place,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
    /// How long to wait.
    #[command(flatten)]
    pub wait: Wait,
}

/// Moves it; of a relay with shards, each of them, until one is declined or fails.
pub(super) async fn run(config: Config, args: &Args) -> anyhow::Result<ExitCode> {
    for name in named::configured(&config, &args.name) {
        let code = one(config.clone(), args, &name).await?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what the move would do, asks, writes the change and waits for it.
async fn one(config: Config, args: &Args, name: &str) -> anyhow::Result<ExitCode> {
    let mut subject = Subject::open(config, name).await?;
    let standing = subject.standing().await?;
    let to = args.place.find(&subject).await?;
    subject.warn_of_detached(to.as_ref()).await?;
    let (text, detail) = subject.effect(standing.position.as_ref(), to.as_ref()).await?;
    print(&text)?;
    let instant = to.as_ref().map(|to| to.created_at);
    let future = "SELECT COALESCE($1::timestamptz > pg_catalog.clock_timestamp(), false)";
    if subject.session.query_one(future, &[&instant]).await?.try_get(0)? {
        print("WARNING: that instant is in the future: rows that are created until then will never be sent\n")?;
    }
    if let Some(code) = agreed(args.consent, &format!("Move {name}?"))? {
        return Ok(code);
    }
    let change = Order { to: to.as_ref(), ..Order::default() };
    let said =
        |moved| Ok(if moved { format!("moved to {}", place(to.as_ref())) } else { "stands there already".to_owned() });
    let code = args.wait.for_change(&mut subject, &change, ("cursor seek", &detail), said).await?;
    if standing.halted.is_some() || standing.paused {
        let what = if standing.halted.is_some() { "halted" } else { "paused" };
        complain(format_args!("{name} is still {what}: `outbox-relay cursor resume {name}` lets it go on"));
    }
    Ok(code)
}
