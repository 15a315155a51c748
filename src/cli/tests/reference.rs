//! docs/CLI.md is the help of every command.
//!
//! After a change of the help: `WRITE_DOCS=1 cargo test --lib cli::tests::reference`.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::super::Cli;

const DOCUMENT: &str = "docs/CLI.md";

const HEAD: &str = "\
# Commands

Generated from `outbox-relay --help`: `WRITE_DOCS=1 cargo test --lib cli::tests::reference` writes it. What commands about cursors do, and
how they wait: [CURSORS.md](CURSORS.md). Clients without a connection to PostgreSQL: [HTTP intake](INTAKE.md).
";

/// All commands below this one, each with its words.
fn commands<'a>(command: &'a Command, words: &str, found: &mut Vec<(String, &'a Command)>) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let words = format!("{words} {}", verb.get_name());
        found.push((words.clone(), verb));
        commands(verb, &words, found);
    }
}

fn help(command: &Command) -> String {
    let text = command.clone().term_width(120).render_help().to_string();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn reference() -> String {
    let options = ["config", "connect_timeout", "timeout"];
    let mut root = Cli::command();
    let mut text = HEAD.to_owned();
    root.build();
    let _ = write!(text, "\n## outbox-relay\n\n```text\n{}```\n", help(&root));
    let mut quiet = Cli::command().disable_help_flag(true).disable_version_flag(true).disable_help_subcommand(true);
    for option in options {
        quiet = quiet.mut_arg(option, |arg| arg.hide(true));
    }
    quiet.build();
    let mut found = Vec::new();
    commands(&quiet, "outbox-relay", &mut found);
    for (words, command) in found {
        let _ = write!(text, "\n## {words}\n\n```text\n{}```\n", help(command));
    }
    text
}

#[test]
fn command_reference_is_the_help() {
    let reference = reference();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(DOCUMENT, &reference).expect("docs can be written");
    }
    let found = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(found == reference, "{DOCUMENT} is old: `WRITE_DOCS=1 cargo test --lib cli::tests::reference` writes it");
}
