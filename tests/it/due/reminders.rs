//! System A: a reminder job. Every row that is due and not sent is notified by PUT, then marked; at least once.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider, Request};
use tokio_postgres::Client;

use super::{key, seed, times};
use crate::support::outside::lines;
use crate::support::{Database, Process, database, toml};

/// The table as it was found: 1,000 todos, every id in two workspaces. The first 600 are due; of the others a tenth was
/// sent long ago, the rest is due tomorrow.
const REMINDER_TABLE: &str = r#"
    CREATE TABLE public.todos ("id" text NOT NULL, "workspaceId" text NOT NULL, "title" text NOT NULL,
        "dueDate" timestamptz, "delayNotificationSent" boolean DEFAULT false, PRIMARY KEY ("workspaceId", "id"));
    CREATE INDEX ON public.todos ("dueDate", "workspaceId", "id") WHERE "delayNotificationSent" IS NOT TRUE;
    INSERT INTO public.todos
    SELECT 't' || i, w, 'Todo ' || i,
        CASE WHEN i <= 300 OR i % 10 = 0 THEN now() - i * interval '1 min' ELSE now() + interval '1 day' END,
        i > 300 AND i % 10 = 0
    FROM generate_series(1, 500) AS i, unnest(ARRAY['blue', 'green']) AS w;
    GRANT SELECT, UPDATE ("delayNotificationSent") ON public.todos TO relay"#;

struct Stage {
    database: Database,
    owner: Client,
}

async fn stage() -> Stage {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(REMINDER_TABLE).await.unwrap();
    Stage { database, owner }
}

impl Stage {
    /// The configuration of the document: a request that hangs is given up after 1.5 s.
    fn toml(&self, provider: &Provider) -> String {
        let relay = format!(
            "[[relay]]\nname = \"reminders\"\n[relay.source.pending]\ntable = \"public.todos\"\n\
             key = [\"workspaceId\", \"id\"]\ndue = \"dueDate\"\nsent = \"delayNotificationSent\"\n\
             [relay.turn]\ndeadline = \"2500ms\"\n\
             [relay.sink.http]\nmethod = \"PUT\"\nurl = \"{}/notifications/delayed-{{{{ id }}}}\"\n",
            provider.url()
        );
        toml(&self.database, "relay", None, &relay)
    }

    /// `workspace/id` of all rows for which the condition holds.
    async fn keys(&self, condition: &str) -> BTreeSet<String> {
        let sql = format!(r#"SELECT "workspaceId" || '/' || "id" FROM public.todos WHERE {condition}"#);
        self.owner.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

/// The keys of the rows that this run said it could not send, one a line of its log.
fn complaints(run: &Process) -> Vec<String> {
    let lines = lines(run);
    let failed = lines.iter().filter(|line| line["message"] == "send failed");
    failed
        .map(|line| {
            assert_eq!((line["level"].as_str(), line["cursor"].as_str()), (Some("WARN"), Some("reminders")), "{line}");
            assert!(line["error"].as_str().is_some_and(|error| !error.is_empty()), "{line}");
            line["key"].as_str().expect("a key").to_owned()
        })
        .collect()
}

// Guarantee: pending.reminders
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_and_a_third_send_every_due_row_and_leave_what_is_refused_unmarked() {
    let stage = stage().await;
    let due = stage.keys(r#""dueDate" <= now() AND NOT "delayNotificationSent""#).await;
    assert_eq!(due.len(), 600);
    let mut drawn: Vec<String> = due.iter().cloned().collect();
    fastrand::Rng::with_seed(seed()).shuffle(&mut drawn);
    let refused: BTreeSet<String> = drawn[..20].iter().cloned().collect();
    let hanging: BTreeSet<String> = drawn[20..70].iter().cloned().collect();
    let (no, never) = (refused.clone(), hanging.clone());
    let decide = move |request: &Request| match request.row().strip_prefix("reminders/") {
        Some(key) if no.contains(key) => Answer::Refuse(500),
        // It is created, and nobody is told; asked again, the server finds that it is there.
        Some(key) if never.contains(key) && request.attempt == 1 => Answer::Hang,
        _ => Answer::Accept,
    };
    let provider = Provider::start(decide).await.unwrap();
    let toml = stage.toml(&provider);
    let run = |name| Process::spawn(&toml, &["run", "--once", "--timeout", "2m", "--replica-id", name]);
    let (mut first, mut second) = (run("first"), run("second"));
    let codes = (first.wait().await, second.wait().await);
    let mut third = run("third");
    let code = third.wait().await;

    let story = format!("{}\n{}\n{}", first.log(), second.log(), third.log());
    let received = provider.received();
    let requests = times(received.iter().map(key));
    let unmarked = stage.keys(r#""dueDate" <= now() AND NOT "delayNotificationSent""#).await;
    let most = hanging.iter().map(|key| requests[key.as_str()]).max();
    println!("{} requests; marked {}; of those that hung at most {most:?}", received.len(), due.len() - unmarked.len());
    assert_eq!(unmarked, refused, "580 are marked, the 20 that were refused are not\n{story}");
    let strangers: Vec<&str> = requests.keys().filter(|key| !due.contains(**key)).copied().collect();
    assert!(strangers.is_empty(), "not due, and sent: {strangers:?}");
    for key in &due {
        let count = requests[key.as_str()];
        let allowed = if hanging.contains(key) || refused.contains(key) { 1..=3 } else { 1..=1 };
        assert!(allowed.contains(&count), "{key} was sent {count} times\n{story}");
    }
    for received in &received {
        let id = key(received).rsplit_once('/').unwrap().1;
        assert_eq!(received.request.method, "PUT");
        assert_eq!(received.request.path, format!("/notifications/delayed-{id}"), "one row has one URL");
    }
    for run in [&first, &second, &third] {
        let complaints = complaints(run);
        let distinct: HashSet<&String> = complaints.iter().collect();
        assert_eq!(distinct.len(), complaints.len(), "one line a row: {complaints:?}");
    }
    assert_eq!(complaints(&third).into_iter().collect::<BTreeSet<_>>(), refused);
    assert_eq!(code, Some(1), "{story}");
    assert!(codes == (Some(1), Some(1)) || codes == (Some(0), Some(1)) || codes == (Some(1), Some(0)), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_send_each_row_once_when_nothing_fails_and_exit_0() {
    let stage = stage().await;
    let due = stage.keys(r#""dueDate" <= now() AND NOT "delayNotificationSent""#).await;
    // Slow enough that both are at work at the same time.
    let provider = Provider::start(|_| Answer::Late(Duration::from_millis(20))).await.unwrap();
    let toml = stage.toml(&provider);
    let run = |name| Process::spawn(&toml, &["run", "--once", "--replica-id", name]);
    let (mut first, mut second) = (run("first"), run("second"));
    let codes = (first.wait().await, second.wait().await);
    assert_eq!(codes, (Some(0), Some(0)), "{}\n{}", first.log(), second.log());
    let received = provider.received();
    let sent: BTreeSet<String> = received.iter().map(|one| key(one).to_owned()).collect();
    assert_eq!((received.len(), sent), (600, due));
    assert!(stage.keys(r#""dueDate" <= now() AND NOT "delayNotificationSent""#).await.is_empty());
}

// Guarantee: pending.keys
#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_the_rows_fields_and_a_key_that_tells_workspaces_apart() {
    let stage = stage().await;
    stage.owner.batch_execute(r#"DELETE FROM public.todos WHERE "id" <> 't7'"#).await.unwrap();
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let mut run = Process::spawn(&stage.toml(&provider), &["run", "--once"]);
    assert_eq!(run.wait().await, Some(0), "{}", run.log());
    let received = provider.received();
    let due = "SELECT to_char(\"dueDate\" AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM public.todos";
    let due: String = stage.owner.query(due, &[]).await.unwrap()[0].get(0);
    let keys: BTreeSet<String> = received.iter().map(|one| one.request.key.clone()).collect();
    assert_eq!(keys, ["blue", "green"].map(|workspace| format!("reminders/{workspace}/t7/{due}")).into());
    for one in &received {
        let body: serde_json::Value = serde_json::from_str(&one.request.body).unwrap();
        assert_eq!((&body["id"], &body["title"]), (&"t7".into(), &"Todo 7".into()));
        assert!(one.request.key.contains(body["workspaceId"].as_str().unwrap()));
    }
}
