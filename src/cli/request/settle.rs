//! `outbox-relay request settle`.

use std::process::ExitCode;

use crate::cli::cursor::word;

use super::{Consent, Format, agreed, id, operator, print, visible};
use crate::cursor::settle::{self, SettleOutcome};

/// Arguments of `request settle`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(
    group = clap::ArgGroup::new("outcome").required(true),
    after_help = "\
Examples:
  outbox-relay request settle 01a1ff20-4202-76c3-af15-1206ca39ede4 --arrived
  outbox-relay request settle 4711 4712 --relay booking_sms --lost --yes
  outbox-relay request settle '[\"blue\",\"7\"]' --relay reminders --arrived --dry-run

Only unknown outcomes can be settled, that of a request included whose replica is gone: ask the receiver first. Several of one key \
are named by their instants, as `request list` shows them. Each settlement is noted in \
outbox.operation. A request of the ledger becomes completed, or failed (settled_lost): `request redrive` sends a \
failed one again, `request discard` gives it up. A row of another relay leaves the list. A lost row of pending work is due again \
when its mark is taken back: here a mark in outbox.sent, by you a mark in your table.

Exit codes: 0 done; 1 failed, declined, or an outcome is not unknown and nothing is changed; 2 usage, \
or no terminal to confirm it: add --yes."
)]
pub struct Args {
    /// Ids of requests; with --relay keys of its rows, as `request list` shows them
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// The receiver has the message
    #[arg(long, group = "outcome")]
    pub arrived: bool,
    /// The receiver does not have it
    #[arg(long, group = "outcome")]
    pub lost: bool,
    /// The relay whose rows these are; without it they are requests of the ledger
    #[arg(long, value_name = "NAME")]
    pub relay: Option<String>,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
    /// How to print them
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

/// A request or row that is to be settled.
struct OpenOutcome {
    relay: String,
    key: Vec<String>,
}

pub(super) async fn run(client: &tokio_postgres::Client, args: &Args) -> anyhow::Result<ExitCode> {
    let outcome = if args.arrived { SettleOutcome::Arrived } else { SettleOutcome::Lost };
    let mut named = Vec::new();
    for text in &args.ids {
        let found = unknown(client, args.relay.as_deref(), text).await?;
        if named.iter().all(|named: &OpenOutcome| named.key != found.key) {
            named.push(found);
        }
    }
    let keys: Vec<Vec<String>> = named.iter().map(|named| named.key.clone()).collect();
    if args.consent.dry_run {
        print(&printed(args, &named, outcome))?;
    }
    if let Some(code) = agreed(args.consent, &question(&keys, outcome))? {
        return Ok(code);
    }
    // If the command fails, its session ends, and the transaction with it.
    client.batch_execute("BEGIN").await?;
    let settled = match &args.relay {
        Some(relay) => settle::rows(client, relay, &keys, outcome, &operator()).await?,
        None => settle::requests(client, &keys.concat(), outcome, &operator()).await?,
    };
    anyhow::ensure!(
        usize::try_from(settled).is_ok_and(|settled| settled == keys.len()),
        "{} of {} were changed meanwhile: nothing is settled",
        keys.len() - usize::try_from(settled).unwrap_or(0),
        keys.len()
    );
    client.batch_execute("COMMIT").await?;
    print(&printed(args, &named, outcome))?;
    Ok(ExitCode::SUCCESS)
}

fn question(keys: &[Vec<String>], outcome: SettleOutcome) -> String {
    let keys: Vec<_> = keys.iter().map(|key| visible(&serde_json::json!(key).to_string())).collect();
    format!("Record {} as {}?", keys.join(", "), outcome.as_str())
}

/// The request or row of this id or key, whose outcome must be unknown.
async fn unknown(client: &tokio_postgres::Client, relay: Option<&str>, text: &str) -> anyhow::Result<OpenOutcome> {
    let (named, state) = match relay {
        Some(relay) => {
            let row = row(client, relay, &key(text)).await?;
            (OpenOutcome { relay: relay.to_owned(), key: row.key }, row.state)
        }
        None => {
            let id = id(text).map_err(|error| Unnamed(format!("{}: {error}; rows need --relay", visible(text))))?;
            let Some((relay, status)) = settle::status(client, &id).await? else {
                anyhow::bail!("there is no request {id} in outbox.request; rows need --relay");
            };
            (OpenOutcome { relay, key: vec![id] }, status)
        }
    };
    anyhow::ensure!(
        state == "unknown",
        "{} is {state}; only an unknown outcome can be settled",
        serde_json::json!(named.key)
    );
    Ok(named)
}

/// The one row of a relay that this key means.
async fn row(client: &tokio_postgres::Client, relay: &str, key: &[String]) -> anyhow::Result<settle::NamedRow> {
    let shown = || match key {
        [one] => visible(one),
        several => visible(&serde_json::json!(several).to_string()),
    };
    let (mut unknown, mut others): (Vec<_>, Vec<_>) =
        settle::named(client, relay, key).await?.into_iter().partition(|row| row.state == "unknown");
    // A row that was due at one instant twice has two records; the other goes with the next call.
    unknown.dedup_by(|a, b| a.at == b.at);
    if unknown.len() > 1 {
        let names: Vec<_> = unknown.iter().map(|row| word(&at(row, key.len()))).collect();
        anyhow::bail!(
            "relay {relay} has {} unknown outcomes of row {}; name one of them: {}",
            unknown.len(),
            shown(),
            names.join(" ")
        );
    }
    let row = unknown.pop().or_else(|| others.pop());
    row.ok_or_else(|| {
        anyhow::anyhow!(
            "relay {relay} has no unknown outcome of row {}: it was settled already, or is still being sent",
            shown()
        )
    })
}

/// The key of a row with its instant, as JSON; `columns` is how many columns it has without.
fn at(row: &settle::NamedRow, columns: usize) -> String {
    let key: Vec<_> = row.key.iter().take(columns).chain([&row.at]).collect();
    visible(&serde_json::json!(key).to_string())
}

/// An id that names no request of the ledger: a usage error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::cli) struct Unnamed(String);

/// A key as the list prints it, a JSON array of texts; or the text of a key of one column.
fn key(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|_| vec![text.to_owned()])
}

fn printed(args: &Args, named: &[OpenOutcome], outcome: SettleOutcome) -> String {
    let outcome = outcome.as_str();
    if args.output == Format::Table {
        let line = |named: &OpenOutcome| format!("{} {outcome}\n", visible(&serde_json::json!(named.key).to_string()));
        return named.iter().map(line).collect();
    }
    let settled: Vec<_> = named
        .iter()
        .map(|named| serde_json::json!({ "relay": named.relay, "key": named.key, "outcome": outcome }))
        .collect();
    format!("{}\n", serde_json::json!({ "requests": settled }))
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn key_is_read_as_json_array_or_plain_text() {
        assert_eq!(key("4711"), ["4711"]);
        assert_eq!(key(r#"["blue","7"]"#), ["blue", "7"]);
        assert_eq!(key("[blue"), ["[blue"]);
    }
}
