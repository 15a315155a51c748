//! `outbox-relay cursor create`.

use std::process::ExitCode;

use super::named;
use super::place::Place;
use super::subject::{Subject, at_place, json};
use crate::cli::confirm::operator;
use crate::cli::output::print;
use crate::config::Config;
use crate::cursor::shards::strangers;
use crate::cursor::{Creation, control};
use crate::relay;
use crate::relay::engine::lag;
use crate::relay::inspect::waiting_rows;
use crate::relay::setup::prepare;
use crate::source;

/// Arguments of `cursor create`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor create booking_sms --now                          only rows from now on
  outbox-relay cursor create booking_events --at 2026-11-21T00:00:00Z   from this instant on
  outbox-relay cursor create booking_events --after-id 4711
      go on where another program has ended

The relay must be configured. Do it before the first `outbox-relay run`: that one makes the cursor where `start` says. A \
cursor that exists is left alone, and the exit code is 1: `outbox-relay cursor seek` moves it.

Exit codes: 0 done; 1 failed, or the cursor exists; 2 usage, or an unknown relay.")]
pub struct Args {
    /// The cursor's name: its relay's; of a relay with shards, all of them are made
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where it begins.
    #[command(flatten)]
    pub place: Place,
}

/// Makes the cursor's row; of a relay with shards, the rows of all.
pub(super) async fn run(config: Config, args: &Args) -> anyhow::Result<ExitCode> {
    for name in named::configured(&config, &args.name) {
        make(config.clone(), &args.place, &name).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn make(config: Config, at: &Place, name: &str) -> anyhow::Result<()> {
    if let Some(relay) = config.relays.iter().find(|relay| relay.name == name)
        && !matches!(relay.source, source::Config::Stream(_))
    {
        let what = match relay.source {
            source::Config::Requests(_) => "requests",
            source::Config::Schedule(_) => "actions of schedules",
            source::Config::Stream(_) | source::Config::Pending(_) => "due work",
        };
        anyhow::ensure!(at.beginning, "relay {name} reads {what}, which has no position: write --beginning");
        return make_of_due_work(&config, relay).await;
    }
    let mut subject = Subject::open(config, name).await?;
    let to = at.find(&subject).await?;
    subject.warn_of_detached(to.as_ref()).await?;
    let identity = prepare::identity(&subject.session, &subject.relay).await?;
    let now = subject.watcher.scan(&subject.shape).await?.clock();
    let waiting = lag::measure(&subject.session, &subject.shape, to.as_ref(), now).await?;
    let relay = subject.relay.relay.as_str();
    if let Some(other) = strangers(&subject.session, relay, &identity).await?.first() {
        anyhow::bail!(
            "relay {relay} has the cursor {}, of another number of shards: `outbox-relay cursor reshard {relay}` hands its \
             rows over",
            other.name
        );
    }
    let (rule, sweep) = (Some(subject.shape.rule.as_str()), subject.shape.sweep);
    let creation = Creation { name, relay, identity: &identity, position: to.as_ref(), rule, sweep };
    let detail = serde_json::json!({ "at": json(to.as_ref()) }).to_string();
    let created = control::create(&mut subject.session, creation, &operator(), &detail).await?;
    anyhow::ensure!(
        created,
        "the cursor {name} exists already: `outbox-relay cursor show {name}` shows it, `outbox-relay cursor seek {name}` moves it"
    );
    let more = if waiting.capped { "+" } else { "" };
    let rows = if waiting.rows == 1 {
        "1 committed row lies".to_owned()
    } else {
        format!("{}{more} committed rows lie", waiting.rows)
    };
    print(&format!("{name}: created {}; {rows} after it\n", at_place(to.as_ref())))?;
    Ok(())
}

/// Makes the cursor's row of a relay that sends its rows each on their own: it sends all that are due and not sent.
async fn make_of_due_work(config: &Config, relay: &relay::Config) -> anyhow::Result<()> {
    let mut session = crate::cli::schema_session(config, "cursor").await?;
    let name = relay.name.as_str();
    let identity = prepare::identity(&session, relay).await?;
    let creation = Creation { name, relay: &relay.relay, identity: &identity, position: None, rule: None, sweep: None };
    let created = control::create(&mut session, creation, &operator(), "{}").await?;
    anyhow::ensure!(created, "the cursor {name} exists already: `outbox-relay cursor show {name}` shows it");
    let waiting = waiting_rows::of_due_work(&session, relay).await?;
    let waiting = waiting.map_or_else(|| "unknown".to_owned(), |lag| lag.rows.to_string());
    let what = match relay.source {
        source::Config::Requests(_) => "requests due",
        source::Config::Schedule(_) => "actions due",
        source::Config::Stream(_) | source::Config::Pending(_) => "rows due and not marked as sent",
    };
    print(&format!("{name}: created; {what}: {waiting}\n"))?;
    Ok(())
}
