//! `outbox-relay request redrive`.

use std::process::ExitCode;

use super::{Consent, agreed, complain, operator, print, shown, word};
use crate::jobs::requests;

pub(super) async fn run(
    session: &tokio_postgres::Client,
    ids: Vec<String>,
    consent: Consent,
) -> anyhow::Result<ExitCode> {
    let mut fit = Vec::new();
    for id in ids {
        let Some(found) = shown(session, Some(&id), None).await? else {
            anyhow::bail!("there is no request {id} in outbox.request");
        };
        let (status, code) = (word(&found["status"]), word(&found["error"]["code"]));
        print(&format!("{id} {} for {}: {status} ({code})\n", word(&found["template"]), word(&found["user_id"])))?;
        match refusal(session, &id, &found).await? {
            Some(why) => complain(why),
            None => fit.push(id),
        }
    }
    if fit.is_empty() {
        print("nothing to do\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(code) = agreed(consent, "Send them again? An unknown one may have arrived already.")? {
        return Ok(code);
    }
    let changed = requests::redrive(session, &fit, &operator()).await?;
    print(&format!("{} of {}: pending again\n", changed.len(), fit.len()))?;
    for id in fit.iter().filter(|id| !changed.contains(id)) {
        let why = match shown(session, Some(id), None).await? {
            Some(found) => refusal(session, id, &found).await?,
            None => None,
        };
        complain(why.unwrap_or_else(|| format!("request {id} is left alone: it has changed meanwhile")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why this request cannot be sent again, if so.
async fn refusal(
    session: &tokio_postgres::Client,
    id: &str,
    found: &serde_json::Value,
) -> anyhow::Result<Option<String>> {
    let status = word(&found["status"]);
    if !matches!(&*status, "failed" | "unknown") {
        return Ok(Some(format!("request {id} is {status}: only failed and unknown ones can be sent again")));
    }
    let Some(key) = found["dedupe_key"].as_str().filter(|_| found["holds_key"].as_bool() == Some(false)) else {
        return Ok(None);
    };
    let end = match &*status {
        "failed" => format!("give this one up: `outbox-relay request discard {id}`"),
        _ => format!("ask the receiver, and settle this one: `outbox-relay request settle {id} --arrived` or `--lost`"),
    };
    Ok(Some(match shown(session, None, Some(key)).await? {
        Some(other) => {
            let (other, status) = (word(&other["request_id"]), word(&other["status"]));
            format!(
                "request {id} is left alone: request {other} ({status}) has taken its dedupe key, and both would be sent; see \
                 `outbox-relay request show {other}`, and {end}"
            )
        }
        None => format!(
            "request {id} is left alone: another request had taken its dedupe key, and has been deleted since; a caller can ask again \
             with the key; {end}"
        ),
    }))
}
