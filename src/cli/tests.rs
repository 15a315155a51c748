//! The commands are those that scripts rely on, and what they end with.

use std::time::Duration;

use clap::CommandFactory as _;

use super::*;

mod examples;
mod reference;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_that_is_promised_is_understood() {
    for line in [
        "outbox-relay --config f.toml run",
        "outbox-relay run --once --timeout 5m --replica-id a --relay x --relay y --config f.toml",
        "outbox-relay migrate",
        "outbox-relay migrate --print-sql --relay-role r --app-role a",
        "outbox-relay migrate up --print-sql --relay-role r --app-role a",
        "outbox-relay migrate up --print-sql --from 19",
        "outbox-relay migrate down --to 0",
        "outbox-relay migrate status",
        "outbox-relay check -o json",
        "outbox-relay status -o table --max-lag 10s",
        "outbox-relay --timeout 100ms status --connect-timeout 100ms",
        "outbox-relay cursor list -o json",
        "outbox-relay cursor pause x",
        "outbox-relay cursor resume x",
        "outbox-relay cursor show x -o json",
        "outbox-relay cursor why x -o json",
        "outbox-relay cursor create x --now",
        "outbox-relay cursor create x --beginning",
        "outbox-relay cursor adopt x --yes --timeout 20s",
        "outbox-relay cursor seek x --at 2026-11-21T08:00:00+01:00 --dry-run",
        "outbox-relay cursor seek x --after-id 7 --yes --no-wait",
        "outbox-relay cursor skip x --id 7 --yes",
        "outbox-relay cursor remove x --dry-run",
        "outbox-relay cursor rename x y --yes",
        "outbox-relay status --watch --max-lag 10s",
        "outbox-relay status x y -o json --max-lag 10s",
        "outbox-relay check --observe 60s",
        "outbox-relay health",
        "outbox-relay health --url http://127.0.0.1:9464 --ready --timeout 1s",
        "outbox-relay schedule preview FREQ=DAILY --zone Europe/Berlin --start 2026-11-21T08:00:00+01:00 --count 9 -o json",
        "outbox-relay prune --dry-run -o json",
        "outbox-relay prune --yes",
        "outbox-relay schedule list --relay r --tenant * --problems -o json",
        "outbox-relay schedule show t/x -o json",
        "outbox-relay schedule pause x",
        "outbox-relay schedule resume 7",
        "outbox-relay schedule run-now x",
        "outbox-relay action list --relay r --schedule x --tenant t --status failed --limit 5 -o json",
        "outbox-relay config show --redacted",
        "outbox-relay verify",
        "outbox-relay verify x --since 1h --until 2026-11-21T08:00:00Z -o json",
        "outbox-relay verify x --repair --yes",
        "outbox-relay verify x --follow",
        "outbox-relay verify --table public.outbox --topic orders --id header:id --follow",
        "outbox-relay verify --table public.outbox --topic orders --id payload:$.id --created-at header:at",
        "outbox-relay completions bash",
        "outbox-relay man target/man",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

// Guarantee: observe.exit-codes
#[test]
fn wrong_usage_ends_with_2() {
    for line in [
        "outbox-relay",
        "outbox-relay fly",
        "outbox-relay run --timeout 5m",
        "outbox-relay run --once --timeout 5",
        "outbox-relay run --replica-id ä",
        "outbox-relay migrate down",
        "outbox-relay migrate down --to 99",
        "outbox-relay check -o yaml",
        "outbox-relay status --max-lag soon",
        "outbox-relay status --connect-timeout 0s",
        "outbox-relay --timeout 99ms status",
        "outbox-relay cursor pause",
        "outbox-relay cursor seek x",
        "outbox-relay cursor seek x --now --beginning",
        "outbox-relay cursor seek x --at yesterday",
        "outbox-relay cursor seek x --now --yes --dry-run",
        "outbox-relay cursor seek x --now --no-wait --timeout 3s",
        "outbox-relay cursor create x",
        "outbox-relay cursor remove",
        "outbox-relay cursor rename x",
        "outbox-relay cursor rename x y#1",
        "outbox-relay cursor why",
        "outbox-relay check --observe soon",
        "outbox-relay health --url 127.0.0.1:9464",
        "outbox-relay schedule preview",
        "outbox-relay schedule preview FREQ=DAILY --start soon",
        "outbox-relay schedule preview FREQ=DAILY --count 0",
        "outbox-relay prune --yes --dry-run",
        "outbox-relay schedule pause",
        "outbox-relay schedule list --limit 0",
        "outbox-relay action list --status done",
        "outbox-relay config show",
        "outbox-relay verify x --since soon",
        "outbox-relay verify x --yes",
        "outbox-relay verify x --table public.outbox --topic orders --id header:id",
        "outbox-relay verify --table public.outbox --topic orders",
        "outbox-relay verify --table public.outbox --topic orders --id orders",
        "outbox-relay verify --topic orders",
    ] {
        assert_eq!(parse(line).expect_err(line).exit_code(), i32::from(USAGE), "{line}");
    }
}

#[test]
fn defaults_of_arguments() {
    let Verb::Run(args) = parse("outbox-relay run").expect("valid").verb else { panic!("run") };
    assert_eq!((args.once, args.timeout, args.relays.len()), (false, Duration::from_secs(60), 0));
    let Verb::Migrate(args) = parse("outbox-relay migrate").expect("valid").verb else { panic!("migrate") };
    assert_eq!(args.step.unwrap_or_default(), migrate::Step::Up);
}

#[test]
fn help_teaches_exit_codes_environment_and_examples() {
    let help = Cli::command().render_long_help().to_string();
    for word in ["Examples:", "Exit codes:", "Environment:", "OUTBOX_RELAY_CONFIG", "DATABASE_URL", "128+n"] {
        assert!(help.contains(word), "{word}");
    }
    for verb in Cli::command().get_subcommands_mut().filter(|verb| verb.get_name() != "help") {
        assert!(verb.render_long_help().to_string().contains("Examples:"), "{}", verb.get_name());
    }
}

/// A command's help and those of its subcommands, below the options.
fn after_helps(command: &clap::Command, found: &mut Vec<(String, String)>) {
    if let Some(text) = command.get_after_help() {
        found.push((command.get_name().to_owned(), text.to_string()));
    }
    command.get_subcommands().for_each(|verb| after_helps(verb, found));
}

#[test]
fn help_is_wrapped_once() {
    let mut all = Vec::new();
    after_helps(&Cli::command(), &mut all);
    assert!(all.len() > 20);
    let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    for (verb, text) in all {
        let lines: Vec<&str> = text.lines().collect();
        for (line, next) in lines.iter().zip(lines.iter().skip(1)) {
            assert!(
                !prose(line) || !prose(next),
                "{verb}: the terminal wraps a paragraph, the source must not: {line:?}"
            );
        }
        // What the terminal would wrap in the middle of an example.
        for line in lines.iter().filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= 100, "{verb}: {line:?}");
        }
    }
}

// Guarantee: observe.exit-codes
#[test]
fn problems_of_the_configuration_end_with_2_and_failures_with_1() {
    let problems = Config::parse("", "relay.toml", &Environment::new()).expect_err("no server is named");
    let error = anyhow::Error::new(problems).context("while starting");
    assert_eq!(format!("{:?}", code_of(&error)), format!("{:?}", ExitCode::from(USAGE)));
    let unasked = anyhow::Error::new(confirm::Unconfirmed).context("cursor seek");
    assert_eq!(format!("{:?}", code_of(&unasked)), format!("{:?}", ExitCode::from(USAGE)));
    let misspelt = anyhow::Error::new(Unchosen::Unknown("no relay x is configured".to_owned()));
    assert_eq!(format!("{:?}", code_of(&misspelt)), format!("{:?}", ExitCode::from(USAGE)));
    assert_eq!(format!("{:?}", code_of(&anyhow::anyhow!("x"))), format!("{:?}", ExitCode::FAILURE));
}

#[test]
fn a_cause_is_told_once() {
    let told = anyhow::anyhow!("disk full").context("cannot write x: disk full").context("while starting");
    assert_eq!(story(&told), "while starting: cannot write x: disk full");
}
