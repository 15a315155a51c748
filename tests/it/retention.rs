//! Retention: what is done with goes after its time; what somebody still needs stays, and is told.

use serde_json::Value;

use crate::support::outbox_relay;
use crate::support::outside::json;

mod late;
mod limit;
mod marks;
mod messages;
mod requests;
mod safe;

/// All of `[retention]`.
const TIMES: &str =
    "[retention]\ncompleted_requests = \"90d\"\nsent_marks = \"90d\"\ndead_letters = \"90d\"\nevery = \"1s\"\n";

/// The document of `prune -o json`, which ends with 0.
async fn prune(toml: &str, consent: &str) -> Value {
    let (code, out, log) = outbox_relay(toml, &["prune", consent, "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    json(&out)
}

/// What it says of one kind: how many may go, how many went, and the rest with who holds it.
fn told<'a>(document: &'a Value, what: &str, of: &str) -> (i64, i64, Vec<(Option<i64>, &'a str)>) {
    let entries = document["prune"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["key"] == serde_json::json!([what, of]));
    let entry = entry.unwrap_or_else(|| panic!("{what} {of} in {document}"));
    let kept = entry["kept"].as_array().unwrap();
    let kept = kept.iter().map(|kept| (kept["rows"].as_i64(), kept["held_by"].as_str().unwrap())).collect();
    (entry["prunable"].as_i64().unwrap(), entry["pruned"].as_i64().unwrap(), kept)
}
