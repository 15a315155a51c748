//! Every command that the documents or a `--help` show is one that the program understands.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use super::{Cli, parse};

/// Words that stand for something of the reader's.
const STANDS_FOR: [(&str, &str); 3] = [("--to N", "--to 0"), ("--at INSTANT", "--at 2026-11-21T08:00:00Z"), ("…", "x")];

/// The command that a line begins with or has behind another program's words, without what follows it.
fn command(line: &str) -> Option<String> {
    // The namespace and the deployment have the program's name, too: what the pod runs stands behind two hyphens.
    let line = if line.starts_with("kubectl ") { line.split_once(" -- ")?.1 } else { line };
    // Its release and its chart have that name, too.
    if line.starts_with("helm ") {
        return None;
    }
    let at = line.match_indices("outbox-relay ").map(|(at, _)| at).find(|at| *at == 0 || line[..*at].ends_with(' '))?;
    let mut text = line[at..].trim_end();
    // A semicolon inside of a recurrence rule ends no command.
    for end in ["  ", " #", " |", " >", " &", "; "] {
        text = text.split(end).next().unwrap_or(text);
    }
    let text = STANDS_FOR.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value));
    // A synopsis is no command.
    (!text.contains(['[', '<', '{'])).then(|| text.replace(['"', '\''], ""))
}

/// The commands of a document in Markdown: lines of its shell blocks, and code in its text.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 0 {
            let code = part.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " "));
            found.extend(code.filter(|code| code.starts_with("outbox-relay ")).filter_map(|code| command(&code)));
            continue;
        }
        let (language, lines) = part.split_once('\n').unwrap_or(("", part));
        if ["", "sh", "bash", "console", "shell"].contains(&language.trim()) {
            found.extend(lines.replace("\\\n", " ").lines().filter_map(|line| command(line.trim_start())));
        }
    }
    found
}

fn documents(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(dir).expect("the documents are readable") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[track_caller]
fn understood(place: &str, command: &str) {
    let id = |word| if word == "ID" { "01a1ff20-4202-76c3-af15-1206ca39ede4" } else { word };
    let of_a_request = command.starts_with("outbox-relay request ");
    let words = command.split_whitespace().map(|word| if of_a_request { id(word) } else { word });
    let words: Vec<&str> = words.collect();
    if let Err(error) = parse(&words.join(" "))
        && error.exit_code() != 0
    {
        panic!("{place}: {command}\n{error}");
    }
}

// Guarantee: commands.documented
#[test]
fn every_command_in_the_documents_is_understood() {
    let mut files = vec![Path::new("README.md").to_owned(), Path::new("CONTRIBUTING.md").to_owned()];
    documents(Path::new("docs"), &mut files);
    let mut count = 0;
    for file in files {
        for command in commands(&fs::read_to_string(&file).expect("readable")) {
            understood(&file.display().to_string(), &command);
            count += 1;
        }
    }
    assert!(count > 30, "only {count} commands were found: the reader of documents is broken");
}

fn examples(command: &Command, path: &str, found: &mut Vec<(String, String)>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    found.extend(help.lines().filter_map(|line| Some((path.to_owned(), super::examples::command(line.trim_start())?))));
    for verb in command.get_subcommands() {
        examples(verb, &format!("{path} {}", verb.get_name()), found);
    }
}

// Guarantee: commands.documented
#[test]
fn every_example_of_a_help_is_understood() {
    let mut found = Vec::new();
    examples(&Cli::command(), "outbox-relay", &mut found);
    for (place, command) in &found {
        understood(place, command);
    }
    assert!(found.len() > 40, "only {} examples were found", found.len());
}

#[test]
fn every_verb_of_cursor_teaches_with_examples() {
    let cli = Cli::command();
    let cursor = cli.find_subcommand("cursor").expect("there are cursors");
    for verb in cursor.get_subcommands() {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains(&format!("outbox-relay cursor {}", verb.get_name())), "{}", verb.get_name());
    }
}

#[test]
fn commands_are_found_in_blocks_and_in_text_and_cut_where_the_shell_would() {
    let text = "See `outbox-relay cursor\nresume NAME` and `outbox-relay [--config FILE] VERB`.\n```\n\
                outbox-relay status -o json | jq .   # lag\nkubectl exec x -- outbox-relay check\n```\n\
                ```sql\noutbox-relay is no SQL\n```\n";
    let found = ["outbox-relay cursor resume NAME", "outbox-relay status -o json", "outbox-relay check"];
    assert_eq!(commands(text), found);
}
