//! `verify --follow`: what is new, round by round, and in the end a report on all of it.

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::printed::{self, cells};
use super::side::Side;
use super::{Args, Since, compared, range};
use crate::cli::format::Format;
use crate::cli::output::{complain, print, print_more};
use crate::cli::table::visible;
use crate::database::Session;
use crate::shutdown;
use crate::verify::{Range, Report};

/// Between two rounds.
const PAUSE: Duration = Duration::from_secs(5);
/// Each round looks back so far: a row may commit long after its created_at. What commits later is found by the report.
const BACK: Duration = Duration::from_secs(600);
/// How long the last report may take after a signal.
const LAST: Duration = Duration::from_secs(3_600);

pub(super) async fn run(session: &Session, subjects: Vec<Side>, args: &Args) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    shutdown::watch(stop.clone(), CancellationToken::new(), LAST)?;
    let mut followed = Vec::new();
    for subject in subjects {
        let first = range(session, subject.grace(), args).await?;
        followed.push(Followed { since: first.since, told: HashSet::new(), subject });
    }
    loop {
        for follower in &mut followed {
            if !follower.round(session, args, &stop).await? {
                return Ok(ExitCode::SUCCESS); // the reader has gone
            }
        }
        if stop.is_cancelled() || over(session, &followed, args).await? {
            break;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    let mut reports = Vec::new();
    for follower in &followed {
        reports.push(compared(session, &follower.subject, follower.range(session, args, None).await?).await?);
    }
    print(&printed::all(&reports, args))?;
    let equal = reports.iter().all(Report::is_equal);
    Ok(if equal { ExitCode::SUCCESS } else { ExitCode::from(crate::cli::THRESHOLD) })
}

/// Whether `--until` has passed for all.
async fn over(session: &Session, followed: &[Followed], args: &Args) -> anyhow::Result<bool> {
    let Some(until) = args.until else { return Ok(false) };
    for follower in followed {
        if follower.range(session, args, None).await?.until < until {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Followed {
    subject: Side,
    since: crate::position::Timestamp,
    told: HashSet<(String, &'static str)>,
}

impl Followed {
    /// From the beginning, or from so long ago, until now.
    async fn range(&self, session: &Session, args: &Args, back: Option<Duration>) -> anyhow::Result<Range> {
        let args = Args { since: Since::At(self.since), ..args.clone() };
        let all = range(session, self.subject.grace(), &args).await?;
        let since = back.map_or(self.since, |back| self.since.max(all.until.minus(back)));
        Ok(Range { since, ..all })
    }

    /// Compares what is new and says what differs; false when the reader has gone away.
    async fn round(&mut self, session: &Session, args: &Args, stop: &CancellationToken) -> anyhow::Result<bool> {
        let range = self.range(session, args, Some(BACK)).await?;
        let report = tokio::select! {
            () = stop.cancelled() => return Ok(true),
            report = compared(session, &self.subject, range) => report,
        };
        let report = match report {
            Ok(report) => report,
            Err(error) if session.is_closed() => return Err(error),
            Err(error) => {
                complain(format_args!("{}: {error}; trying again", self.subject.name()));
                return Ok(true);
            }
        };
        for found in &report.differences {
            if self.told.insert((found.id.clone(), found.kind.as_str())) {
                let line = format!("{}: {}", visible(&report.name), visible(&cells(found).join("  ")));
                match args.output {
                    Format::Table if !print_more(&format!("{line}\n"))? => return Ok(false),
                    Format::Table => {}
                    Format::Json => complain(line),
                }
            }
        }
        Ok(true)
    }
}
