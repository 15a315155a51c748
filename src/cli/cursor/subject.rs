//! The cursor that a verb is about, with its relay and its table.

use std::fmt::Write as _;

use super::{named, unknown};
use crate::cli::output::complain;
use crate::cli::table::visible;
use crate::config::Config;
use crate::cursor::{Standing, standings};
use crate::database::Session;
use crate::position::Position;
use crate::relay::engine::lag::CAP;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::prepare;
use crate::relay::{self};
use crate::source::family::detached;
use crate::source::shape::Shape;
use crate::source::span::{Span, between};
use crate::source::watcher::Watcher;

/// See the module.
pub(super) struct Subject {
    pub(super) session: Session,
    pub(super) relay: relay::Config,
    pub(super) shape: Shape,
    pub(super) watcher: Watcher,
    pub(super) config: Config,
}

impl Subject {
    /// The relay of this name must be configured, because its table is read.
    pub(super) async fn open(config: Config, name: &str) -> anyhow::Result<Self> {
        named::one(&config, name)?;
        let config = config.only(&[name.to_owned()])?;
        let session = crate::cli::schema_session(&config, "cursor").await?;
        let relay = config.relays[0].clone();
        let shape = match prepare::shape(&session, &relay.source).await? {
            Ok(shape) => Shape { shard: relay.shard.clone(), ..shape }.waiting_for_all(),
            Err(Unready::Wrong { message, hint, .. }) => anyhow::bail!("{message}. {hint}"),
            Err(Unready::Waiting) => anyhow::bail!("the table cannot be read yet: try again"),
        };
        Ok(Self { session, relay, shape, watcher: crate::cli::watcher(&config, "cursor"), config })
    }

    /// Where the cursor stands.
    pub(super) async fn standing(&self) -> anyhow::Result<Standing> {
        let name = self.relay.name.as_str();
        let standing = standings(&self.session, &[name]).await?.into_iter().next().ok_or_else(|| unknown(name))?;
        if standing.change {
            complain(format_args!(
                "an earlier change of {name} is pending: this one replaces it (`outbox-relay cursor show {name}`)"
            ));
        }
        Ok(standing)
    }

    /// Says so when rows behind this place cannot be read now.
    pub(super) async fn warn_of_detached(&self, place: Option<&Position>) -> anyhow::Result<()> {
        if let Some(partition) = detached(&**self.session, &self.shape, &self.relay.name, place).await? {
            complain(format_args!(
                "WARNING: partition {partition} is detached: its rows are not counted here, and the relay waits until it is \
                 back, dropped, or given up by `outbox-relay cursor adopt` (docs/TABLES.md)"
            ));
        }
        Ok(())
    }

    /// What a move would do, in lines, and as the detail of an operation.
    pub(super) async fn effect(
        &self,
        from: Option<&Position>,
        to: Option<&Position>,
    ) -> anyhow::Result<(String, serde_json::Value)> {
        let again = between(&self.session, &self.shape, (to, from), CAP).await?;
        let passed = between(&self.session, &self.shape, (from, to), CAP).await?;
        let mut text = format!("from  {}\nto    {}\n", place(from), place(to));
        for (what, span) in [("sent again", &again), ("passed over, never sent", &passed)] {
            if let (Some(first), Some(last)) = (&span.first, &span.last) {
                let _ =
                    writeln!(text, "{what}: {}, first {}, last {}", count(span), place(Some(first)), place(Some(last)));
            }
        }
        if again.first.is_none() && passed.first.is_none() {
            text.push_str("no committed row lies in between\n");
        }
        let detail = serde_json::json!({
            "from": json(from), "to": json(to), "sent_again": again.rows, "passed_over": passed.rows,
        });
        Ok((text, detail))
    }
}

fn count(span: &Span) -> String {
    format!("{}{} row{}", span.rows, if span.capped { "+" } else { "" }, if span.rows == 1 { "" } else { "s" })
}

/// A position for people; ids are the application's, and could play tricks on a terminal.
pub(super) fn place(position: Option<&Position>) -> String {
    position.map_or_else(|| "before every row".to_owned(), |position| visible(&position.to_string()))
}

/// Where a cursor stands, after its name.
pub(super) fn at_place(position: Option<&Position>) -> String {
    position.map_or_else(|| place(None), |_| format!("at {}", place(position)))
}

/// A position for programs and for notes, which PostgreSQL reads.
pub(super) fn json(position: Option<&Position>) -> serde_json::Value {
    position.map_or(
        serde_json::Value::Null,
        |position| serde_json::json!({ "created_at": position.created_at.noted(), "id": position.id }),
    )
}
