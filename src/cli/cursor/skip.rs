//! `outbox-relay cursor skip`.

use std::process::ExitCode;

use super::agreed;
use super::place::horizon;
use super::subject::{Subject, json, place};
use super::wait::Wait;
use crate::cli::confirm::Consent;
use crate::cli::output::{complain, print};
use crate::cli::table::visible;
use crate::config::Config;
use crate::cursor::{Halt, Order, halt};
use crate::position::Position;
use crate::source::span;

/// Arguments of `cursor skip`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor skip booking_sms
      the message that it is halted at is never sent; the rest goes on
  outbox-relay cursor skip booking_sms --id 4711   the same, and refused unless 4711 comes next
  outbox-relay cursor skip booking_sms --dry-run

Exactly one message is passed: the one that comes next where the cursor stands now. If the cursor has moved when the change \
reaches it, nothing is passed. The halt at this message ends.

Exit codes: 0 done, or stored where no replica runs; 1 failed, refused or declined; 2 usage, an unknown relay, or no terminal to \
confirm it: add --yes; 3 not carried out in time.")]
pub struct Args {
    /// The cursor's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The message's id; by default the one that the cursor is halted at
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
    /// How long to wait.
    #[command(flatten)]
    pub wait: Wait,
}

/// Shows the message, asks, writes the change and waits for it.
pub(super) async fn run(config: Config, args: &Args) -> anyhow::Result<ExitCode> {
    let mut subject = Subject::open(config, &args.name).await?;
    let name = args.name.as_str();
    let standing = subject.standing().await?;
    let halt = halt(&subject.session, name).await?;
    let (row, id) = culprit(&subject, args, halt.as_ref(), standing.position.as_ref()).await?;
    let table = &subject.shape.config.table;
    print(&format!("passed over, never sent: row {} of {table}, {}\n", visible(id.as_str()), place(Some(&row))))?;
    if let Some(halt) = halt.as_ref().filter(|halt| halt.message_id.as_ref() == Some(&id)) {
        print(&format!("halted by {} {}: {}\n", halt.class, visible(&halt.code), visible(&halt.message)))?;
        if halt.class != "poison" {
            complain("the message is not to blame: fix the cause and resume, and it is sent");
        }
    }
    if let Some(code) = agreed(args.consent, &format!("Skip it in {name}?"))? {
        return Ok(code);
    }
    let change =
        Order { to: Some(&row), from: Some(standing.position.as_ref()), passes: Some(id.as_str()), ..Order::default() };
    let detail = serde_json::json!({ "id": id, "row": json(Some(&row)), "from": json(standing.position.as_ref()) });
    let said = |moved| {
        anyhow::ensure!(moved, "{name} has moved meanwhile: nothing was passed over");
        Ok(format!("row {} is passed over", visible(&id)))
    };
    args.wait.for_change(&mut subject, &change, ("cursor skip", &detail), said).await
}

/// The message to pass: it must be the next one, and safe to pass.
async fn culprit(
    subject: &Subject,
    args: &Args,
    halt: Option<&Halt>,
    position: Option<&Position>,
) -> anyhow::Result<(Position, String)> {
    let name = &args.name;
    let halted = halt.and_then(|halt| halt.message_id.as_ref());
    let Some(id) = args.id.as_ref().or(halted) else {
        anyhow::bail!(
            "{name} is not halted at a message, so say which one: --id ID, of the row that comes next. \
             `outbox-relay cursor why {name}` tells why it does not move"
        );
    };
    // What it is halted at was read below the horizon; of any other row that must be made sure. First the horizon: a row that is
    // committed after the look for the next one would be below it, too.
    let safe_below = if halted == Some(id) { None } else { Some(horizon(subject, "").await?.horizon.at) };
    let next = span::next(&subject.session, &subject.shape, position).await?;
    let Some((next, next_id)) = next.and_then(|row| row.id.clone().map(|id| (row, id))) else {
        anyhow::bail!("{name} has no row in front of it: nothing to skip");
    };
    if next_id != *id {
        anyhow::bail!(
            "row {} does not come next in {name}: the next is {}, {}. To pass over several, see `outbox-relay cursor seek`",
            visible(id),
            visible(&next_id),
            place(Some(&next))
        );
    }
    if safe_below.is_some_and(|horizon| horizon <= next.created_at) {
        anyhow::bail!(
            "row {} is above the horizon: transactions are open that may still write before it, and those rows would be \
             passed over, too. `outbox-relay cursor why {name}` names them",
            visible(id)
        );
    }
    Ok((next, next_id))
}
