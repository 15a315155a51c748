//! `outbox-relay prune`: what `run` does from time to time by `[retention]`, now, and with everything told.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::confirm::{Answer, Consent, operator};
use super::deadline::{ASKING, Late, ending, last, within};
use super::format::Format;
use super::output::{complain, print};
use super::table::Table;
use crate::config::Config;
use crate::database::Session;
use crate::retention::{self, Kept, OldRecords, Pass};

/// Arguments of `prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay prune --dry-run
      what may go, what stays although it is old, and who holds it
  outbox-relay prune                               the same, then asks
  outbox-relay prune --yes -o json                 without asking, for jobs

[retention] says how long records are kept; those without a time there are kept indefinitely.

Exit codes: 0 done; 1 failed, declined, not done within --timeout, or another prune is under way; 2 usage, or no terminal to confirm it: add --yes.")]
pub struct Args {
    /// How to print it
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
}

/// Looks at what may go.
async fn look(config: &Config) -> anyhow::Result<(Session, Vec<OldRecords>)> {
    let session = super::schema_session(config, "prune").await?;
    retention::patient(&session).await?;
    let found = retention::look(&session, &config.retention, &config.relays).await?;
    Ok((session, found))
}

/// What a pass has come to.
struct Ended {
    pruned: Vec<OldRecords>,
    /// Why it did not go through to its end.
    error: Option<anyhow::Error>,
    /// Why no row says what it pruned.
    unnoted: Option<anyhow::Error>,
}

/// Takes it away, and leaves a row that says so, also when it fails. At the limit it ends after the statement that is under way,
/// and PostgreSQL ends that one soon.
async fn pass(
    session: Session,
    config: &Config,
    left: Option<Duration>,
    stop: &CancellationToken,
) -> anyhow::Result<Ended> {
    let Some(pass) = Pass::begin(session, &config.retention, &config.relays, stop.clone()).await? else {
        anyhow::bail!("another prune is under way in this database, a replica's or an operator's: try again");
    };
    let pass = pass.until(left.and_then(|left| Instant::now().checked_add(left.saturating_add(last(left)))));
    let error = ending(left, stop, async { Ok(retention::prune(&pass).await?) }).await.err();
    let pruned = pass.done();
    let note = async {
        if error.is_none() {
            retention::patient(pass.session()).await?;
            return Ok(retention::note(pass.session(), &operator(), &pruned).await?);
        }
        // Its session may have ended, or still be at work.
        let session = super::schema_session(config, "prune").await?;
        Ok(retention::note(&session, &operator(), &pruned).await?)
    };
    let unnoted = within(Some(ASKING), note).await.err();
    Ok(Ended { pruned, error, unnoted })
}

/// Does it, within the limit; what a person takes to answer does not count.
///
/// # Errors
/// The database's, and when the limit is reached.
pub async fn run(config: Config, args: Args, limit: Option<Duration>) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let (session, found) = within(limit, look(&config)).await?;
    let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    if args.output == Format::Table {
        print(&rendered(&found))?;
    }
    // With --yes the pass is made all the same: it also makes days ahead, and puts back what came to be needed.
    let answer = if found.iter().all(|found| found.rows == 0) && !args.consent.yes {
        complain("nothing to prune");
        Answer::DryRun
    } else {
        args.consent.ask("Take them away?")?
    };
    match answer {
        Answer::Yes => {}
        Answer::DryRun => {
            if args.output == Format::Json {
                print(&document(&found, &[]))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Answer::No => {
            complain("nothing was done");
            return Ok(ExitCode::FAILURE);
        }
    }
    // Only now: replicas make days ahead while a person thinks.
    let stop = CancellationToken::new();
    let ended = pass(session, &config, left, &stop).await?;
    match args.output {
        Format::Json => print(&document(&found, &ended.pruned))?,
        Format::Table => print(&told(&found, &ended.pruned))?,
    }
    let done = complain_of(&ended, limit.filter(|_| stop.is_cancelled()));
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says what did not go well; true when everything did.
fn complain_of(ended: &Ended, late: Option<Duration>) -> bool {
    let failed = || ended.pruned.iter().flat_map(|done| done.kept.iter().map(move |kept| (done, kept)));
    let failed: Vec<_> = failed().filter(|(_, kept)| kept.failed).collect();
    for (done, kept) in &failed {
        complain(format_args!("{} {}: {}", done.what.as_str(), done.of, kept.held_by));
    }
    let silent = ended.error.as_ref().is_some_and(|error| error.is::<Late>());
    if let Some(limit) = late {
        let last = if silent { "; PostgreSQL does not answer: the last statement may take effect or not" } else { "" };
        complain(format_args!(
            "error: the limit of {limit:?} (--timeout) was reached{last}: what is printed above was pruned, more may be left; run prune again"
        ));
    }
    if let Some(error) = ended.error.as_ref().filter(|_| !silent) {
        complain(format_args!("error: {error:#}; what is printed above was pruned before"));
    }
    if let Some(error) = &ended.unnoted {
        complain(format_args!("error: what was pruned is not noted in outbox.operation: {error:#}"));
    }
    failed.is_empty() && late.is_none() && ended.error.is_none() && ended.unnoted.is_none()
}

/// What is gone, and what was kept that was to go.
fn told(found: &[OldRecords], pruned: &[OldRecords]) -> String {
    let mut text = String::new();
    for done in pruned.iter().filter(|done| done.rows > 0) {
        text.push_str(&format!("{} {}: {} gone\n", done.what.as_str(), done.of, done.rows));
    }
    for done in pruned {
        for kept in met(found, done).filter(|kept| !kept.failed) {
            text.push_str(&format!("{} {}: kept, {}\n", done.what.as_str(), done.of, kept.held_by));
        }
    }
    text
}

fn rendered(found: &[OldRecords]) -> String {
    let mut table = Table::new(["TYPE", "SCOPE", "PRUNABLE", "RETAINED", "REASON"]);
    for found in found {
        let mut first = [found.what.as_str().to_owned(), found.of.clone(), found.rows.to_string()];
        if found.kept.is_empty() {
            let [what, of, rows] = first.clone();
            table.row([what, of, rows, "0".to_owned(), "-".to_owned()]);
        }
        for kept in &found.kept {
            let [what, of, rows] = std::mem::take(&mut first);
            let count = kept.rows.map_or_else(|| "all".to_owned(), |rows| rows.to_string());
            table.row([what, of, rows, count, kept.held_by.clone()]);
        }
    }
    table.render()
}

/// What kept rows when they were to go, and was not there when they were counted.
fn met<'a>(found: &'a [OldRecords], done: &'a OldRecords) -> impl Iterator<Item = &'a Kept> {
    let known = found.iter().find(|found| (found.what, &found.of) == (done.what, &done.of));
    done.kept.iter().filter(move |kept| known.is_none_or(|known| !known.kept.contains(kept)))
}

/// What was found, what became of it, and what kept rows at either time: `pruned` is absent when nothing was done.
fn document(found: &[OldRecords], pruned: &[OldRecords]) -> String {
    let entry = |found: &OldRecords| {
        let done = pruned.iter().find(|done| (done.what, &done.of) == (found.what, &found.of));
        let later = done.into_iter().flat_map(|done| met(std::slice::from_ref(found), done));
        let kept = found
            .kept
            .iter()
            .chain(later)
            .map(|kept| serde_json::json!({ "rows": kept.rows, "held_by": kept.held_by }));
        serde_json::json!({
            "key": [found.what.as_str(), found.of],
            "prunable": found.rows,
            "pruned": done.map_or(0, |done| done.rows),
            "kept": kept.collect::<Vec<_>>(),
        })
    };
    crate::cli::document::line(serde_json::json!({ "prune": found.iter().map(entry).collect::<Vec<_>>() }))
}
