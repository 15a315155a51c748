//! `outbox-relay schedule`: what operators do with schedules. Applications write them in plain SQL.

use std::process::ExitCode;

use super::confirm::operator;
use super::format::Format;
use super::output::print;
use super::table::visible;
use crate::config::{Config, Problems};
use crate::cursor::control::ControlOutcome;
use crate::database::Session;
use crate::jobs::timetable::{self, ScheduleFilter, ScheduleSummary};

mod list;
pub mod preview;
mod run_now;
mod show;

/// Arguments of `schedule`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay schedule preview \"FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9\" --zone Europe/Berlin
      what a rule means, before it is written
  outbox-relay schedule list
      what is due when, in its zone and in UTC, and the status of the last
  outbox-relay schedule list --problems            those that cannot run, and why
  outbox-relay schedule show report
      everything about one, its next five and last ten occurrences
  outbox-relay schedule pause report               it makes no occurrences until it is resumed
  outbox-relay schedule resume report              it goes on with the first occurrence after now
  outbox-relay schedule run-now tenant_a/report    makes an action at once, whatever its rule says

A schedule is named by its name, by TENANT/NAME, or by its id. Applications write schedules in plain SQL, as rows of \
outbox.schedule; none of these verbs changes what a rule says.

Exit codes: 0 done; 1 failed, or there is no such schedule; 2 usage or configuration.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with schedules.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List them, by relay, tenant and name
    List(list::Args),
    /// Show everything about one schedule, its next five and last ten occurrences
    Show(show::Args),
    /// Show what a recurrence rule means and when it is due, in local time and UTC; asks no server
    Preview(preview::Args),
    /// Let a schedule make no more occurrences
    #[command(after_help = "\
Examples:
  outbox-relay schedule pause report               no occurrence is made, on no replica

Actions that are due or running go on. What falls into the pause is not made up for: it is no missed occurrence.")]
    Pause {
        /// Its name, TENANT/NAME, or id
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// End a pause
    #[command(after_help = "\
Examples:
  outbox-relay schedule resume report              it goes on with the first occurrence after now

A rule without starts_at that has COUNT begins to count again.")]
    Resume {
        /// Its name, TENANT/NAME, or id
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make an action of a schedule at once
    RunNow(run_now::Args),
}

/// Does it. A preview needs no configuration: `load` is for the others.
///
/// # Errors
/// The configuration's, the database's, or there is no such schedule, or several have this name.
pub async fn run(load: impl FnOnce() -> Result<Config, Problems>, args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Preview(args) => preview::run(&args),
        Verb::List(args) => {
            let (config, session) = open(load).await?;
            super::known::relay(&session, &config, "relay", args.relay.as_deref()).await?;
            list::run(&session, &args).await
        }
        Verb::Show(args) => show::run(&open(load).await?.1, &args).await,
        Verb::Pause { name } => {
            let mut session = open(load).await?.1;
            let schedule = named(&session, &name).await?;
            let outcome = timetable::enable(&mut session, schedule.id, false, &operator()).await?;
            say(
                &schedule,
                outcome,
                "paused: no occurrence is made until `outbox-relay schedule resume`",
                "paused already",
            )
        }
        Verb::Resume { name } => {
            let mut session = open(load).await?.1;
            let schedule = named(&session, &name).await?;
            let outcome = timetable::enable(&mut session, schedule.id, true, &operator()).await?;
            say(&schedule, outcome, "resumed: it goes on with the first occurrence after now", "not paused")
        }
        Verb::RunNow(args) => {
            let (config, mut session) = open(load).await?;
            run_now::run(&config, &mut session, &args).await
        }
    }
}

async fn open(load: impl FnOnce() -> Result<Config, Problems>) -> anyhow::Result<(Config, Session)> {
    let config = load()?;
    let session = super::schema_session(&config, "schedule").await?;
    Ok((config, session))
}

fn say(schedule: &ScheduleSummary, outcome: ControlOutcome, done: &str, already: &str) -> anyhow::Result<ExitCode> {
    let name = title(schedule);
    match outcome {
        ControlOutcome::Done => print(&format!("{name}: {done}\n"))?,
        ControlOutcome::Already => print(&format!("{name}: {already}\n"))?,
        ControlOutcome::Unknown => return Err(unknown(&schedule.name)),
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow::anyhow!("there is no schedule {name}; `outbox-relay schedule list` shows them")
}

/// The one schedule of this name. An id names the schedule that has it, before any name.
async fn named(client: &tokio_postgres::Client, name: &str) -> anyhow::Result<ScheduleSummary> {
    if let Ok(id) = name.parse() {
        let filter = ScheduleFilter { id: Some(id), limit: 1, ..ScheduleFilter::default() };
        if let Some(found) = timetable::list(client, filter).await?.pop() {
            return Ok(found);
        }
    }
    let filter = ScheduleFilter { name: Some(name), limit: 10, ..ScheduleFilter::default() };
    let mut found = timetable::list(client, filter).await?;
    match found.len() {
        0 => Err(unknown(name)),
        1 => Ok(found.remove(0)),
        _ => {
            let all: Vec<_> = found.iter().map(|one| format!("{} (id {})", title(one), one.id)).collect();
            anyhow::bail!("{name} names several schedules: {}; say which by its id", all.join(", "))
        }
    }
}

/// A schedule's name for people, its tenant before it.
pub(super) fn title(schedule: &ScheduleSummary) -> String {
    match &*schedule.tenant {
        "" => visible(&schedule.name),
        tenant => visible(&format!("{tenant}/{}", schedule.name)),
    }
}
