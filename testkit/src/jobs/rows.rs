//! The table of pending rows, the application that writes them and asks for the same by requests, and what the database says of
//! both.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::judge::Row;

/// Whom messages go to.
const NUMBERS: u32 = 30;
/// Between two messages.
const PERIOD: Duration = Duration::from_millis(25);

/// Both relays of pending rows have a mark of their own.
pub(super) const TABLE: &str = "
    CREATE TABLE public.reminders (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, due timestamptz NOT NULL DEFAULT clock_timestamp(),
        phone text NOT NULL, sent_alone boolean NOT NULL DEFAULT false, sent_lanes boolean NOT NULL DEFAULT false);
    CREATE INDEX ON public.reminders (due, id) WHERE NOT sent_alone;
    CREATE INDEX ON public.reminders (due, id) WHERE NOT sent_lanes;
    GRANT SELECT, UPDATE (sent_alone, sent_lanes) ON public.reminders TO relay;
    GRANT SELECT, INSERT ON public.reminders TO app;";
/// The row and the request are committed together.
const INSERT: &str = "
    WITH made AS (INSERT INTO public.reminders (phone) VALUES ($1::text) RETURNING id)
    SELECT outbox.enqueue('demo', 'reminder', jsonb_build_object('phone', $1::text, 'n', made.id)) FROM made";
const ROWS: &str = "SELECT id, phone FROM public.reminders ORDER BY due, id";
/// Whether all three relays have their cursor, and requests can be made.
pub(super) const BEGUN: &str = "
    SELECT (SELECT count(*) FROM outbox.cursor WHERE name = ANY ($1)) = 3
        AND EXISTS (SELECT FROM outbox.template WHERE name = 'reminder')";
const OPEN: &str = "
    SELECT (SELECT count(*) FROM public.reminders WHERE NOT (sent_alone AND sent_lanes))
        + (SELECT count(*) FROM outbox.request WHERE status IN ('pending', 'processing'))";

/// The rows, in their order.
pub(super) async fn all(owner: &Client) -> anyhow::Result<Vec<Row>> {
    let rows = owner.query(ROWS, &[]).await?;
    Ok(rows.iter().map(|row| Row { id: row.get(0), phone: row.get(1) }).collect())
}

/// Whether each row has both marks, and no request is open.
pub(super) async fn settled(owner: &Client) -> anyhow::Result<bool> {
    Ok(owner.query_one(OPEN, &[]).await?.get::<_, i64>(0) == 0)
}

/// The application; it writes until it is stopped.
#[derive(Debug)]
pub(super) struct Application {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Application {
    /// Messages to numbers that the seed decides.
    pub(super) fn start(app: Client, seed: u64) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed);
            while !stopped.is_cancelled() {
                app.execute(INSERT, &[&format!("+1555{:07}", random.u32(0..NUMBERS))]).await?;
                tokio::time::sleep(PERIOD).await;
            }
            Ok(())
        });
        Self { stop, task }
    }

    /// Ends it, and waits for its last message.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?
    }
}
