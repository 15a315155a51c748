//! The topics that an encoder has written to, with their schemas.
//!
//! Promise: memory does not grow with the number of topics. Those that were used last are held, and topics whose schemas are the same have
//! one codec. What is forgotten is made again of the answer that the registry gave, which is remembered apart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::codec::Codec;
use super::kept::Kept;
use super::registry::Given;
use crate::sink::Failure;

/// So many topics are held, each with a codec of its own where their schemas differ.
pub(super) const MOST: usize = 1_000;

/// The schema of a topic's records.
#[derive(Debug)]
pub(super) struct OfTopic {
    pub(super) kept: Arc<Kept>,
    pub(super) given: Arc<Given>,
    pub(super) codec: Arc<Codec>,
    pub(super) id: u32,
    /// What `given` is unusable for; the codec is of the one before it.
    pub(super) unusable: Option<Failure>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Topics {
    held: RwLock<HashMap<String, Entry>>,
    /// How often one was asked for.
    uses: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    of_topic: Arc<OfTopic>,
    /// Which use was the last.
    used: AtomicU64,
}

impl Topics {
    /// What is held of a topic.
    pub(super) fn get(&self, topic: &str) -> Option<Arc<OfTopic>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let entry = held.get(topic)?;
        entry.used.store(self.next_use(), Ordering::Relaxed);
        Some(Arc::clone(&entry.of_topic))
    }

    /// The codec of a topic whose schema is the same.
    pub(super) fn codec(&self, given: &Given) -> Option<Arc<Codec>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let mut usable = held.values().map(|entry| &entry.of_topic).filter(|of_topic| of_topic.unusable.is_none());
        usable.find(|of_topic| of_topic.given.is_same_schema(given)).map(|of_topic| Arc::clone(&of_topic.codec))
    }

    /// Holds this of a topic, and nothing more of the usable one that was not used for longest, where they become too many.
    pub(super) fn insert(&self, topic: &str, of_topic: OfTopic) {
        let entry = Entry { of_topic: Arc::new(of_topic), used: AtomicU64::new(self.next_use()) };
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MOST && !held.contains_key(topic) {
            // One with an unusable schema last: without the codec that it still has, its next row would be refused.
            let oldest = held
                .iter()
                .min_by_key(|(_, entry)| (entry.of_topic.unusable.is_some(), entry.used.load(Ordering::Relaxed)));
            if let Some(oldest) = oldest.map(|(topic, _)| topic.clone()) {
                held.remove(&oldest);
            }
        }
        held.insert(topic.to_owned(), entry);
    }

    fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }
}
