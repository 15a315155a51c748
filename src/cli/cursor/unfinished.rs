//! What `cursor remove` prints for work that is not finished: the commands that finish it.

use super::belongings::NamedRelay;
use crate::config::Config;
use crate::cursor::dead_letter::wanted;
use crate::cursor::relay::Belonging;
use crate::database::{Error, Session, quote_literal};
use crate::jobs::requests::{self, RequestFilter, RequestSummary};
use crate::visible::visible;

/// So many keys stand in one command; `cursor remove` prints the next ones when it runs again.
const KEYS: i64 = 20;

/// How rows of a kind are finished: commands in backticks, choices after "; or".
pub(super) async fn hint(
    session: &Session,
    named: &NamedRelay,
    of: &Belonging,
    config: &Config,
) -> Result<String, Error> {
    let (relay, cursor) = (quote_literal(&named.relay), word(&of.cursor));
    let run = run_once(named, config);
    let moved = |table: &str, which: &str| {
        format!("hand them over: `UPDATE outbox.{table} SET relay = 'NEW' WHERE relay = {relay}{which}`")
    };
    Ok(match &*of.what {
        "rows in flight" => format!("{run}: sends what is left, and lists them as unknown outcomes"),
        "unfinished sends" => {
            format!("{run}: sends what is due, and lists what may have been sent as unknown outcomes")
        }
        "unknown outcomes" => {
            let settle =
                format!("outbox-relay request settle {} --relay {cursor}", keys(session, of, "unknown").await?);
            format!("ask the receiver, then `{settle} --arrived`; or `{settle} --lost`")
        }
        "dead letters" => letters(wanted(session, &of.cursor).await?, of, &run),
        "parked keys" => parked(named, of, &run),
        "requests" => format!(
            "{run}; or {}; or give them up: `outbox-relay request discard --relay {cursor} --status pending`",
            moved("request", " AND status = 'pending'")
        ),
        "unknown requests" | "processing requests" => {
            let state = of.what.trim_end_matches(" requests");
            let settle = format!("outbox-relay request settle {}", keys(session, of, state).await?);
            let settle = format!("ask the receiver, then `{settle} --arrived`; or `{settle} --lost`");
            // Their replica is gone: another one can take them up, and lists what may have been sent.
            if state == "processing" { format!("{run}; or {settle}") } else { settle }
        }
        "failed requests" => {
            let keys = keys(session, of, "failed").await?;
            format!(
                "`outbox-relay request redrive {keys}`, then {run}; or {}; or give them up: `outbox-relay request discard {keys}`",
                moved("request", " AND status = 'failed' AND error ->> 'code' IS DISTINCT FROM 'discarded'")
            )
        }
        "schedules" => {
            format!("`DELETE FROM outbox.schedule WHERE relay = {relay}`; or {}", moved("schedule", ""))
        }
        "actions" => format!(
            "{run}; or give up those that have not begun: `SELECT outbox.cancel_actions(schedule, tenant) FROM (SELECT DISTINCT \
             schedule, tenant FROM outbox.action WHERE relay = {relay} AND status IN ('queued', 'due')) AS open`"
        ),
        _ => "finish them".to_owned(),
    })
}

/// Dead letters are redriven, or given up; so many are redriven already.
fn letters(redriving: i64, of: &Belonging, run: &str) -> String {
    let cursor = word(&of.cursor);
    let first = match redriving {
        0 => format!("`outbox-relay dead-letter redrive --cursor {cursor}`, then {run}"),
        redriving if redriving == of.open => format!("{}: {run}", waits_for_turn(redriving)),
        redriving => format!(
            "{}; `outbox-relay dead-letter redrive --cursor {cursor}` for the others, then {run}",
            waits_for_turn(redriving)
        ),
    };
    format!("{first}; or give them up: `outbox-relay dead-letter discard --cursor {cursor}`")
}

/// The next turns end parked keys when no dead letter holds them any more, also those of which no row is left.
fn parked(named: &NamedRelay, of: &Belonging, run: &str) -> String {
    let beside = |what: &str| named.belongings.iter().find(|one| one.what == what && one.cursor == of.cursor);
    let first =
        if beside("dead letters").is_some_and(|letters| letters.open > 0) { "after its dead letters: " } else { "" };
    let sends = match beside("parked rows").map_or(0, |rows| rows.rows) {
        0 => "ends them, as none of their rows is left".to_owned(),
        1 => "sends their 1 row".to_owned(),
        rows => format!("sends their {rows} rows, in order"),
    };
    let of = format!("cursor = {}", quote_literal(&of.cursor));
    let gone = format!("WITH gone AS (DELETE FROM outbox.parked WHERE {of}) DELETE FROM outbox.parked_key WHERE {of}");
    format!("{first}{run}: {sends}; or give these up: `{gone}`")
}

/// Dead letters that an operator has redriven, and that no turn has sent yet.
fn waits_for_turn(redriving: i64) -> String {
    format!("{redriving} {} for a turn", if redriving == 1 { "waits" } else { "wait" })
}

/// The run that finishes what a replica has begun: only a relay that is configured and not paused can.
fn run_once(named: &NamedRelay, config: &Config) -> String {
    let mut first = String::new();
    if config.relays.iter().all(|relay| relay.relay != named.relay) {
        first += "configure the relay again, ";
    }
    for cursor in named.cursors.iter().filter(|cursor| cursor.paused) {
        first += &format!("`outbox-relay cursor resume {}`, ", word(&cursor.name));
    }
    format!("{first}`outbox-relay run --once --relay {}`", word(&named.relay))
}

/// The keys of rows or requests in this state, as arguments of `request`.
async fn keys(session: &Session, of: &Belonging, state: &str) -> Result<String, Error> {
    let filter = RequestFilter { relay: Some(&of.cursor), state: Some(state), ambiguous: false, limit: KEYS };
    let of_ledger = of.what.ends_with(" requests");
    let found = requests::list(session, filter).await?;
    let found: Vec<_> =
        found.iter().filter(|row| row.relay == of.cursor && row.ledger.is_some() == of_ledger).collect();
    let named = |row: &&RequestSummary| {
        // Several rows of one key are named by their instants, too.
        let is_one_of_several =
            found.iter().any(|other| other.key.len() > row.key.len() && other.key.starts_with(&row.key));
        let at = is_one_of_several.then(|| row.due_at.to_string());
        key(&row.key.iter().cloned().chain(at).collect::<Vec<_>>())
    };
    Ok(found.iter().map(named).collect::<Vec<_>>().join(" "))
}

/// A key as `request settle` takes it.
fn key(columns: &[String]) -> String {
    match columns {
        [column] if is_plain(column) => column.clone(),
        // JSON, in which every character can be written so that it is safe to show.
        _ => word(&serde_json::json!(columns).to_string().chars().map(escaped).collect::<String>()),
    }
}

fn escaped(c: char) -> String {
    if visible(c.encode_utf8(&mut [0; 4])).chars().eq([c]) {
        return c.to_string();
    }
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// A word of a shell's command line.
pub(in crate::cli) fn word(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(['-', '#'])
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/#".contains(c))
}

#[cfg(test)]
mod tests {
    use super::{key, word};

    #[test]
    fn keys_are_safe_words_of_a_shell() {
        let of = |columns: &[&str]| key(&columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["7"]), "7");
        assert_eq!(of(&["--lost"]), r#"'["--lost"]'"#);
        assert_eq!(of(&["it's", "a b"]), r#"'["it'\''s","a b"]'"#);
        assert_eq!(of(&["a\u{202e}\u{1b}[31m\n"]), r#"'["a\u202e\u001b[31m\n"]'"#);
        assert_eq!((word("many#0").as_str(), word("$(x)").as_str(), word("#x").as_str()), ("many#0", "'$(x)'", "'#x'"));
    }
}
