//! The table of messages, the application that writes them, and what the database lists.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::RELAYS;
use super::judge::Row;

/// Whom messages go to.
const NUMBERS: u32 = 40;
/// The one that the provider refuses for a while.
pub(super) const REFUSED: &str = "+15550000007";
/// Between two messages.
const PERIOD: Duration = Duration::from_millis(20);

/// Makes the table.
pub(super) const TABLE: &str = "
    CREATE TABLE public.messages (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        phone text NOT NULL, body text NOT NULL);
    CREATE INDEX ON public.messages (created_at, id);
    GRANT SELECT ON public.messages TO relay;
    GRANT SELECT, INSERT ON public.messages TO app;";
const INSERT: &str = "INSERT INTO public.messages (phone, body) VALUES ($1, 'Your booking is confirmed')";
const ROWS: &str = "SELECT id::text, phone FROM public.messages ORDER BY created_at, id";
const LISTED: &str = "
    SELECT (SELECT count(*) FROM outbox.dead_letter AS d WHERE d.cursor = r.name AND d.state IN ('dead', 'redriving')),
           (SELECT count(*) FROM outbox.parked AS p WHERE p.cursor = r.name)
    FROM unnest($1::text[]) WITH ORDINALITY AS r (name, n) ORDER BY n";
const HALTED: &str = "SELECT coalesce(bool_or(halted), false) FROM outbox.cursor_status WHERE cursor = 'halt'";
/// Whether all three have their cursor.
pub(super) const BEGUN: &str = "SELECT count(*) = 3 FROM outbox.cursor WHERE name = ANY ($1)";

/// The rows, in their order.
pub(super) async fn all(owner: &Client) -> anyhow::Result<Vec<Row>> {
    let rows = owner.query(ROWS, &[]).await?;
    Ok(rows.iter().map(|row| Row { id: row.get(0), number: row.get(1) }).collect())
}

/// Dead letters and parked rows of each relay.
pub(super) async fn listed(owner: &Client) -> anyhow::Result<[(usize, usize); 3]> {
    let mut listed = [(0, 0); 3];
    for (listed, row) in listed.iter_mut().zip(owner.query(LISTED, &[&RELAYS.as_slice()]).await?) {
        *listed = (usize::try_from(row.get::<_, i64>(0))?, usize::try_from(row.get::<_, i64>(1))?);
    }
    Ok(listed)
}

/// Whether the relay that halts does.
pub(super) async fn is_halted(owner: &Client) -> anyhow::Result<bool> {
    Ok(owner.query_one(HALTED, &[]).await?.get(0))
}

/// A message to one number.
pub(super) async fn write(app: &Client, number: &str) -> anyhow::Result<()> {
    app.execute(INSERT, &[&number]).await?;
    Ok(())
}

/// The application; it writes until it is stopped.
#[derive(Debug)]
pub(super) struct Application {
    pauses: Arc<AtomicBool>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<Client>>,
}

impl Application {
    /// Messages to numbers that the seed decides.
    pub(super) fn start(app: Client, seed: u64) -> Self {
        let (pauses, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let (paused, stopped) = (Arc::clone(&pauses), stop.clone());
        let task = tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed);
            while !stopped.is_cancelled() {
                if !paused.load(Ordering::Relaxed) {
                    write(&app, &format!("+1555{:07}", random.u32(0..NUMBERS))).await?;
                }
                tokio::time::sleep(PERIOD).await;
            }
            Ok(app)
        });
        Self { pauses, stop, task }
    }

    /// Whether it writes nothing for a while; a message may still be under way.
    pub(super) fn pause(&self, pauses: bool) {
        self.pauses.store(pauses, Ordering::Relaxed);
    }

    /// Ends it, and waits for its last message.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await??;
        Ok(())
    }
}
