//! The tables of both systems, the rows that become due during the play, and what the tables say at its end.

use std::collections::HashSet;
use std::time::Duration;

use tokio_postgres::Client;

use super::judge::Row;
use outbox_relay::position::Timestamp;

/// The relay of the reminders, at least once.
pub(super) const REMINDERS: &str = "reminders";
/// The relay of the welcome messages, at most once.
pub(super) const WELCOME: &str = "welcome";

/// Rows that become due in each system, a second of the play.
const PER_SECOND: u64 = 20;
/// How long before the play the first rows are due.
const BEFORE: Duration = Duration::from_secs(3);
/// How long after `created` a welcome message is due.
const WAIT: Duration = Duration::from_secs(6 * 3600);

/// As the systems were found: names in capitals, a key of two columns, a column without a zone.
const TABLES: &str = r#"
    CREATE TABLE public.todos (
        "workspaceId" text NOT NULL, "id" text NOT NULL, "title" text NOT NULL, "dueDate" timestamptz NOT NULL,
        "delayNotificationSent" boolean NOT NULL DEFAULT false, PRIMARY KEY ("workspaceId", "id"));
    CREATE INDEX ON public.todos ("dueDate", "workspaceId", "id") WHERE NOT "delayNotificationSent";
    CREATE TABLE public.users (
        id bigint PRIMARY KEY, email text NOT NULL UNIQUE, created timestamp NOT NULL,
        sent_welcome boolean NOT NULL DEFAULT false);
    CREATE INDEX ON public.users (created, id) WHERE NOT sent_welcome;
    GRANT SELECT, UPDATE ("delayNotificationSent") ON public.todos TO relay;
    GRANT SELECT, UPDATE (sent_welcome) ON public.users TO relay;"#;

const NEW_REMINDER: &str = r#"
    INSERT INTO public.todos SELECT w, i, 'Todo ' || i, 'epoch'::timestamptz + d * interval '1 us', s
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::boolean[]) AS t (w, i, d, s)"#;
const NEW_WELCOME: &str = "
    INSERT INTO public.users
    SELECT i, 'user' || i || '@example.org', 'epoch'::timestamp + (d - $4::bigint) * interval '1 us', s
    FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) AS t (i, d, s)";

const REMINDER_ROWS: &str = r#"
    SELECT $1 || '/' || "workspaceId" || '/' || "id", (extract(epoch FROM "dueDate") * 1000000)::bigint,
           "delayNotificationSent" FROM public.todos"#;
const WELCOME_ROWS: &str = "
    SELECT $1 || '/' || id, (extract(epoch FROM created) * 1000000)::bigint + $2, sent_welcome FROM public.users";
const UNKNOWN: &str = "
    SELECT relay || '/' || array_to_string(key, '/'), (extract(epoch FROM due_at) * 1000000)::bigint
    FROM outbox.claim WHERE relay = $1 AND state = 'unknown'";

/// Due instants of the rows to come, in three kinds: due during the play, marked before it, due long after it.
struct Draw {
    random: fastrand::Rng,
    now: Timestamp,
    span: Duration,
}

impl Draw {
    fn due(&mut self) -> i64 {
        let (from, to) = (self.now.minus(BEFORE), self.now.plus(self.span));
        self.random.i64(from.unix_micros()..to.unix_micros())
    }

    fn much_later(&mut self) -> i64 {
        self.now.plus(Duration::from_secs(self.random.u64(3_600..86_400))).unix_micros()
    }
}

/// Makes and fills both tables; rows become due until three quarters of the play are over.
pub(super) async fn fill(owner: &Client, seed: u64, writing: Duration) -> anyhow::Result<()> {
    owner.batch_execute(TABLES).await?;
    let mut draw = Draw { random: fastrand::Rng::with_seed(seed), now: crate::now(), span: writing * 3 / 4 };
    let due = i64::try_from((writing.as_secs() * PER_SECOND).max(60))?;
    let (mut workspaces, mut ids, mut times, mut sent) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..due / 2 + due / 6 {
        // Every id is in both workspaces: only the whole key names a row.
        for workspace in ["blue", "green"] {
            workspaces.push(workspace);
            ids.push(format!("t{number}"));
            times.push(if number < due / 2 + due / 12 { draw.due() } else { draw.much_later() });
            sent.push((due / 2..due / 2 + due / 12).contains(&number));
        }
    }
    owner.execute(NEW_REMINDER, &[&workspaces, &ids, &times, &sent]).await?;
    let ids: Vec<i64> = (1..=due + due / 3).collect();
    let times: Vec<i64> =
        ids.iter().map(|id| if *id <= due + due / 6 { draw.due() } else { draw.much_later() }).collect();
    let sent: Vec<bool> = ids.iter().map(|id| (due + 1..=due + due / 6).contains(id)).collect();
    owner.execute(NEW_WELCOME, &[&ids, &times, &sent, &micros(WAIT)]).await?;
    owner.batch_execute("ANALYZE public.todos, public.users").await?;
    Ok(())
}

/// Every todo, by the key that its requests have.
pub(super) async fn todos(owner: &Client) -> anyhow::Result<Vec<Row>> {
    Ok(owner.query(REMINDER_ROWS, &[&REMINDERS]).await?.iter().map(row).collect())
}

/// Every user, likewise.
pub(super) async fn users(owner: &Client) -> anyhow::Result<Vec<Row>> {
    Ok(owner.query(WELCOME_ROWS, &[&WELCOME, &micros(WAIT)]).await?.iter().map(row).collect())
}

/// The keys whose outcome nobody knows.
pub(super) async fn unknown(owner: &Client, relay: &str) -> anyhow::Result<HashSet<String>> {
    Ok(owner.query(UNKNOWN, &[&relay]).await?.iter().map(|row| key(row.get(0), row.get(1))).collect())
}

fn row(row: &tokio_postgres::Row) -> Row {
    Row { key: key(row.get(0), row.get(1)), due: Timestamp::from_unix_micros(row.get(1)), marked: row.get(2) }
}

/// The idempotency key of the row `<relay>/<key>` that is due at this instant, in microseconds since 1970.
pub(super) fn key(row: &str, due: i64) -> String {
    format!("{row}/{}", Timestamp::from_unix_micros(due))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
