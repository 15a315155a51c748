//! Where calls with the same key or id wait for each other: outside the pool, so that a key that a transaction elsewhere
//! holds costs one connection a moment now and then, whatever the number of its callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::call::Call;

/// The most calls that wait, for all keys together: fewer than there are connections of clients, so that callers of other
/// keys find one.
const WAITING: usize = super::CLIENTS / 2;

type Held = HashMap<String, Arc<AsyncMutex<()>>>;

/// The keys and ids of the calls that are in progress.
#[derive(Debug)]
pub(super) struct Keys {
    held: Mutex<Held>,
    places: Semaphore,
}

/// Why a call cannot wait, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedCall {
    /// As many calls wait as may.
    Full,
    /// Its time is over.
    Late,
}

impl Keys {
    pub(super) fn new() -> Self {
        Self { held: Mutex::default(), places: Semaphore::new(WAITING) }
    }

    /// Waits until no other call has the key or the id of this one.
    ///
    /// # Errors
    /// When too many wait already, or at `until`.
    pub(super) async fn enter(&self, call: &Call, until: Instant) -> Result<Vec<Turn<'_>>, RefusedCall> {
        let mut turns = Vec::new();
        // Keys before ids, in all calls: no two wait for each other.
        let key = call.dedupe_key.as_ref().map(|key| format!("key {key}"));
        let id = call.request_id.as_ref().map(|id| format!("id {}", id.to_ascii_lowercase()));
        for name in key.into_iter().chain(id) {
            let mut turn = Turn::new(self, name);
            if !turn.try_take() {
                let _place = self.place()?;
                timeout_at(until, turn.take()).await.map_err(|_| RefusedCall::Late)?;
            }
            turns.push(turn);
        }
        Ok(turns)
    }

    /// One of the places of those that wait.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn place(&self) -> Result<SemaphorePermit<'_>, RefusedCall> {
        self.places.try_acquire().map_err(|_| RefusedCall::Full)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue of one key or id; others follow when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    keys: &'a Keys,
    name: String,
    mutex: Option<Arc<AsyncMutex<()>>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl<'a> Turn<'a> {
    fn new(keys: &'a Keys, name: String) -> Self {
        let mutex = Arc::clone(keys.lock().entry(name.clone()).or_default());
        Self { keys, name, mutex: Some(mutex), guard: None }
    }

    fn try_take(&mut self) -> bool {
        self.guard = self.mutex.as_ref().and_then(|mutex| Arc::clone(mutex).try_lock_owned().ok());
        self.guard.is_some()
    }

    async fn take(&mut self) {
        if let Some(mutex) = &self.mutex {
            self.guard = Some(Arc::clone(mutex).lock_owned().await);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut held = self.keys.lock();
        self.guard = None;
        self.mutex = None;
        // The map's own is the last one: no call waits for it.
        if held.get(&self.name).is_some_and(|mutex| Arc::strong_count(mutex) == 1) {
            held.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call(key: &str) -> Call {
        let body = serde_json::json!({ "dedupe_key": key, "user_id": "ada", "template": "welcome",
            "request_id": "01989B3C-8C1E-7D4F-9A53-1F0E6A1D2B3C" });
        Call::parse(body.to_string().as_bytes()).expect("a call")
    }

    #[tokio::test]
    async fn calls_of_one_id_wait_and_leave_nothing_behind() {
        let keys = Keys::new();
        let (soon, hour) = (Instant::now() + Duration::from_millis(20), Instant::now() + Duration::from_secs(3600));
        let first = keys.enter(&call("a"), hour).await.expect("alone");
        assert_eq!(keys.enter(&call("b"), soon).await.err(), Some(RefusedCall::Late), "the id is the same");
        assert_eq!(keys.lock().len(), 2, "those of the first only");
        let next = call("a");
        let (next, ()) = tokio::join!(keys.enter(&next, hour), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert_eq!(next.expect("after the first").len(), 2);
        assert!(keys.lock().is_empty());
    }

    // Guarantee: intake.busy-key
    #[tokio::test]
    async fn calls_beyond_the_places_are_refused_at_once() {
        let keys = Keys::new();
        let hour = Instant::now() + Duration::from_secs(3600);
        let _first = keys.enter(&call("a"), hour).await.expect("alone");
        let _places: Vec<_> = (0..WAITING).map(|_| keys.place().expect("a place")).collect();
        assert_eq!(keys.enter(&call("a"), hour).await.err(), Some(RefusedCall::Full), "not after an hour");
    }
}
