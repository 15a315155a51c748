//! What tests share: one PostgreSQL cluster and one broker per test process, a database per test.

#[cfg(feature = "otlp")]
pub mod collector;
pub mod fleet;
pub mod front;
pub mod fuzz;
pub mod gateway;
pub mod hook;
pub mod kafka_acl;
pub mod kafka_proxy;
pub mod naive_relay;
pub mod outside;
pub mod pages;
pub mod post;
pub mod postgres_proxy;
pub mod prometheus;
pub mod promql;
pub mod proxy;
pub mod reader;
pub mod receiver;
pub mod records;
pub mod relays;
#[cfg(feature = "schema-registry")]
pub mod schemas;
pub mod servers;
pub mod start_proxy;
pub mod tls;

use std::time::Duration;

pub use reader::{Reader, ordered, sessions};
pub use records::{Record, ids, late_marks, records};
pub use relays::{Process, Replica, config, kafka_relay, outbox_relay, toml};
pub use servers::{Database, broker, database};

/// Long enough for a busy machine; a test never waits for it unless it fails.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Awaits a state, looking every 10 ms, and every 25 ms from half a second on: most looks ask PostgreSQL, and what has taken so long
/// need not be seen within a hundredth of a second.
///
/// # Panics
/// When `deadline` has passed and the state has not come.
#[track_caller]
pub fn eventually(deadline: Duration, mut state: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let begun = tokio::time::Instant::now();
        while !state().await {
            let waited = begun.elapsed();
            assert!(waited < deadline, "{caller}: the awaited state has not come within {deadline:?}");
            tokio::time::sleep((waited / 20).clamp(Duration::from_millis(10), Duration::from_millis(25))).await;
        }
    }
}

/// A name that no other test uses, for topics.
pub fn unique(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{prefix}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A table `public.bookings` as most tests use it; `created_at` is its definition after the name.
pub async fn bookings(database: &Database, created_at: &str) -> tokio_postgres::Client {
    let owner = database.connect("postgres").await;
    owner
        .batch_execute(&format!(
            "CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {created_at}, \
             customer text NOT NULL DEFAULT 'c', payload text); \
             CREATE INDEX ON public.bookings (created_at, id); \
             GRANT SELECT ON public.bookings TO relay, relay_stats; GRANT INSERT, SELECT ON public.bookings TO app"
        ))
        .await
        .unwrap();
    owner
}

/// `created_at` by the clock at the insert.
pub const CLOCK: &str = "timestamptz NOT NULL DEFAULT clock_timestamp()";
/// `created_at` by the transaction's start.
pub const NOW: &str = "timestamptz NOT NULL DEFAULT now()";
