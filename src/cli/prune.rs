//! `outbox-relay prune`: what `run` does from time to time by `[retention]`, now, and with everything told.

use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use super::confirm::{Answer, Consent, operator};
use super::format::Format;
use super::output::{complain, print};
use super::table::Table;
use crate::config::Config;
use crate::migrate;
use crate::retention::{self, Found, Kept, Pass};

/// Arguments of `prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay prune --dry-run
      what may go, what stays although it is old, and who holds it
  outbox-relay prune                               the same, then asks
  outbox-relay prune --yes -o json                 without asking, for jobs

How old things get is said in [retention]; what has no time there is kept for ever.

Exit codes: 0 done; 1 failed, declined, or another prune is under way; 2 usage, or nobody is there to confirm it: add --yes.")]
pub struct Args {
    /// How to print it
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
}

/// Does it.
///
/// # Errors
/// The database's.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let session = super::session(&config, "prune").await?;
    migrate::require(&session).await?;
    retention::patient(&session).await?;
    let found = retention::look(&session, &config.retention, &config.relays).await?;
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
    let Some(pass) = Pass::begin(session, &config.retention, &config.relays, CancellationToken::new()).await? else {
        anyhow::bail!("another prune is under way in this database, a replica's or an operator's: try again");
    };
    let pruned = retention::prune(&pass).await?;
    retention::note(pass.session(), &operator(), &pruned).await?;
    match args.output {
        Format::Json => print(&document(&found, &pruned))?,
        Format::Table => {
            for done in pruned.iter().filter(|done| done.rows > 0) {
                print(&format!("{} {}: {} gone\n", done.what.as_str(), done.of, done.rows))?;
            }
            for done in &pruned {
                for kept in met(&found, done).filter(|kept| !kept.failed) {
                    print(&format!("{} {}: kept, {}\n", done.what.as_str(), done.of, kept.held_by))?;
                }
            }
        }
    }
    let failed: Vec<_> = pruned.iter().flat_map(|done| &done.kept).filter(|kept| kept.failed).collect();
    for kept in &failed {
        complain(&kept.held_by);
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rendered(found: &[Found]) -> String {
    let mut table = Table::new(["WHAT", "OF", "PRUNE", "KEEP", "HELD BY"]);
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
fn met<'a>(found: &'a [Found], done: &'a Found) -> impl Iterator<Item = &'a Kept> {
    let known = found.iter().find(|found| (found.what, &found.of) == (done.what, &done.of));
    done.kept.iter().filter(move |kept| known.is_none_or(|known| !known.kept.contains(kept)))
}

/// What was found, what became of it, and what kept rows at either time: `pruned` is absent when nothing was done.
fn document(found: &[Found], pruned: &[Found]) -> String {
    let entry = |found: &Found| {
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
