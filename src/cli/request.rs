//! `outbox-relay request`: what stands in `outbox.claim`, unknown outcomes above all.

use std::process::ExitCode;

use super::format::Format;
use super::output::print;
use super::table::Table;
use crate::config::Config;
use crate::cursor::unknown::{self, Listed};

/// Arguments of `request`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay request list --unknown                  what was sent or not: nobody knows
  outbox-relay request list --relay booking_sms        all that is claimed, sending, waiting, unknown or dead there
  outbox-relay request list --unknown -o json | jq '.requests[] | {relay, key}'

An unknown outcome (guarantee = \"at_most_once\") is never sent again. See at the receiver whether it has arrived; when it
is settled, delete its row from outbox.claim.

Exit codes: 0 done; 1 failed; 2 usage or configuration.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with requests.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List them, by relay and due time
    List {
        /// Only those whose outcome is not known
        #[arg(long)]
        unknown: bool,
        /// Only of this relay
        #[arg(long, value_name = "NAME")]
        relay: Option<String>,
        /// How to print them
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
}

/// Does it.
///
/// # Errors
/// The database's.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let Verb::List { unknown: unknown_only, relay, output } = args.verb;
    let session = super::session(&config, "request").await?;
    crate::migrate::require(&session).await?;
    let found = unknown::list(&session, relay.as_deref(), unknown_only).await?;
    print(&match output {
        Format::Json => {
            format!("{}\n", serde_json::json!({ "requests": found.iter().map(json).collect::<Vec<_>>() }))
        }
        Format::Table => render(&found),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn render(found: &[Listed]) -> String {
    let mut table = Table::new(["RELAY", "KEY", "STATUS", "DUE/CREATED", "SINCE", "BY", "ERROR"]);
    for request in found {
        let error = error(request);
        let word = |key: &str| error.as_ref().and_then(|error| error[key].as_str()).unwrap_or("-");
        table.row([
            request.relay.clone(),
            // As JSON, so that a key with blanks or commas cannot pass for several.
            serde_json::json!(request.key).to_string(),
            request.state.clone(),
            request.due_at.to_string(),
            request.at.to_string(),
            request.by.clone(),
            word("code").to_owned(),
        ]);
    }
    table.render()
}

/// Why.
fn error(request: &Listed) -> Option<serde_json::Value> {
    serde_json::from_str(request.error.as_deref()?).ok()
}

fn json(request: &Listed) -> serde_json::Value {
    serde_json::json!({
        "relay": request.relay,
        "key": request.key,
        "status": request.state,
        "due_at": request.due_at.to_string(),
        "at": request.at.to_string(),
        "by": request.by,
        "attempts": request.attempts,
        "error": error(request),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    fn hostile() -> Listed {
        Listed {
            relay: "r".to_owned(),
            key: vec!["\u{1b}[31m\nforged".to_owned(), "a\",\"b".to_owned()],
            state: "unknown".to_owned(),
            due_at: Timestamp::from_pg_micros(1),
            at: Timestamp::from_pg_micros(2),
            by: "replica\u{202e}".to_owned(),
            attempts: 1,
            error: None,
        }
    }

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
        assert_eq!(keys, ["at", "attempts", "by", "due_at", "error", "key", "relay", "status"]);
        assert_eq!((&document["status"], &document["error"]), (&"unknown".into(), &serde_json::Value::Null));
        assert_eq!(document["key"][1], "a\",\"b");
    }
}
