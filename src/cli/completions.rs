//! `outbox-relay completions`: what a shell completes commands and options by.
//!
//! Made by the program itself, so that it always fits the program that is installed, and a package needs no second build for it. It reads
//! no configuration and asks no server.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, output};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay completions bash > /usr/share/bash-completion/completions/outbox-relay
  outbox-relay completions zsh > /usr/share/zsh/vendor-completions/_outbox-relay
  outbox-relay completions fish > ~/.config/fish/completions/outbox-relay.fish")]
pub struct Args {
    /// The shell
    pub shell: Shell,
}

/// Prints them.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "outbox-relay", &mut text);
    // Bash completes nothing below the first command of a program with a hyphen in its name: clap-rs/clap#6421. No other shell has the word.
    let text = String::from_utf8_lossy(&text).replace("outbox__subcmd__relay__", "outbox__relay__");
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
