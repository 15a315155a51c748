//! Which occurrences were missed: those at whose instant no replica was there, whichever replica decides it, and however late.

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;
use tokio_postgres::{Client, Transaction};

use super::{clients, relay};
use crate::support::{Database, PATIENCE, Process, database, eventually, toml};

const POLICIES: [&str; 3] = ["all", "latest", "none"];
/// How long an application keeps its UPDATE open.
const OPEN: &str = "3200 milliseconds";
/// How long no replica runs: much more than what is tolerated.
const DARK: &str = "5 seconds";

struct Fixture {
    database: Database,
    watching: Client,
    provider: Provider,
}

impl Fixture {
    /// A schedule each second for each policy, and no replica yet.
    async fn new() -> Self {
        let database = database().await;
        let (watching, app) = clients(&database).await;
        let provider = Provider::start(|_| Answer::Accept).await.unwrap();
        for policy in POLICIES {
            let sql = "INSERT INTO outbox.schedule (name, relay, rule, missed, overlap) \
                       VALUES ($1, 'jobs', 'FREQ=SECONDLY', $1, 'queue')";
            app.execute(sql, &[&policy]).await.unwrap();
        }
        Self { database, watching, provider }
    }

    fn start(&self, id: &str) -> Process {
        self.start_as("relay", id)
    }

    fn start_as(&self, role: &str, id: &str) -> Process {
        let text = toml(&self.database, role, None, &relay(&self.provider, "", ""));
        Process::spawn(&text, &["run", "--replica-id", id])
    }

    /// Until each schedule has an action whose instant is not before this one.
    async fn planned_from(&self, instant: &str) {
        let sql = "SELECT count(DISTINCT schedule) = 3 FROM outbox.action WHERE planned_at >= $1::text::timestamptz";
        eventually(PATIENCE * 2, async || self.watching.query_one(sql, &[&instant]).await.unwrap().get(0)).await;
    }

    async fn clock(&self) -> String {
        self.watching.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap().get(0)
    }

    /// Until so long after an instant.
    async fn later(&self, instant: &str, by: &str) {
        let sql = "SELECT clock_timestamp() >= $1::text::timestamptz + $2::text::interval";
        eventually(PATIENCE, async || self.watching.query_one(sql, &[&instant, &by]).await.unwrap().get(0)).await;
    }

    /// An application's UPDATE of all schedules, which is not committed: when it has them, none is planned.
    async fn open_edit<'a>(&self, owner: &'a mut Client) -> (Transaction<'a>, String) {
        let open = owner.transaction().await.unwrap();
        open.batch_execute("UPDATE outbox.schedule SET payload = '{\"note\": \"edited\"}'").await.unwrap();
        (open, self.clock().await)
    }

    /// How many instants of each policy between two have no action.
    async fn lost(&self, from: &str, to: &str) -> [i64; 3] {
        let sql = "SELECT count(*) FROM generate_series(date_trunc('second', $2::text::timestamptz) + interval '1 second', \
                   $3::text::timestamptz, interval '1 second') AS t(at) \
                   WHERE NOT EXISTS (SELECT FROM outbox.action AS a WHERE a.schedule = $1 AND a.planned_at = t.at)";
        let mut lost = [0; 3];
        for (lost, policy) in lost.iter_mut().zip(POLICIES) {
            *lost = self.watching.query_one(sql, &[&policy, &from, &to]).await.unwrap().get(0);
        }
        lost
    }

    /// The later one of an instant and the first of `latest` since another: a replica may decide only after the next instant.
    async fn until_latest(&self, from: &str, to: &str) -> String {
        let sql = "SELECT greatest($2::text::timestamptz, min(planned_at))::text FROM outbox.action \
                   WHERE schedule = 'latest' AND planned_at >= $1::text::timestamptz";
        self.watching.query_one(sql, &[&from, &to]).await.unwrap().get(0)
    }

    /// Between two instants each policy did what it says: no replica was there.
    async fn is_dark(&self, from: &str, to: &str, decided: &Process) {
        let to = &self.until_latest(from, to).await;
        let dark = self.instants(from, to).await;
        let [all, latest, none] = self.lost(from, to).await;
        let lost = format!("of {dark} lost {all}, {latest} and {none}: {}", decided.log());
        assert_eq!((all, latest), (0, none - 1), "{lost}");
        assert!(none >= dark - 2, "{lost}");
    }

    /// An instant so long before another.
    async fn before(&self, instant: &str, by: &str) -> String {
        let sql = "SELECT ($1::text::timestamptz - $2::text::interval)::text";
        self.watching.query_one(sql, &[&instant, &by]).await.unwrap().get(0)
    }

    /// How many instants there are between two.
    async fn instants(&self, from: &str, to: &str) -> i64 {
        let sql = "SELECT count(*) FROM generate_series(date_trunc('second', $1::text::timestamptz) + interval '1 second', \
                   $2::text::timestamptz, interval '1 second')";
        self.watching.query_one(sql, &[&from, &to]).await.unwrap().get(0)
    }
}

/// Until a replica has passed its checks.
async fn ready(process: &Process) {
    eventually(PATIENCE, async || process.log().contains("relay ready")).await;
}

// Guarantee: schedules.missed
#[tokio::test(flavor = "multi_thread")]
async fn open_edit_and_restart_lose_no_occurrence() {
    let fixture = Fixture::new().await;
    let first = fixture.start("first");
    fixture.planned_from("-infinity").await;

    let mut owner = fixture.database.connect("postgres").await;
    let (open, from) = fixture.open_edit(&mut owner).await;
    fixture.later(&from, OPEN).await;
    let second = fixture.start("second");
    ready(&second).await;
    let to = fixture.clock().await;
    // The one that has been there the whole time leaves the planning to the other.
    first.signal(Signal::STOP);
    open.commit().await.unwrap();
    fixture.planned_from(&to).await;
    first.signal(Signal::CONT);

    assert!(fixture.instants(&from, &to).await >= 3);
    assert_eq!(fixture.lost(&from, &to).await, [0; 3], "{}", second.log());
}

// Guarantee: schedules.missed
#[tokio::test(flavor = "multi_thread")]
async fn killed_replica_was_there_until_its_end() {
    let fixture = Fixture::new().await;
    let mut first = fixture.start("same");
    fixture.planned_from("-infinity").await;

    let mut owner = fixture.database.connect("postgres").await;
    let (open, from) = fixture.open_edit(&mut owner).await;
    fixture.later(&from, OPEN).await;
    let killed = fixture.clock().await;
    first.signal(Signal::KILL);
    first.wait().await;
    fixture.later(&killed, DARK).await;
    let to = fixture.clock().await;
    let second = fixture.start("same");
    ready(&second).await;
    open.commit().await.unwrap();
    fixture.planned_from(&to).await;

    // It was last seen a moment before its end.
    let seen = fixture.before(&killed, "1 second").await;
    assert_eq!(fixture.lost(&from, &seen).await, [0; 3], "{}", second.log());
    fixture.is_dark(&killed, &to, &second).await;
}

// Guarantee: schedules.missed
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_replica_was_not_there() {
    paused("relay").await;
}

// Guarantee: schedules.missed
/// The role of the others cannot read what its sessions do.
#[tokio::test(flavor = "multi_thread")]
async fn paused_replica_of_another_role_was_not_there() {
    paused("relay_stats").await;
}

/// A replica of this role is paused, and another decides what was missed.
async fn paused(role: &str) {
    let fixture = Fixture::new().await;
    let first = fixture.start_as(role, "first");
    fixture.planned_from("-infinity").await;

    let paused = fixture.clock().await;
    first.signal(Signal::STOP);
    // A replica counts as there for 5 s after it has done anything.
    fixture.later(&paused, "5 seconds").await;
    let from = fixture.clock().await;
    fixture.later(&from, DARK).await;
    let to = fixture.clock().await;
    let second = fixture.start("second");
    fixture.planned_from(&to).await;

    let there = fixture.before(&from, "1 second").await;
    assert_eq!(fixture.lost(&paused, &there).await, [0; 3], "{}", second.log());
    fixture.is_dark(&from, &to, &second).await;
    first.signal(Signal::CONT);
}
