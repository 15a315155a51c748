//! `outbox-relay schedule run-now`.

use std::process::ExitCode;

use super::{ScheduleSummary, named, operator, print, timetable, title, unknown};
use crate::cli::output::complain;
use crate::cli::table::visible;
use crate::config::Config;
use crate::database::Session;
use crate::jobs::schedules;
use crate::relay::engine::replicas;
use crate::source;

/// Arguments of `schedule run-now`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay schedule run-now report             one action, as if it were due now
  outbox-relay action list --schedule report       its status

The rule is not touched: its occurrences come as before. The action is carried out by a replica, also while the schedule is \
paused. If an earlier one of the schedule has not ended, it is queued behind it, whatever the schedule's `overlap` says. Of a \
schedule for each tenant there is one action for each schema that the relay's `schema` matches now.")]
pub struct Args {
    /// Its name, TENANT/NAME, or id
    #[arg(value_name = "NAME")]
    pub name: String,
}

pub(super) async fn run(config: &Config, session: &mut Session, args: &Args) -> anyhow::Result<ExitCode> {
    let schedule = named(session, &args.name).await?;
    let tenants = if schedule.tenant == "*" { tenants(config, session, &schedule).await? } else { Vec::new() };
    let made = timetable::run_now(session, schedule.id, &tenants, &operator()).await?;
    for action in made.ok_or_else(|| unknown(&args.name))? {
        let of = match &*action.tenant {
            "" => String::new(),
            tenant => format!(" of {}", visible(tenant)),
        };
        let status = match &*action.status {
            "queued" => "queued behind an earlier one that has not ended",
            status => status,
        };
        print(&format!("{}: action {}{of}: {status}\n", title(&schedule), action.id))?;
    }
    if replicas::running(session).await?.is_empty() {
        complain("no replica is running: the next `outbox-relay run` carries it out");
    }
    if let Some(problem) = &schedule.problem {
        complain(format!("{} has a problem: {problem}", title(&schedule)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The tenants of a schedule for each tenant, by its relay's configuration.
async fn tenants(config: &Config, session: &Session, schedule: &ScheduleSummary) -> anyhow::Result<Vec<String>> {
    let relay = config.relays.iter().find(|relay| relay.name == schedule.relay);
    let schema = relay.and_then(|relay| match &relay.source {
        source::Config::Schedule(source) => source.schema.as_deref(),
        source::Config::Stream(_) | source::Config::Pending(_) | source::Config::Requests(_) => None,
    });
    let (name, relay) = (title(schedule), visible(&schedule.relay));
    let Some(schema) = schema else {
        anyhow::bail!(
            "{name} is for each tenant, and this configuration does not say which schemas are the tenants of relay {relay}: \
             run this with the configuration that the replicas have; its [relay.source.schedule] has the key schema"
        )
    };
    let tenants = schedules::tenants(session, schema).await?;
    anyhow::ensure!(!tenants.is_empty(), "{name} is for each tenant, and no schema is called {schema}");
    Ok(tenants)
}
