//! `outbox-relay verify`: is anything missing?

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use super::confirm::{Answer, Consent, confirm, operator};
use super::format::Format;
use super::output::{complain, print};
use crate::config::{Config, parse_duration};
use crate::database::{Limits, Session, Sessions};
use crate::position::Timestamp;
use crate::verify::record::Place;
use crate::verify::topic::Watch;
use crate::verify::{Error, Range, Report, Subject, repair};
use side::Side;

mod follow;
mod printed;
mod progress;
mod side;
mod subject;

/// Limits of its session: pages are read by statements of seconds.
const LIMITS: Limits = Limits { statement: Duration::from_secs(60), lock_kill: Duration::from_secs(120) };

/// Arguments of `verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay verify booking_events               the last hour, id by id
  outbox-relay verify booking_events --since 7d -o json
  outbox-relay verify booking_events --repair      what would be published again?
  outbox-relay verify booking_events --repair --yes
  outbox-relay verify --table public.outbox --topic orders --id header:id --follow
      another publisher on trial: until Ctrl-C, then a report
  outbox-relay verify --table public.outbox --topic orders --id 'payload:$.id'

It compares the rows that the relay's cursors have passed with the records of its topic, and names every id that differs: \
not_delivered, not_in_topic, out_of_order, not_in_table (rolled back, or deleted) or twice. Rows after the position are not due; \
rows that are still to come late, dead letters and rows that an operator passed over are counted apart.

A relay of another sink is compared, by its name, with what its cursors have recorded that they passed: not_delivered or \
not_in_table. That is kept for two hours, or for [audit] keep; what cannot be compared is said, and is not equal.

It reads only, with the relay's role and a consumer that joins no group and commits nothing. Only --repair writes: it has the \
relay publish what the topic lacks, as `outbox-relay dead-letter redrive` does.

--timeout: no limit unless given, because a comparison takes as long as it takes; each answer of a server has limits of its own.

Exit codes: 0 equal; 3 different; 1 could not be compared, or not all of it, or declined; 2 usage, or an unknown relay.")]
pub struct Args {
    /// The relay; without it, all that publish to Kafka
    #[arg(value_name = "RELAY", conflicts_with = "table")]
    pub relay: Option<String>,
    /// Rows since so long ago, or since this instant (RFC 3339)
    #[arg(long, value_name = "DURATION|RFC3339", value_parser = since, default_value = "1h")]
    pub since: Since,
    /// Rows before this instant (RFC 3339); now by default
    #[arg(long, value_name = "RFC3339", value_parser = instant)]
    pub until: Option<Timestamp>,
    /// How to print the result
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// How many differences to print; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,
    /// Show which rows would be published because the topic lacks them; with --yes, have the relay publish them
    #[arg(long, conflicts_with_all = ["table", "follow"])]
    pub repair: bool,
    /// Do it without asking; needed where standard input is no terminal
    #[arg(long, requires = "repair", conflicts_with = "dry_run")]
    pub yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long, requires = "repair")]
    pub dry_run: bool,
    /// Go on with what is new until Ctrl-C, SIGHUP or --until, then report on all of it
    #[arg(long)]
    pub follow: bool,
    /// Another publisher on trial.
    #[command(flatten)]
    pub trial: Trial,
}

/// Another publisher on trial: the table that it reads, and the topic that it writes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Another publisher on trial")]
pub struct Trial {
    /// The table that it publishes, with its schema
    #[arg(long, value_name = "SCHEMA.TABLE", requires_all = ["topic", "id"])]
    pub table: Option<String>,
    /// The topic that it publishes to
    #[arg(long, value_name = "TOPIC", requires = "table")]
    pub topic: Option<String>,
    /// Where a record has the row's id: header:NAME, or payload:$.name.name in a JSON payload
    #[arg(long, value_name = "PLACE", requires = "table")]
    pub id: Option<Place>,
    /// Where a record has the row's created_at, in the same form; without it, its own timestamp counts, and no order is judged
    #[arg(long, value_name = "PLACE", requires = "table")]
    pub created_at: Option<Place>,
    /// The column of the id
    #[arg(long, value_name = "COLUMN", requires = "table", default_value = crate::config::DEFAULT_ID)]
    pub id_column: String,
    /// The column that says when a row was made
    #[arg(long, value_name = "COLUMN", requires = "table", default_value = crate::config::DEFAULT_CREATED_AT)]
    pub created_at_column: String,
    /// Only records that have this header with this value
    #[arg(long, value_name = "NAME=VALUE", requires = "table", value_parser = header)]
    pub relay_header: Option<(String, String)>,
    /// How long it may take to publish a row: younger ones are not compared, and what is missing is looked for again after it
    #[arg(long, value_name = "DURATION", requires = "table", value_parser = parse_duration, default_value = "10s")]
    pub grace: Duration,
}

/// Where a range begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So long before now.
    Ago(Duration),
    /// Here.
    At(Timestamp),
}

fn since(text: &str) -> Result<Since, String> {
    if text.contains(['T', 't', ':']) { instant(text).map(Since::At) } else { parse_duration(text).map(Since::Ago) }
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).map_err(|error| format!("{error}; write for example 2026-11-21T08:00:00Z"))
}

fn header(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "write NAME=VALUE".to_owned())
}

/// Does it.
///
/// # Errors
/// When a side cannot be read, or there is no such relay (exit code 2).
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let mut session = session(&config).await?;
    let named = args.relay.is_some() || args.trial.table.is_some();
    let subjects = subject::all(config, &session, &args).await?;
    if args.follow {
        return follow::run(&session, subjects, &args).await;
    }
    let began = clock(&session).await?;
    let (mut reports, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for subject in &subjects {
        let report = async { compared(&session, subject, range(&session, subject.grace(), &args).await?).await };
        match report.await {
            Ok(report) => reports.push((subject, report)),
            Err(error) if named || session.is_closed() => return Err(error),
            // The others are compared all the same.
            Err(error) => {
                complain(format_args!("{}: {}", subject.name(), super::told(&error)));
                code = ExitCode::FAILURE;
            }
        }
    }
    let (subjects, reports): (Vec<&Side>, Vec<Report>) = reports.into_iter().unzip();
    print(&printed::all(&reports, &args))?;
    if code == ExitCode::SUCCESS && reports.iter().any(Report::is_different) {
        code = ExitCode::from(super::THRESHOLD);
    } else if code == ExitCode::SUCCESS && !reports.iter().all(Report::is_equal) {
        code = ExitCode::FAILURE;
    }
    if args.repair {
        for (side, report) in subjects.into_iter().zip(&reports) {
            let Side::Topic(subject) = side else { continue };
            if let Some(code) = repaired(&mut session, subject, (report, began), &args).await? {
                return Ok(code);
            }
        }
    }
    Ok(code)
}

async fn session(config: &Config) -> anyhow::Result<Session> {
    let sessions = Sessions::new(config.postgres.clone(), LIMITS, "outbox-relay verify".to_owned());
    Ok(sessions.opened_within(super::deadline::opening(config)).open().await?)
}

/// The database's clock.
async fn clock(session: &Session) -> anyhow::Result<Timestamp> {
    Ok(session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?)
}

/// The rows to compare, by the database's clock.
async fn range(session: &Session, grace: Duration, args: &Args) -> anyhow::Result<Range> {
    let now = clock(session).await?;
    let since = match args.since {
        Since::Ago(ago) => now.minus(ago),
        Since::At(at) => at,
    };
    let newest = now.minus(grace);
    let until = args.until.map_or(newest, |until| until.min(newest));
    if since >= until {
        anyhow::bail!("there is nothing to compare between {since} (--since) and {until} (--until)");
    }
    Ok(Range { since, until })
}

async fn compared(session: &Session, subject: &Side, range: Range) -> anyhow::Result<Report> {
    let watch = Arc::new(Watch::default());
    let progress = progress::Progress::show(subject.name(), &watch);
    let report = subject.compare(session, range, &watch).await;
    drop(progress);
    report.map_err(|error| match error {
        Error::Database(error) if error.state_class() == "42" => subject::reading(&error),
        Error::Database(error) => error.into(),
        Error::Problem(problem) => problem.into(),
    })
}

/// Has the relay publish what its topic lacks; what the verb ends with if that is another code.
async fn repaired(
    session: &mut Session,
    subject: &Subject,
    (report, began): (&Report, Timestamp),
    args: &Args,
) -> anyhow::Result<Option<ExitCode>> {
    let missing = report.missing().count();
    if missing == 0 {
        complain(format_args!("{}: nothing to publish", report.name));
        return Ok(None);
    }
    let ids: Vec<&str> = report.missing().map(|found| found.id.as_str()).take(args.limit).collect();
    let more = if missing > ids.len() { ", …" } else { "" };
    let is_replayed = report.missing().all(|found| found.transaction.is_none());
    complain(format_args!(
        "{}: {missing} rows would be published, marked as {}: {}{more}",
        report.name,
        if is_replayed { "replayed" } else { "late" },
        ids.join(", ")
    ));
    let consent = Consent { yes: args.yes, dry_run: args.dry_run };
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdin());
    // Without --yes and without anybody to ask it is a dry run.
    let answer = if consent.dry_run || !(consent.yes || terminal) {
        Answer::DryRun
    } else {
        confirm("Publish them?", consent.yes)?
    };
    match answer {
        Answer::Yes => {}
        Answer::DryRun => {
            complain("dry run: nothing was done; --yes has the relay publish them");
            return Ok(None);
        }
        Answer::No => {
            complain("nothing was done");
            return Ok(Some(ExitCode::FAILURE));
        }
    }
    let table = subject.parts.first().map(|shape| shape.config.table.to_string()).unwrap_or_default();
    let ordered = repair::repair(session, &table, (report, began), &operator()).await.map_err(subject::writing)?;
    complain(format_args!("{}: {ordered} of {missing} will be published by the next turn of a replica", report.name));
    Ok(None)
}
