//! A sink of one's own that has mistakes harms no row and no other relay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use outbox_relay::{CustomSink, Delivery, Description, Environment, Program, Stopped, async_trait};

use crate::support::{CLOCK, PATIENCE, Replica, bookings, database, eventually, toml};

/// Panics at its first tries, and keeps what it accepts then.
struct Clumsy {
    panics: Arc<AtomicUsize>,
    accepted: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl CustomSink for Clumsy {
    fn description(&self) -> Description {
        Description::in_batches("a clumsy receiver")
    }

    async fn publish(&self, messages: &[Delivery<'_>], _deadline: Instant) -> Result<(), Stopped> {
        let left = self.panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        assert!(left.is_err(), "a mistake in a sink");
        self.accepted.lock().unwrap().extend(messages.iter().map(|message| message.id.to_owned()));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_that_panics_is_tried_again_and_no_row_is_lost() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let panics = Arc::new(AtomicUsize::new(3));
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let program = {
        let (panics, accepted) = (Arc::clone(&panics), Arc::clone(&accepted));
        Program::new()
            .sink("clumsy", move |_| Ok(Clumsy { panics: Arc::clone(&panics), accepted: Arc::clone(&accepted) }))
    };
    let relay = "[[relay]]\nname = \"own\"\nstart = \"beginning\"\n[relay.source.stream]\n\
                 table = \"public.bookings\"\n[relay.sink.custom]\nkind = \"clumsy\"\n";
    let text = toml(&database, "relay", None, relay);
    let config = program.parse(&text, "test.toml", &Environment::new()).unwrap();
    owner.batch_execute("INSERT INTO bookings SELECT FROM generate_series(1, 10)").await.unwrap();
    let replica = Replica::start(&config, "r1");
    let expected: Vec<String> = (1..=10).map(|id| id.to_string()).collect();
    eventually(PATIENCE * 6, async || *accepted.lock().unwrap() == expected).await;
    assert_eq!(panics.load(Ordering::Relaxed), 0);
    replica.stop().await;
}
