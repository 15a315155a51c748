//! What must be true before a relay of schedules runs: a sink, a cursor row.

use std::sync::Arc;

use crate::database::Error;
use crate::jobs::schedules;
use crate::metrics::{CursorMetrics, ScheduleMetrics};
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::prepared;
use crate::relay::setup::prepare::{self, Seat};
use crate::relay::setup::sinks;
use crate::sink::Sink;
use crate::sink::kafka::Passed;
use crate::source::Schedules;
use crate::source::schedule::columns;

/// A relay of schedules that has passed its checks.
#[derive(Debug)]
pub(super) struct PreparedSchedule {
    pub(super) config: Config,
    pub(super) schedules: Schedules,
    pub(super) sink: Sink,
    pub(super) seat: Seat,
    pub(super) metrics: CursorMetrics,
    pub(super) counters: ScheduleMetrics,
}

prepared!(PreparedSchedule);

pub(super) async fn prepare(
    engine: &Arc<Engine>,
    config: &Config,
    source: &Schedules,
) -> Result<Result<PreparedSchedule, Unready>, Error> {
    let session = engine.probe.session().await?;
    let root: u32 = session.query_one("SELECT 'outbox.action'::regclass::oid", &[]).await?.try_get(0)?;
    let columns = columns();
    let sink =
        match sinks::make(engine, config, sinks::KnownTable { passed: Passed::default(), columns: &columns }).await {
            Ok(sink) => sink,
            Err(unready) => return Ok(Err(unready)),
        };
    let seat = match prepare::seat(engine, &session, config, root).await? {
        Ok(seat) => seat,
        Err(unready) => return Ok(Err(unready)),
    };
    let waited = schedules::found(&session, &config.name, source.schema.is_some()).await?;
    if waited > 0 {
        tracing::info!(cursor = config.name, schedules = waited, "schedules had waited for this relay");
    }
    Ok(Ok(PreparedSchedule {
        metrics: CursorMetrics::new(&config.name, config.sink.kind()).with_rate(sink.min_interval().is_some()),
        counters: ScheduleMetrics::new(&config.name),
        config: config.clone(),
        schedules: source.clone(),
        sink,
        seat,
    }))
}
