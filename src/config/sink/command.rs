//! `[relay.sink.command]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::show::{TomlLines, quote};
use crate::config::units::print_size;
use crate::config::value;
use crate::sink::command::{Config, Program};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_MEMORY: u64 = 256 << 20;
/// An action's result is bounded in its table, too.
const MOST_OUTPUT: u64 = 8 << 10;

pub(super) fn read(section: &Section<'_>) -> Option<Config> {
    let fix = "write [relay.sink.command.programs.NAME] with program = \"/…\"";
    let programs = section.named_sections("programs");
    if programs.is_empty() {
        section.missing("programs", "missing: a schedule chooses one of them by its name", fix);
        return None;
    }
    let all = programs.len();
    let read: BTreeMap<_, _> = programs
        .into_iter()
        .filter_map(|(name, program)| Some((named(section, name)?, read_program(&program)?)))
        .collect();
    (read.len() == all).then_some(Config { programs: read })
}

fn named(section: &Section<'_>, name: &str) -> Option<String> {
    if value::is_name(name) {
        return Some(name.to_owned());
    }
    let fix = "write 1 to 100 letters, digits, dots, underscores or hyphens";
    section.problem("programs", Wrong::new(format!("{name:?} is not a name of a program"), fix));
    None
}

fn read_program(section: &Section<'_>) -> Option<Program> {
    let timeout = value::duration(Duration::from_millis(100)..=Duration::from_secs(24 * 3600));
    let timeout = section.read("timeout", timeout).unwrap_or(DEFAULT_TIMEOUT);
    let memory = section.read("memory", value::size(16 << 20..=1 << 40)).unwrap_or(DEFAULT_MEMORY);
    let output = section.read("output", value::size(1..=MOST_OUTPUT)).unwrap_or(MOST_OUTPUT);
    let args = section.read("args", value::arguments);
    let wrong_args = section.has("args") && args.is_none();
    let fix = "write the program's absolute path, for example \"/usr/local/bin/cleanup\"";
    let program = section.require("program", value::parsed(absolute), fix)?;
    let output = usize::try_from(output).unwrap_or(usize::MAX);
    (!wrong_args).then(|| Program { program, args: args.unwrap_or_default(), timeout, memory, output })
}

fn absolute(text: &str) -> Result<PathBuf, Wrong> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Wrong::new("not an absolute path: what it names would depend on where the relay runs", "begin it with /"))
}

/// As it was understood.
pub(in crate::config) fn write(lines: &mut TomlLines, config: &Config) {
    for (name, program) in &config.programs {
        lines.section(&format!("[relay.sink.command.programs.{}]", quote(name)));
        lines.text("program", &program.program.display().to_string());
        let args: Vec<_> = program.args.iter().map(|arg| quote(arg)).collect();
        lines.raw("args", format!("[{}]", args.join(", ")));
        lines.duration("timeout", program.timeout);
        lines.text("memory", &print_size(program.memory));
        lines.text("output", &print_size(u64::try_from(program.output).unwrap_or(u64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::{Problems, Report};
    use crate::config::tree;

    fn parse(text: &str) -> Result<Config, String> {
        let report = Report::default();
        let document = tree::parse(text, &report);
        let config = read(&Section::named(&report, "relay.sink.command", &document.root));
        if report.is_empty() {
            config.ok_or_else(|| "nothing was reported".to_owned())
        } else {
            Err(Problems::new(None, report.into_list()).to_string())
        }
    }

    #[test]
    fn a_program_has_defaults_and_is_shown_as_it_was_understood() {
        let config = parse(
            "[programs.cleanup]\nprogram = \"/bin/true\"\n[programs.report]\nprogram = \"/bin/false\"\n\
             args = [\"--fast\", \"\"]\ntimeout = \"2h\"\nmemory = \"1GiB\"\noutput = \"100B\"\n",
        )
        .expect("valid");
        let expected = Program {
            program: PathBuf::from("/bin/true"),
            args: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            memory: DEFAULT_MEMORY,
            output: 8 << 10,
        };
        assert_eq!(config.programs["cleanup"], expected);
        assert_eq!(config.programs["report"].args, ["--fast", ""]);
        let mut lines = TomlLines::default();
        write(&mut lines, &config);
        let shown = lines.0.replace("[relay.sink.command.", "[");
        assert_eq!(parse(&shown).expect("valid"), config, "{shown}");
    }

    #[test]
    fn what_cannot_be_started_is_told() {
        let program = "program = \"/bin/true\"";
        for (keys, told) in [
            ("", "programs.p.program: missing"),
            ("program = \"true\"", "not an absolute path"),
            (&format!("{program}\nargs = \"--fast\""), "an array is needed here"),
            (&format!("{program}\nargs = [1]"), "an argument is an integer"),
            (&format!("{program}\nargs = [\"\\u0000\"]"), "contains a NUL character"),
            (&format!("{program}\ntimeout = \"25h\""), "out of bounds"),
            (&format!("{program}\nmemory = \"1MiB\""), "out of bounds"),
            (&format!("{program}\noutput = \"9KiB\""), "out of bounds"),
            (&format!("{program}\nenv = {{}}"), "unknown key"),
        ] {
            let problems = parse(&format!("[programs.p]\n{keys}\n")).expect_err(keys);
            assert!(problems.contains(told), "{problems}");
        }
        assert!(parse("").expect_err("none").contains("a schedule chooses one of them by its name"));
        let slash = parse(&format!("[programs.\"a/b\"]\n{program}")).expect_err("no name");
        assert!(slash.contains("not a name of a program"), "{slash}");
    }
}
