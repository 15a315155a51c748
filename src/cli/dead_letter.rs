//! `outbox-relay dead-letter`: rows that a receiver would never accept, dead-lettered by `on_poison = "dead_letter"`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use super::confirm::{Consent, agreed, operator};
use super::cursor::word;
use super::format::Format;
use super::known;
use super::output::{complain, print};
use super::table::{Table, visible};
use crate::config::Config;
use crate::cursor::letters::{self, DeadLetterSummary, Decision, Which};
use crate::cursor::relay::unhurried;
use crate::relay::engine::replicas::{Fleet, fleet, relay_of};

/// So many are shown before they are decided about; the others are counted.
const SHOWN: usize = 20;

/// Arguments of `dead-letter`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay dead-letter list
  outbox-relay dead-letter show 17
  outbox-relay dead-letter redrive 17 18 --dry-run
  outbox-relay dead-letter redrive --cursor booking_sms --yes
      all that wait there, after the cause is fixed
  outbox-relay dead-letter discard 17
      give it up; it is kept for the record

Where PARKED shows a number, so many rows of the letter's key wait for it (on_poison = \"park_key\"): redriven or discarded, it lets \
them go in order, marked as replayed.

A redriven row is read again, so that a fixed row goes out fixed; where it is gone, what was stored is sent. The message \
keeps its id and is marked as replayed.

redrive and discard decide about 5,000 at a time. When they are ended half-way, by --timeout for example, what was decided stays so; \
the same command goes on with the others.

Exit codes: 0 done; 1 failed, or declined; 2 usage, or no terminal to confirm it: add --yes.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with dead letters.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List those that wait
    List {
        /// Only of this cursor, or of all shards of this relay
        #[arg(long, value_name = "NAME")]
        cursor: Option<String>,
        /// How many to list at most
        #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..))]
        limit: i64,
        /// How to print them
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
    /// Show everything about one, its payload too
    Show {
        /// Its number
        #[arg(value_name = "ID")]
        id: i64,
        /// How to print it
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
    /// Have the cursor's next turn send them again
    Redrive(Choice),
    /// Give them up: they are never sent
    Discard(Choice),
}

/// Which ones.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// Their numbers
    #[arg(value_name = "ID", required_unless_present = "cursor", conflicts_with = "cursor")]
    pub ids: Vec<i64>,
    /// All that wait of this cursor, or of all shards of this relay
    #[arg(long, value_name = "NAME")]
    pub cursor: Option<String>,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
}

/// Does it.
///
/// # Errors
/// The database's, or what was asked for does not exist.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let mut session = super::schema_session(&config, "dead-letter").await?;
    // There may be a million of them: --timeout limits the command, and not the time of a turn's statement.
    unhurried(&session).await?;
    match args.verb {
        Verb::List { cursor, limit, output } => {
            known::relay(&session, &config, "cursor", cursor.as_deref()).await?;
            let found = letters::list(&session, Which::Open(cursor.as_deref(), limit)).await?;
            print(&printed(&found, output))?;
            if i64::try_from(found.len()).is_ok_and(|listed| listed == limit) {
                complain(format!("there may be more than these {limit}: choose by --cursor, or raise --limit"));
            }
        }
        Verb::Show { id, output } => {
            let found = letters::list(&session, Which::Whole(id)).await?;
            let Some(letter) = found.first() else { anyhow::bail!("there is no dead letter {id}") };
            print(&shown(letter, output))?;
        }
        Verb::Redrive(choice) => {
            known::relay(&session, &config, "cursor", choice.cursor.as_deref()).await?;
            return decide(&mut session, &choice, Decision::Redrive).await;
        }
        Verb::Discard(choice) => {
            known::relay(&session, &config, "cursor", choice.cursor.as_deref()).await?;
            return decide(&mut session, &choice, Decision::Discard).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn decide(session: &mut tokio_postgres::Client, choice: &Choice, decision: Decision) -> anyhow::Result<ExitCode> {
    let open = open(session, choice).await?;
    let all = open.ids.len();
    if all == 0 {
        print("nothing to do\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&printed(&open.shown, Format::Table))?;
    if let Some(more) = all.checked_sub(open.shown.len()).filter(|more| *more > 0) {
        print(&format!("and {more} more\n"))?;
    }
    let ask = match decision {
        Decision::Redrive => "Send them again?",
        Decision::Discard => "Give them up? They are never sent.",
    };
    if let Some(code) = agreed(choice.consent, ask)? {
        return Ok(code);
    }
    let changed = letters::decide(session, &open.ids, decision, &operator()).await?;
    let done = match decision {
        Decision::Redrive => next_turn(&fleet(session).await?, all, &open.cursors),
        Decision::Discard => "given up".to_owned(),
    };
    print(&format!("{changed} of {all}: {done}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The open ones among those that are chosen.
struct Open {
    ids: Vec<i64>,
    cursors: BTreeSet<String>,
    /// The first of them.
    shown: Vec<DeadLetterSummary>,
}

fn waits(letter: &DeadLetterSummary) -> bool {
    matches!(&*letter.state, "dead" | "redriving")
}

/// Of those that are named, says which do not wait; one that does not exist is an error.
async fn open(client: &tokio_postgres::Client, choice: &Choice) -> anyhow::Result<Open> {
    if let Some(cursor) = &choice.cursor {
        let found = letters::open(client, cursor).await?;
        let ids: Vec<i64> = found.iter().flat_map(|of| of.ids.iter().copied()).collect();
        let first: Vec<i64> = ids.iter().copied().take(SHOWN).collect();
        let shown = letters::list(client, Which::Ids(&first)).await?;
        return Ok(Open { ids, cursors: found.into_iter().map(|of| of.cursor).collect(), shown });
    }
    let mut shown = letters::list(client, Which::Ids(&choice.ids)).await?;
    let known: BTreeSet<i64> = shown.iter().map(|letter| letter.id).collect();
    if let Some(missing) = choice.ids.iter().find(|id| !known.contains(*id)) {
        anyhow::bail!("there is no dead letter {missing}");
    }
    for letter in shown.iter().filter(|letter| !waits(letter)) {
        print(&format!("dead letter {} does not wait: it is {}\n", letter.id, letter.state))?;
    }
    shown.retain(waits);
    let ids = shown.iter().map(|letter| letter.id).collect();
    let cursors = shown.iter().map(|letter| letter.cursor.clone()).collect();
    shown.truncate(SHOWN);
    Ok(Open { ids, cursors, shown })
}

/// What sends redriven dead letters: the cursor's next turn, or the run that an operator must start where no live replica has the
/// relay.
fn next_turn(fleet: &Fleet, letters: usize, cursors: &BTreeSet<String>) -> String {
    let lacking = cursors.iter().filter(|cursor| fleet.lacks(cursor));
    let relays: BTreeSet<&str> = lacking.map(|cursor| relay_of(cursor)).collect();
    if relays.is_empty() {
        return "will be sent again by the cursor's next turn".to_owned();
    }
    let runs: String = relays.iter().map(|relay| format!(" --relay {}", word(relay))).collect();
    let (turn, noun) = match (letters, relays.len()) {
        (1, _) => ("waits for a turn", "relay"),
        (_, 1) => ("wait for a turn", "relay"),
        _ => ("wait for a turn", "relays"),
    };
    let names: Vec<_> = relays.into_iter().map(visible).collect();
    format!(
        "{turn}; no live replica has {noun} {}: start one whose configuration has it, or `outbox-relay run --once{runs}`",
        names.join(", ")
    )
}

fn printed(found: &[DeadLetterSummary], output: Format) -> String {
    if output == Format::Json {
        let letters: Vec<_> = found.iter().map(json).collect();
        return crate::cli::document::line(serde_json::json!({ "dead_letters": letters }));
    }
    let mut table = Table::new(["ID", "CURSOR", "ROW", "CREATED AT", "STATE", "ATTEMPTS", "ERROR", "PARKED"]);
    for letter in found {
        table.row([
            letter.id.to_string(),
            letter.cursor.clone(),
            letter.message_id.clone(),
            letter.created_at.to_string(),
            letter.state.clone(),
            letter.attempts.to_string(),
            error(letter)["code"].as_str().unwrap_or("-").to_owned(),
            letter.parked_rows.map_or_else(|| "-".to_owned(), |rows| rows.to_string()),
        ]);
    }
    table.render()
}

fn shown(letter: &DeadLetterSummary, output: Format) -> String {
    let payload = letter.payload.as_deref().map(String::from_utf8_lossy);
    if output == Format::Json {
        let mut document = json(letter);
        document["payload"] = payload.into();
        return crate::cli::document::line(document);
    }
    let error = error(letter);
    let word = |key: &str| visible(error[key].as_str().unwrap_or("-"));
    let lines = [
        ("dead letter", letter.id.to_string()),
        ("cursor", visible(&letter.cursor)),
        ("row", visible(&format!("{} of {}, {}", letter.message_id, letter.source, letter.created_at))),
        ("target", visible(&letter.target)),
        ("key", visible(letter.key.as_deref().unwrap_or("-"))),
        ("state", letter.state.clone()),
        (
            "parked",
            letter
                .parked_rows
                .map_or_else(|| "-".to_owned(), |rows| format!("{rows} rows of its key, itself included")),
        ),
        ("attempts", format!("{}, the last at {}", letter.attempts, letter.dead_lettered_at)),
        ("error", format!("{} {}: {}", word("class"), word("code"), word("message"))),
        ("hint", word("hint")),
        ("payload", payload.map_or_else(|| "none could be made".to_owned(), |payload| visible(&payload))),
    ];
    lines.iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect()
}

fn error(letter: &DeadLetterSummary) -> serde_json::Value {
    serde_json::from_str(&letter.error).unwrap_or_default()
}

fn json(letter: &DeadLetterSummary) -> serde_json::Value {
    serde_json::json!({
        "key": [letter.message_id],
        "id": letter.id,
        "cursor": letter.cursor,
        "source": letter.source,
        "created_at": letter.created_at.to_string(),
        "target": letter.target,
        "message_key": letter.key,
        "status": letter.state,
        "attempts": letter.attempts,
        "dead_lettered_at": letter.dead_lettered_at.to_string(),
        "error": error(letter),
        "parked_rows": letter.parked_rows,
    })
}
