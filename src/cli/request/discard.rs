//! `outbox-relay request discard`.

use std::process::ExitCode;

use super::{Consent, Table, agreed, complain, id, operator, print};
use crate::cli::table::visible;
use crate::cursor::relay::unhurried;
use crate::jobs::discard::{self, OpenRequest, Which};

/// So many requests are shown; the others are counted.
const SHOWN: usize = 20;

/// Arguments of `request discard`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay request discard 01a1ff20-4202-76c3-af15-1206ca39ede4 --dry-run
  outbox-relay request discard --relay mails --yes
      all of a relay whose receiver is gone: those that failed, and those that wait
  outbox-relay request discard --relay mails --status pending

A discarded request is never sent. It keeps its dedupe key, so that a caller that asks for the same again gets it and sends \
nothing, unless by retry_failed. `request list --status discarded` shows it until retention deletes it, as it does a \
completed one. A row in outbox.operation says who gave it up.

A pending request that an earlier try may have sent is not given up: it becomes unknown, and no replica sends it any more. It \
leaves alone what a replica is sending, and what is unknown already. `request settle` records what the receiver says of an \
unknown one, and one that is lost can be discarded.

5,000 at a time are given up. When it is ended half-way, by --timeout for example, what was given up stays so; the same command goes \
on with the others.

Exit codes: 0 done; 1 failed, or declined; 2 usage, or no terminal to confirm it: add --yes.")]
pub struct Args {
    /// Their ids
    #[arg(value_name = "ID", required_unless_present = "relay", conflicts_with = "relay", value_parser = id)]
    pub ids: Vec<String>,
    /// All of this relay that failed or wait
    #[arg(long, value_name = "NAME")]
    pub relay: Option<String>,
    /// Of the relay's only those in this state
    #[arg(long, value_name = "STATUS", requires = "relay", value_parser = ["failed", "pending"])]
    pub status: Option<String>,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
}

pub(super) async fn run(client: &tokio_postgres::Client, args: &Args) -> anyhow::Result<ExitCode> {
    let which = match &args.relay {
        Some(relay) => Which::Relay(relay, args.status.as_deref()),
        None => Which::Ids(&args.ids),
    };
    // A relay may have hundreds of thousands: --timeout limits the command, and not the time of a turn's statement.
    unhurried(client).await?;
    let found = discard::find(client, which).await?;
    if let Some(missing) = args.ids.iter().find(|id| found.iter().all(|one| one.id != **id)) {
        anyhow::bail!("there is no request {missing} in outbox.request");
    }
    let (fit, others): (Vec<OpenRequest>, Vec<OpenRequest>) =
        found.into_iter().partition(|one| matches!(&*one.status, "failed" | "pending"));
    for one in others.iter().take(SHOWN) {
        complain(refusal(one));
    }
    if let Some(more) = others.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        complain(format!("{more} more are left alone as well"));
    }
    if fit.is_empty() {
        print("nothing to do\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&preview(&fit))?;
    if let Some(code) = agreed(args.consent, "Give them up? They are never sent.")? {
        return Ok(code);
    }
    let ids: Vec<String> = fit.into_iter().map(|one| one.id).collect();
    let changed = discard::discard(client, &ids, &operator()).await?;
    print(&format!("{} of {}: given up\n", changed.given_up, ids.len()))?;
    if changed.unknown > 0 {
        print(&format!(
            "{} of {}: unknown, because an earlier try may have arrived: see `outbox-relay request list --unknown`, and settle each by \
             `outbox-relay request settle`\n",
            changed.unknown,
            ids.len()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Why one is left alone.
fn refusal(one: &OpenRequest) -> String {
    let id = &one.id;
    match &*one.status {
        "unknown" => format!(
            "request {id} may have been sent: ask the receiver, and run `outbox-relay request settle {id} --arrived` or `--lost` first"
        ),
        "processing" => {
            let by = visible(one.by.as_deref().unwrap_or("-"));
            format!("request {id} is left alone: replica {by} is sending it")
        }
        status => format!("request {id} is {status}: only failed and pending ones can be given up"),
    }
}

fn preview(fit: &[OpenRequest]) -> String {
    let mut table = Table::new(["KEY", "STATUS", "TEMPLATE", "USER", "ERROR", "NOTE"]);
    for one in fit.iter().take(SHOWN) {
        let note = match one.ambiguous {
            0 => "-".to_owned(),
            1 => "an earlier try may have arrived".to_owned(),
            tries => format!("{tries} earlier tries may have arrived"),
        };
        let note = if one.becomes_unknown() { format!("{note}: becomes unknown") } else { note };
        let code = one.code.clone().unwrap_or_else(|| "-".to_owned());
        table.row([one.id.clone(), one.status.clone(), one.template.clone(), one.user_id.clone(), code, note]);
    }
    let more = match fit.len().checked_sub(SHOWN) {
        None | Some(0) => String::new(),
        Some(more) => format!("and {more} more\n"),
    };
    let unknown = match fit.iter().filter(|one| one.becomes_unknown()).count() {
        0 => String::new(),
        unknown => format!(
            "{unknown} of {} may have arrived: recorded as unknown, not as given up; not sent any more, and to be settled first\n",
            fit.len()
        ),
    };
    table.render() + &more + &unknown
}
