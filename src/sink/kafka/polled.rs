//! A producer with a thread that takes its reports, and that sleeps while nobody uses it.
//!
//! The library's own polling thread wakes ten times a second, and each time turns in circles for the last part of a
//! millisecond before its deadline: half a percent of a core for each producer that rests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseProducer;

use super::cluster::Context;

/// Of one call while it is in use: reports are taken as they come, and the end is noticed after as long as this.
const IN_USE: Duration = Duration::from_millis(200);
/// It rests when it has not been used for so long: to be woken for each of many small publications costs more than to wait.
const RESTLESS: Duration = Duration::from_secs(1);
/// How often what it says of itself is taken while it rests, which is statistics and complaints.
const AT_REST: Duration = Duration::from_secs(1);
/// How many reports are taken then.
const REPORTS: usize = 16;

/// See the module.
pub(super) struct Polled {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    producer: BaseProducer<Context>,
    users: AtomicUsize,
    ended: AtomicBool,
}

impl Polled {
    /// A producer, and a thread of this name.
    pub(super) fn new(name: &str, config: &ClientConfig, context: Context) -> Result<Self, KafkaError> {
        let producer = config.create_with_context(context)?;
        let shared = Arc::new(Shared { producer, users: AtomicUsize::new(0), ended: AtomicBool::new(false) });
        let polling = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || polling.run());
        let thread = thread.map_err(|error| KafkaError::ClientCreation(error.to_string()))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn producer(&self) -> &BaseProducer<Context> {
        &self.shared.producer
    }

    /// Somebody uses it: reports are taken at once.
    pub(super) fn wake(&self) {
        if self.shared.users.fetch_add(1, Ordering::AcqRel) == 0 {
            self.unpark();
        }
    }

    /// Whoever woke it is done with it.
    pub(super) fn rest(&self) {
        self.shared.users.fetch_sub(1, Ordering::AcqRel);
    }

    /// Has its thread end, which it does within a moment.
    pub(super) fn end(&self) {
        self.shared.ended.store(true, Ordering::Release);
        self.unpark();
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut used = Instant::now();
        while !self.ended.load(Ordering::Acquire) {
            if self.users.load(Ordering::Acquire) > 0 {
                used = Instant::now();
            }
            if used.elapsed() < RESTLESS {
                self.producer.poll(IN_USE);
                continue;
            }
            (0..REPORTS).for_each(|_| self.producer.poll(Duration::ZERO));
            // One that was woken or ended meanwhile does not sleep: that is remembered.
            thread::park_timeout(AT_REST);
        }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.end();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("a producer's thread has panicked");
        }
    }
}
