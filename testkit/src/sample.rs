//! What the demo shows of a moment: asked of the database and of the receivers, not of the relays.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::bookings::Writers;
use super::consumer::Consumer;
use super::scene::{EVENTS, SMS, Scene};

/// Lag: the age of the oldest committed row beyond the position, held back or not.
const CURSORS: &str = "
    SELECT c.name, coalesce(c.advanced_by, ''), s.halted, coalesce(s.last_error ->> 'message', ''),
           coalesce(extract(epoch FROM clock_timestamp() - (
               SELECT b.created_at FROM public.bookings AS b
               WHERE (b.created_at, b.id) > (coalesce(c.position_created_at, '-infinity'),
                                             coalesce(c.position_id::bigint, -1))
               ORDER BY b.created_at, b.id LIMIT 1))::float8, 0)
    FROM outbox.cursor AS c JOIN outbox.status AS s ON s.name = c.name";

/// Rates are over this much time.
const SPAN: Duration = Duration::from_secs(2);

/// The last samples, from which rates are made.
#[derive(Debug, Default)]
pub(super) struct Samples(VecDeque<Sample>);

#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) committed: u64,
    pub(super) kafka: Sink,
    pub(super) sms: Sink,
    /// Name, process id and state of each replica.
    pub(super) replicas: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sink {
    pub(super) delivered: u64,
    pub(super) lag_seconds: f64,
    /// Which replica has moved the cursor last; empty before anyone has. Who holds it changes many times a second.
    pub(super) advanced_by: String,
    /// The last error of a halted relay.
    pub(super) halted: Option<String>,
}

impl Sample {
    pub(super) async fn take(scene: &Scene, writers: &Writers, consumer: &Consumer) -> anyhow::Result<Self> {
        let (kafka, sms) = cursors(&scene.owner).await?;
        Ok(Self {
            at: Instant::now(),
            committed: writers.committed(),
            kafka: Sink { delivered: consumer.count() as u64, ..kafka },
            sms: Sink { delivered: scene.gateway.accepted_count() as u64, ..sms },
            replicas: scene.replicas.states(),
        })
    }
}

impl Samples {
    pub(super) fn push(&mut self, sample: Sample) {
        self.0.push_back(sample);
        while self.0.len() > 2 && self.0[1].at.elapsed() >= SPAN {
            self.0.pop_front();
        }
    }

    /// The present for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let Some((first, last)) = self.0.front().zip(self.0.back()) else { return Vec::new() };
        let seconds = (last.at - first.at).as_secs_f64();
        let rate = |from: u64, to: u64| if seconds > 0.0 { to.saturating_sub(from) as f64 / seconds } else { 0.0 };
        let committed = rate(first.committed, last.committed);
        let mut lines = vec![format!("committed {:>8} rows {committed:>6.0} rows/s", last.committed)];
        for (name, from, to) in [("Kafka", &first.kafka, &last.kafka), ("SMS", &first.sms, &last.sms)] {
            lines.push(describe(name, to, rate(from.delivered, to.delivered)));
        }
        lines.push(last.replicas.clone());
        lines
    }
}

fn describe(name: &str, sink: &Sink, rate: f64) -> String {
    let mut line = format!("{name:<9} {:>8} rows {rate:>6.0} rows/s", sink.delivered);
    match &sink.halted {
        Some(error) => line.push_str(&format!("   HALTED: {error}")),
        None => {
            let moved = match &*sink.advanced_by {
                "" => "has not moved yet".to_owned(),
                by => format!("last moved by {by}"),
            };
            line.push_str(&format!("   lag {:.2} s   {moved}", sink.lag_seconds));
        }
    }
    line
}

async fn cursors(owner: &Client) -> anyhow::Result<(Sink, Sink)> {
    let (mut kafka, mut sms) = (Sink::default(), Sink::default());
    for row in owner.query(CURSORS, &[]).await? {
        let (name, advanced_by): (&str, &str) = (row.get(0), row.get(1));
        let sink = Sink {
            delivered: 0,
            lag_seconds: row.get(4),
            advanced_by: advanced_by.rsplit('/').next().unwrap_or_default().to_owned(),
            halted: row.get::<_, bool>(2).then(|| row.get(3)),
        };
        match name {
            EVENTS => kafka = sink,
            SMS => sms = sink,
            _ => {}
        }
    }
    Ok((kafka, sms))
}
