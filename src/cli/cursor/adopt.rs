//! `outbox-relay cursor adopt`.

use std::process::ExitCode;
use std::sync::Arc;

use super::subject::{Subject, place};
use super::wait::Wait;
use super::{agreed, unknown};
use crate::cli::confirm::Consent;
use crate::cli::output::print;
use crate::cli::table::Table;
use crate::config::Config;
use crate::cursor::{Adoption, Order, halt};
use crate::relay::engine::identity::Change;
use crate::relay::engine::lag::CAP;
use crate::relay::inspect::adopt::{changes, found, known};
use crate::sink::kafka::Cluster;
use crate::source::family::detached;
use crate::source::span::between;

/// Arguments of `cursor adopt`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor adopt booking_events --dry-run      what has changed under the cursor?
  outbox-relay cursor adopt booking_events                take it over, position and all

It accepts, for a cursor that is halted because of it: another table, sink, target or database system under the same name; \
a table that was replaced (swapped by RENAME); an attached partition with rows that were passed; another number of \
partitions of the topic; or for one that waits for a detached partition, whose rows are given up. The position stays: rows of the new table or partition at or below it are never sent. The halt \
ends. Only a replica that finds exactly what was shown here takes it over.

Exit codes: 0 done, nothing to adopt, or stored where no replica runs; 1 failed or declined; 2 usage, an unknown relay, or no \
terminal to confirm it: add --yes; 3 not carried out in time.")]
pub struct Args {
    /// The cursor's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
    /// How long to wait.
    #[command(flatten)]
    pub wait: Wait,
}

/// Shows what has changed, asks, writes the change and waits for it.
pub(super) async fn run(config: Config, args: &Args) -> anyhow::Result<ExitCode> {
    let mut subject = Subject::open(config, &args.name).await?;
    let name = args.name.as_str();
    let limits = crate::cli::run::limits(&subject.config.relays);
    let cluster = subject.config.kafka.clone().map(|kafka| Arc::new(Cluster::new(kafka)));
    let position = subject.standing().await?.position;
    let known = known(&subject.session, name).await?.ok_or_else(|| unknown(name))?;
    let found = found(&subject.session, cluster.as_ref(), &subject.relay, &subject.shape, limits.lock_kill / 2).await?;
    let changes = changes(&subject.session, &known, &found).await?;
    if changes.is_empty() {
        print(&format!("{name}: nothing to adopt: it belongs to what its relay finds\n"))?;
        let halt = halt(&subject.session, name).await?;
        if halt.is_some_and(|halt| Adoption::CURES.contains(&halt.code.as_str())) {
            print(&format!("what it is halted by is over: outbox-relay cursor resume {name}\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    print(&table(&changes))?;
    if changes.iter().any(|change| change.what.starts_with("shard")) {
        let relay = &subject.relay.relay;
        anyhow::bail!(
            "another number of shards would lose or repeat rows: `outbox-relay cursor reshard {relay}` hands them over"
        );
    }
    let below = between(&subject.session, &subject.shape, (None, position.as_ref()), CAP).await?;
    let more = if below.capped { "+" } else { "" };
    print(&format!(
        "the position stays: {}\nrows of the table at or below it, sent before or never: {}{more}\n",
        place(position.as_ref()),
        below.rows
    ))?;
    if let Some(partition) = detached(&**subject.session, &subject.shape, name, position.as_ref()).await? {
        print(&format!("rows of {partition} after it, and of others that are gone, which were not sent: given up\n"))?;
    }
    if let Some(code) = agreed(args.consent, &format!("Let {name} go on with what was found?"))? {
        return Ok(code);
    }
    let change =
        Order { to: position.as_ref(), from: Some(position.as_ref()), adopt: Some(&found), ..Order::default() };
    let detail: Vec<_> = changes.iter().map(json).collect();
    let detail = serde_json::json!({ "changes": detail });
    args.wait.for_change(&mut subject, &change, ("cursor adopt", &detail), |_| Ok("adopted".to_owned())).await
}

fn table(changes: &[Change]) -> String {
    let mut table = Table::new(["FIELD", "RECORDED", "CURRENT"]);
    for change in changes {
        table.row([change.what.to_owned(), change.known.clone(), change.found.clone()]);
    }
    table.render()
}

fn json(change: &Change) -> serde_json::Value {
    serde_json::json!({ "field": change.what, "recorded": change.known, "current": change.found })
}
