//! A topic watched from outside: when its first record is there, and when its last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use super::stage::Stage;

const PERIOD: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<(Instant, u64)>>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When the first records were there.
    pub first: Instant,
    /// How many these were.
    pub records: u64,
    /// When the last was there.
    pub last: Instant,
}

impl Watch {
    /// Asks for the end of a topic's only partition every few milliseconds.
    pub fn start(stage: &Stage, topic: &str) -> anyhow::Result<Self> {
        let consumer: BaseConsumer = stage.cluster().client_config().create()?;
        // Connected, and the topic known, before it counts.
        consumer.fetch_watermarks(topic, 0, PATIENCE)?;
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (until, into, topic) = (Arc::clone(&stop), Arc::clone(&seen), topic.to_owned());
        let thread = std::thread::spawn(move || {
            let mut before = 0;
            while !until.load(Ordering::Relaxed) {
                let (_, high) = consumer.fetch_watermarks(&topic, 0, PATIENCE)?;
                let high = u64::try_from(high)?;
                if high > before {
                    before = high;
                    into.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), high));
                }
                std::thread::sleep(PERIOD);
            }
            Ok(())
        });
        Ok(Self { stop, seen, thread: Some(thread) })
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).last().map_or(0, |(_, records)| *records)
    }

    /// Ends it.
    pub fn stop(mut self) -> anyhow::Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("stopped already")?;
        thread.join().map_err(|_| anyhow::anyhow!("the watching thread panicked"))??;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(!seen.is_empty(), "no record was seen");
        let ((first, records), (last, _)) = (seen[0], seen[seen.len() - 1]);
        Ok(Seen { first, records, last })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Seen {
    /// Records a second, from the first ones on, which do not count; `records` are all.
    pub fn per_second(&self, records: u64) -> f64 {
        (records - self.records) as f64 / (self.last - self.first).as_secs_f64()
    }
}
