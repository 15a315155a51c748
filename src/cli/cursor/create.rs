//! `outbox-relay cursor create`.

use std::process::ExitCode;

use super::place::Place;
use super::subject::{Subject, json, place};
use crate::cli::confirm::operator;
use crate::cli::output::print;
use crate::config::Config;
use crate::cursor::{Creation, control};
use crate::relay::lag;
use crate::relay::prepare;

/// Arguments of `cursor create`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor create booking_sms --now                          only rows from now on
  outbox-relay cursor create booking_events --at 2026-11-21T00:00:00Z   from this instant on
  outbox-relay cursor create booking_events --after-id 4711             go on where another program has ended

The relay must be configured. Do it before the first `outbox-relay run`: that one makes the cursor where `start` says. A
cursor that exists is left alone, and the exit code is 1: `outbox-relay cursor seek` moves it.")]
pub struct Args {
    /// The cursor's name: its relay's
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where it begins.
    #[command(flatten)]
    pub place: Place,
}

/// Makes the cursor's row.
pub(super) async fn run(config: Config, args: &Args) -> anyhow::Result<ExitCode> {
    let mut subject = Subject::open(config, &args.name).await?;
    let name = args.name.as_str();
    let to = args.place.find(&subject).await?;
    subject.warn_of_detached(to.as_ref()).await?;
    let identity = prepare::identity(&subject.session, &subject.relay).await?;
    let now = subject.watcher.scan(&subject.shape).await?.clock();
    let waiting = lag::measure(&subject.session, &subject.shape, to.as_ref(), now).await?;
    let creation = Creation { name, relay: name, identity: &identity, position: to.as_ref() };
    let detail = serde_json::json!({ "at": json(to.as_ref()) }).to_string();
    if !control::create(&mut subject.session, creation, &operator(), &detail).await? {
        anyhow::bail!(
            "the cursor {name} exists already: `outbox-relay cursor show {name}` shows it, `outbox-relay cursor seek {name}` \
             moves it"
        );
    }
    let more = if waiting.capped { "+" } else { "" };
    print(&format!("{name}: created at {}; {}{more} committed rows lie after it\n", place(to.as_ref()), waiting.rows))?;
    Ok(ExitCode::SUCCESS)
}
