//! What the demo shows of a moment: asked of the database and of the receivers, not of the relays.

use std::time::Instant;

use tokio_postgres::Client;

use super::bookings::Writers;
use super::consumer::Consumer;
use super::replicas::Replicas;
use super::scene::{EVENTS, SMS, Scene};

/// Lag: the age of the oldest committed row beyond the position, held back or not.
const CURSORS: &str = "
    SELECT c.name, coalesce(s.holder, ''), s.halted, coalesce(s.last_error ->> 'message', ''),
           coalesce(extract(epoch FROM clock_timestamp() - (
               SELECT b.created_at FROM public.bookings AS b
               WHERE (b.created_at, b.id) > (coalesce(c.position_created_at, '-infinity'),
                                             coalesce(c.position_id::bigint, -1))
               ORDER BY b.created_at, b.id LIMIT 1))::float8, 0)
    FROM outbox.cursor AS c JOIN outbox.status AS s ON s.name = c.name";

#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) committed: u64,
    pub(super) kafka: Sink,
    pub(super) sms: Sink,
    /// Name, process id and state of each replica.
    pub(super) replicas: Vec<(String, u32, String)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sink {
    pub(super) delivered: u64,
    pub(super) lag_seconds: f64,
    pub(super) holder: String,
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
            replicas: states(&scene.replicas),
        })
    }
}

async fn cursors(owner: &Client) -> anyhow::Result<(Sink, Sink)> {
    let (mut kafka, mut sms) = (Sink::default(), Sink::default());
    for row in owner.query(CURSORS, &[]).await? {
        let (name, holder): (&str, &str) = (row.get(0), row.get(1));
        let sink = Sink {
            delivered: 0,
            lag_seconds: row.get(4),
            holder: holder.rsplit('/').next().unwrap_or_default().to_owned(),
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

fn states(replicas: &Replicas) -> Vec<(String, u32, String)> {
    replicas.all().iter().map(|replica| (replica.name.clone(), replica.pid(), replica.state())).collect()
}
