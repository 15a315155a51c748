//! The story of a demo: write, kill half-way, let everything arrive, compare.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Options;
use super::bookings::{self, Load, Writers};
use super::consumer::Consumer;
use super::gateway::Sms;
use super::sample::{Sample, Samples};
use super::scene::{EVENTS, Scene};
use super::summary::Evidence;
use super::takeover::{self, Kill, kill_holder};
use super::throttle::Throttle;
use super::verified::Verified;
use super::view::View;
use crate::delivery::{Committed, Delivery, Verdict, check};

/// Between two looks at everything.
const LOOK: Duration = Duration::from_millis(200);

/// A row that has not arrived so long after the writers ended is lost.
const DELIVERY: Duration = Duration::from_secs(10);

/// Everything between the stage's setting and its clearing; the verdict goes to standard output.
pub(super) async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
    let consumer = Consumer::start(&scene.broker.servers(), scene.broker.topic()).await?;
    scene.begun().await?;
    view.start();
    let load = Load { seed: options.seed, ..Load::default() };
    view.note(&format!(
        "time counts from here: {} writers begin, with long transactions, rollbacks, savepoints and COPY",
        load.writers
    ));
    let started = super::now();
    let writers = Writers::start(&scene.app_url(), load).await?;

    let begun = Instant::now();
    let mut watch = Watch { writers, consumer, throttle: Throttle::default(), samples: Samples::default() };
    watch.until(scene, view, begun + options.writing / 2).await?;
    let mut kills = Vec::new();
    if options.replicas > 1 {
        kills.push(watch.kill(scene, view).await?);
    }
    watch.until(scene, view, begun + options.writing).await?;
    let Watch { writers, consumer, .. } = watch;

    let written = writers.stop().await?;
    view.note("the writers have ended");
    let committed = bookings::committed(&scene.owner).await?;
    written.agrees_with(&committed)?;
    if timeout(DELIVERY, delivered(&committed, scene, &consumer)).await.is_err() {
        view.note(&format!("not everything has arrived within {DELIVERY:?}"));
    }
    for wrong in scene.replicas.drain().await? {
        view.note(&wrong);
    }
    // Duplicates on their way count, too.
    consumer.catch_up(DELIVERY).await?;
    let received = consumer.stop().await?;
    view.note(&format!("`outbox-relay verify {EVENTS}` compares the table with the topic"));
    let verified = Verified::look(&mut scene.replicas, EVENTS).await?;

    let kafka = check(&committed, &received.streams(), &received.gaps);
    let sms = check(&committed, &sms_streams(&scene.gateway.accepted()), &[]);
    let last = received.partitions.values().flatten().map(|record| record.received_at).max();
    let span = last.map_or(options.writing, |last| last.since(started));
    let (committed, received) = (&committed, &received);
    let evidence = Evidence { committed, received, kafka: &kafka, sms: &sms, verified: &verified, kills: &kills, span };
    let summary = evidence.summary(options);
    println!("\n{}", summary.table());
    if options.json {
        println!("{}", serde_json::to_string(&summary)?);
    }
    Ok(evidence.verdict())
}

/// Looks on while the writers write, and paces them.
struct Watch {
    writers: Writers,
    consumer: Consumer,
    throttle: Throttle,
    samples: Samples,
}

impl Watch {
    async fn until(&mut self, scene: &Scene, view: &mut View, end: Instant) -> anyhow::Result<()> {
        while Instant::now() < end {
            let sample = Sample::take(scene, &self.writers, &self.consumer).await?;
            self.writers.hold(self.throttle.must_hold(sample.at, sample.committed, sample.sms.delivered));
            self.samples.push(sample);
            view.show(self.samples.lines());
            tokio::time::sleep_until(end.min(Instant::now() + LOOK)).await;
        }
        Ok(())
    }

    async fn kill(&mut self, scene: &mut Scene, view: &mut View) -> anyhow::Result<Kill> {
        let mut kill = kill_holder(&scene.owner, &mut scene.replicas, EVENTS).await?;
        view.note(&format!("SIGKILL to {} (pid {}), which held {EVENTS}", kill.replica, kill.pid));
        let end = Instant::now() + 2 * takeover::PATIENCE;
        kill.taken_over = tokio::select! {
            taken_over = takeover::takeover(&scene.owner, &kill) => taken_over?,
            watched = self.until(scene, view, end) => watched.map(|()| None)?,
        };
        match &kill.taken_over {
            Some(takeover) => view.note(&format!("{} has taken over {EVENTS}", takeover.by)),
            None => view.note(&format!("nobody has taken over {EVENTS}")),
        }
        Ok(kill)
    }
}

/// Waits until both receivers have every committed row.
async fn delivered(committed: &Committed, scene: &Scene, consumer: &Consumer) {
    loop {
        let kafka = consumer.look(|received| {
            let ids = received.partitions.values().flatten().map(|record| record.id.as_str());
            ids.filter(|id| committed.created_at(id).is_some()).collect::<HashSet<_>>().len()
        });
        let sms = scene.gateway.accepted();
        let sms: HashSet<&str> = sms.iter().map(booking).filter(|id| committed.created_at(id).is_some()).collect();
        if kafka >= committed.len() && sms.len() >= committed.len() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// All messages of the relay are one stream.
fn sms_streams(accepted: &[Sms]) -> BTreeMap<i32, Vec<Delivery>> {
    let delivery = |sms: &Sms| Delivery { id: booking(sms).to_owned(), created_at: None };
    BTreeMap::from([(0, accepted.iter().map(delivery).collect())])
}

/// The booking that a message speaks of; another text is a phantom.
fn booking(sms: &Sms) -> &str {
    let id = sms.body.strip_prefix("Booking ").and_then(|rest| rest.strip_suffix(" confirmed"));
    id.unwrap_or(&sms.body)
}
