//! `outbox-relay man`: the manual pages, from the same words as `--help`.
//!
//! As completions, made by the program itself. It reads no configuration and asks no server.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::roff::{Roff, roman};

use super::Cli;

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay man /usr/local/share/man/man1       then: man outbox-relay-run")]
pub struct Args {
    /// The directory; it is made if it is not there
    pub dir: PathBuf,
}

/// Writes a file for each command.
///
/// # Errors
/// When the directory cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let write = || {
        std::fs::create_dir_all(&args.dir)?;
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        pages(&root)?.into_iter().try_for_each(|(name, page)| std::fs::write(args.dir.join(name), page))
    };
    write().with_context(|| format!("{} cannot be written", args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and of those below it, with their files' names.
fn pages(command: &Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = vec![page(command)?];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        found.append(&mut pages(verb)?);
    }
    Ok(found)
}

fn page(command: &Command) -> io::Result<(String, Vec<u8>)> {
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The library fills all of it, which tears examples and tables apart.
    let command = command.clone().after_help(None::<&str>);
    let man = clap_mangen::Man::new(command).source(concat!("outbox-relay ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render(&mut text)?;
    section(&notes).to_writer(&mut text)?;
    Ok((man.get_filename(), text))
}

/// Paragraphs with indented lines, which are examples and tables, are shown line by line.
fn section(notes: &str) -> Roff {
    let mut roff = Roff::new();
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
    }
    for paragraph in notes.split("\n\n") {
        let is_table = paragraph.contains("\n  ");
        roff.control("PP", []);
        roff.control(if is_table { "nf" } else { "fi" }, []);
        for line in paragraph.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_examples_line_by_line() {
        let mut root = Cli::command().disable_help_subcommand(true);
        root.build();
        let pages = pages(&root).expect("rendered");
        let page = |name: &str| {
            let (_, text) = pages.iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("{name}"));
            String::from_utf8(text.clone()).expect("UTF-8")
        };
        let run = page("outbox-relay-run.1");
        assert!(run.contains("\n.nf\nExamples:\n  outbox\\-relay \\-\\-config relay.toml run\n"), "{run}");
        assert!(page("outbox-relay.1").contains("outbox\\-relay\\-cursor(1)"));
        assert!(page("outbox-relay-cursor-why.1").contains(".SH OPTIONS"));
        assert!(pages.iter().all(|(name, _)| name != "outbox-relay-man.1" && !name.contains("help")), "{pages:?}");
    }
}
