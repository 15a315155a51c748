//! `outbox-relay schedule`: when scheduled actions are due.

use std::process::ExitCode;

pub mod preview;

/// Arguments of `schedule`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay schedule preview \"FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9\" --zone Europe/Berlin     what a rule means, before it is written
  outbox-relay schedule preview \"FREQ=DAILY;BYHOUR=2;BYMINUTE=30\" --zone America/New_York --count 10 -o json")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with schedules.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// Show what a recurrence rule means and when it is due, in local time and UTC; asks no server
    Preview(preview::Args),
}

/// Does what was asked for.
///
/// # Errors
/// When the rule cannot be planned, or standard output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.verb {
        Verb::Preview(args) => preview::run(args),
    }
}
