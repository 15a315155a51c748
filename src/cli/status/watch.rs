//! `status --watch`: the same again every two seconds, until Ctrl-C or the first breach.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;

use super::{Args, breach, text};
use crate::cli::deadline;
use crate::cli::format::Format;
use crate::cli::output::{complain, print_more};
use crate::config::Config;
use crate::relay::engine::Shared;
use crate::relay::inspect::status::Status;

const EVERY: Duration = Duration::from_secs(2);
/// Home, and everything below it away.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Shows the cursors again and again. A look that fails is told and made again; with `--max-lag` an unknown lag is a
/// breach, and so is a look that fails.
pub(super) async fn run(config: &Config, args: &Args, limit: Option<Duration>) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let shared = Shared::new(crate::cli::sessions(config, "status"));
    let watcher = crate::cli::watcher(config, "status");
    let mut first = true;
    loop {
        let look = async {
            let session = shared.session().await?;
            super::look(&session, &watcher, config, &args.names).await
        };
        let looked = tokio::select! {
            biased;
            _ = signals.next() => return Ok(ExitCode::SUCCESS),
            looked = deadline::within(limit, look) => looked,
        };
        match looked {
            Ok(status) => {
                if !print_more(&block(&status, args.output, first)?)? {
                    return Ok(ExitCode::SUCCESS); // nobody reads any more
                }
                if let Some(breach) = breach(&status, config, args) {
                    complain(breach);
                    return Ok(ExitCode::from(crate::cli::THRESHOLD));
                }
            }
            Err(error) if first => return Err(error),
            Err(error) => {
                complain(format_args!("cannot look: {error:#}"));
                if args.max_lag.is_some() {
                    return Ok(ExitCode::from(crate::cli::THRESHOLD));
                }
            }
        }
        first = false;
        tokio::select! {
            _ = signals.next() => return Ok(ExitCode::SUCCESS),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// On a terminal instead of the last one, elsewhere below it; JSON is a document a line.
fn block(status: &Status, output: Format, first: bool) -> anyhow::Result<String> {
    let body = text(status, output)?;
    Ok(match output {
        Format::Json => body,
        Format::Table if std::io::stdout().is_terminal() => {
            format!("{CLEAR}{} (every {} s, Ctrl-C ends)\n{body}", status.observed_at, EVERY.as_secs())
        }
        Format::Table => format!("{}{}\n{body}", if first { "" } else { "\n" }, status.observed_at),
    })
}
