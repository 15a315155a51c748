//! `outbox-relay request`: requests of the ledger, and what stands in `outbox.claim`, unknown outcomes above all.

use std::process::ExitCode;

use super::confirm::{Consent, agreed, operator};
use super::format::Format;
use super::known;
use super::output::{complain, print};
use super::table::{Table, visible};
use crate::config::Config;
use crate::jobs::requests::{self, RequestFilter, RequestSummary};

mod discard;
mod redrive;
pub(in crate::cli) mod settle;

/// Arguments of `request`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay request list --unknown                  what has an unknown outcome
  outbox-relay request list --relay booking_sms
      all of it that waits, is being sent, has failed or has an unknown outcome
  outbox-relay request list --status failed            what a receiver has refused
  outbox-relay request list --ambiguous
      every request that ever had an unknown outcome
  outbox-relay request show --key ada:welcome
      one request: by the key that is sent once, or by its id
  outbox-relay request redrive 01a1ff20-4202-76c3-af15-1206ca39ede4 --yes
      send a failed or unknown one again
  outbox-relay request settle 01a1ff20-4202-76c3-af15-1206ca39ede4 --arrived
      record what the receiver says of an unknown one
  outbox-relay request discard 01a1ff20-4202-76c3-af15-1206ca39ede4
      give up one that failed, or that still waits: it is never sent
  outbox-relay request list --unknown -o json | jq '.requests[] | {relay, key}'

An unknown outcome: see at the receiver whether it has arrived, then record that by `settle`. A request of the ledger (it has \
a template) can be sent again by `redrive`; its Idempotency-Key is the same as before, and so is its body, unless it was \
refused. One whose dedupe key another request has taken is left alone: both would be sent. A row of another relay \
(guarantee = \"at_most_once\") is never sent again.

Exit codes: 0 done; 1 failed, or declined; 2 usage or configuration, or no terminal to confirm it: add --yes.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with requests.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List them, by relay and due time; completed and discarded ones only when asked for
    List {
        /// Only those whose outcome is not known
        #[arg(long, conflicts_with = "status")]
        unknown: bool,
        /// Only in this state; claimed, sending, waiting and dead are of other relays than those of requests
        #[arg(long, value_name = "STATUS", value_parser = ["pending", "processing", "completed", "failed", "unknown",
            "discarded", "claimed", "sending", "waiting", "dead"])]
        status: Option<String>,
        /// Only those that ever had an unknown outcome
        #[arg(long)]
        ambiguous: bool,
        /// Only of this relay
        #[arg(long, value_name = "NAME")]
        relay: Option<String>,
        /// How many to list at most
        #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..))]
        limit: i64,
        /// How to print them
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
    /// Show everything about one request of the ledger, except the body that was sent
    Show {
        /// Its id
        #[arg(value_name = "ID", required_unless_present = "key", conflicts_with = "key", value_parser = id)]
        id: Option<String>,
        /// Its key
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Record whether messages of unknown outcome have arrived
    Settle(settle::Args),
    /// Give up failed or pending requests of the ledger: they are never sent
    Discard(discard::Args),
    /// Send failed or unknown requests of the ledger again
    Redrive {
        /// Their ids
        #[arg(value_name = "ID", required = true, value_parser = id)]
        ids: Vec<String>,
        /// Whether to.
        #[command(flatten)]
        consent: Consent,
    },
}

/// A UUID as PostgreSQL prints it.
fn id(text: &str) -> Result<String, String> {
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    if plain.len() == 32 && plain.chars().all(|c| c.is_ascii_hexdigit()) {
        let parts = [&plain[..8], &plain[8..12], &plain[12..16], &plain[16..20], &plain[20..]];
        Ok(parts.join("-").to_ascii_lowercase())
    } else {
        Err("no UUID; `outbox-relay request list` shows them".to_owned())
    }
}

/// Does it.
///
/// # Errors
/// The database's, or what was asked for does not exist.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let session = super::schema_session(&config, "request").await?;
    match args.verb {
        Verb::List { unknown, status, ambiguous, relay, limit, output } => {
            known::relay(&session, &config, "relay", relay.as_deref()).await?;
            let state = if unknown { Some("unknown") } else { status.as_deref() };
            let found =
                requests::list(&session, RequestFilter { relay: relay.as_deref(), state, ambiguous, limit }).await?;
            print(&match output {
                Format::Json => crate::cli::document::line(
                    serde_json::json!({ "requests": found.iter().map(json).collect::<Vec<_>>() }),
                ),
                Format::Table => render(&found),
            })?;
            if i64::try_from(found.len()).is_ok_and(|listed| listed == limit) {
                complain(format!(
                    "there may be more than these {limit}: choose by --relay and --status, or raise --limit"
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
        Verb::Show { id, key } => {
            let Some(mut document) = shown(&session, id.as_deref(), key.as_deref()).await? else {
                anyhow::bail!("there is no such request in outbox.request");
            };
            document["key"] = serde_json::json!([document["request_id"]]);
            super::document::utc(&mut document);
            print(&format!("{}\n", serde_json::to_string_pretty(&document)?))?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Settle(args) => {
            known::relay(&session, &config, "relay", args.relay.as_deref()).await?;
            settle::run(&session, &args).await
        }
        Verb::Discard(args) => {
            known::relay(&session, &config, "relay", args.relay.as_deref()).await?;
            discard::run(&session, &args).await
        }
        Verb::Redrive { ids, consent } => redrive::run(&session, ids, consent).await,
    }
}

/// A request of the ledger, by its id, or the one that has a key.
async fn shown(
    session: &tokio_postgres::Client,
    id: Option<&str>,
    key: Option<&str>,
) -> anyhow::Result<Option<serde_json::Value>> {
    let found = requests::show(session, id, key).await?;
    Ok(found.map(|found| serde_json::from_str(&found)).transpose()?)
}

fn word(value: &serde_json::Value) -> String {
    visible(value.as_str().unwrap_or("-"))
}

fn render(found: &[RequestSummary]) -> String {
    let mut table = Table::new(["RELAY", "KEY", "STATUS", "TEMPLATE", "USER", "DUE/CREATED", "SINCE", "BY", "ERROR"]);
    for request in found {
        let error = error(request);
        let word = |key: &str| error.as_ref().and_then(|error| error[key].as_str()).unwrap_or("-");
        let ledger = request.ledger.as_ref();
        table.row([
            request.relay.clone(),
            // As JSON, so that a key with blanks or commas cannot pass for several.
            serde_json::json!(request.key).to_string(),
            request.state.clone(),
            ledger.map_or("-", |ledger| &ledger.template).to_owned(),
            ledger.map_or("-", |ledger| &ledger.user_id).to_owned(),
            request.due_at.to_string(),
            request.at.to_string(),
            request.by.clone().unwrap_or_else(|| "-".to_owned()),
            word("code").to_owned(),
        ]);
    }
    table.render()
}

/// Why.
fn error(request: &RequestSummary) -> Option<serde_json::Value> {
    serde_json::from_str(request.error.as_deref()?).ok()
}

fn json(request: &RequestSummary) -> serde_json::Value {
    let mut document = serde_json::json!({
        "relay": request.relay,
        "key": request.key,
        "status": request.state,
        "due_at": request.due_at.to_string(),
        "at": request.at.to_string(),
        "by": request.by,
        "attempts": request.attempts,
        "ambiguous": request.ambiguous,
        "error": error(request),
    });
    if let Some(ledger) = &request.ledger {
        document["request_id"] = request.key.first().cloned().into();
        document["dedupe_key"] = ledger.dedupe_key.clone().into();
        document["user_id"] = ledger.user_id.clone().into();
        document["template"] = ledger.template.clone().into();
        document["provider_id"] = ledger.provider_id.clone().into();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    fn hostile() -> RequestSummary {
        RequestSummary {
            relay: "r".to_owned(),
            key: vec!["\u{1b}[31m\nforged".to_owned(), "a\",\"b".to_owned()],
            state: "unknown".to_owned(),
            due_at: Timestamp::from_pg_micros(1),
            at: Timestamp::from_pg_micros(2),
            by: Some("replica\u{202e}".to_owned()),
            attempts: 1,
            error: None,
            ledger: None,
            ambiguous: 1,
        }
    }

    // Guarantee: at-most-once.hostile-keys
    #[test]
    fn hostile_keys_forge_neither_a_line_nor_a_column() {
        let text = render(&[hostile()]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(text.contains(r#"["\u001b[31m\nforged","a\",\"b"]"#), "{text}");
        assert!(text.contains("replica\\u{202e}"), "{text}");
    }

    #[test]
    fn the_document_has_each_field_of_the_contract() {
        let document = json(&hostile());
        let keys: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["ambiguous", "at", "attempts", "by", "due_at", "error", "key", "relay", "status"]);
        assert_eq!((&document["status"], &document["error"]), (&"unknown".into(), &serde_json::Value::Null));
        assert_eq!(document["key"][1], "a\",\"b");
    }

    #[test]
    fn an_id_is_a_uuid_in_any_spelling_and_nothing_else() {
        let plain = "01a1ff20-4202-76c3-af15-1206ca39ede4";
        assert_eq!(id(&plain.to_uppercase().replace('-', "")).as_deref(), Ok(plain));
        assert!(id("ada:welcome").is_err() && id("ä1a1ff20420276c3af151206ca39ede").is_err());
    }
}
