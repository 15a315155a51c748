//! Schedules that applications write, edit and delete in plain SQL while replicas run.

use outbox_relay::demo::provider::{Answer, Provider};

use super::{clients, having, names, relay};
use crate::support::{PATIENCE, Process, database, eventually, toml};

#[tokio::test(flavor = "multi_thread")]
async fn what_an_application_writes_edits_and_deletes_is_followed_by_two_replicas_each_instant_once() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let _replicas = [Process::spawn(&text, &["run"]), Process::spawn(&text, &["run"])];
    // Who says so is there.
    app.batch_execute("INSERT INTO outbox.schedule (name, relay, rule) VALUES ('stray', 'nobody', 'FREQ=DAILY')")
        .await
        .unwrap();
    let stray = "SELECT problem LIKE 'relay_unknown: %' FROM outbox.schedule WHERE name = 'stray'";
    eventually(PATIENCE * 2, async || {
        owner.query_one(stray, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    app.batch_execute(
        "INSERT INTO outbox.schedule (name, relay, starts_at, payload) VALUES ('once', 'jobs', now() + interval '3 seconds', '{\"note\": \"n\"}'); \
         INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('later', 'jobs', now() + interval '40 years'); \
         INSERT INTO outbox.schedule (name, relay, starts_at) VALUES ('never', 'jobs', now() + interval '8 seconds'); \
         INSERT INTO outbox.schedule (name, relay, rule, overlap) VALUES ('ticks', 'jobs', 'FREQ=SECONDLY;INTERVAL=2;COUNT=4', 'queue'); \
         INSERT INTO outbox.schedule (name, relay, rule) VALUES ('bad', 'jobs', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30')",
    )
    .await
    .unwrap();
    // A bad rule says so, and the others run on.
    let problem = "SELECT problem LIKE 'never: %' FROM outbox.schedule WHERE name = 'bad'";
    eventually(PATIENCE, async || owner.query_one(problem, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true))
        .await;
    app.batch_execute("DELETE FROM outbox.schedule WHERE name = 'never'").await.unwrap();
    let planned = "SELECT next_at > now() + interval '39 years' FROM outbox.schedule WHERE name = 'later'";
    eventually(PATIENCE, async || owner.query_one(planned, &[]).await.unwrap().get::<_, Option<bool>>(0) == Some(true))
        .await;
    app.batch_execute("UPDATE outbox.schedule SET starts_at = now() + interval '1 second' WHERE name = 'later'")
        .await
        .unwrap();
    eventually(PATIENCE, async || {
        having(&owner, "once", "completed").await == 1
            && having(&owner, "later", "completed").await == 1
            && having(&owner, "ticks", "completed").await >= 3
    })
    .await;
    app.batch_execute("UPDATE outbox.schedule SET rule = 'FREQ=SECONDLY', starts_at = NULL WHERE name = 'bad'")
        .await
        .unwrap();
    eventually(PATIENCE, async || having(&owner, "bad", "completed").await >= 1).await;
    app.batch_execute("DELETE FROM outbox.schedule").await.unwrap();
    eventually(PATIENCE, async || {
        let open = "SELECT count(*) FROM outbox.action WHERE status IN ('queued', 'due', 'running')";
        owner.query_one(open, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    let received = provider.received();
    let keys: std::collections::BTreeSet<_> = received.iter().map(|received| &received.request.key).collect();
    assert_eq!(keys.len(), received.len(), "each instant once: {received:?}");
    let names = names(&received);
    assert!(!names.contains(&"never".to_owned()) && !names.contains(&"stray".to_owned()), "{names:?}");
    let late = "SELECT max(started_at - planned_at) FROM outbox.action WHERE status = 'completed'";
    let late: String = owner.query_one(&format!("SELECT ({late})::text"), &[]).await.unwrap().get(0);
    println!("the latest was begun {late} after its instant");
    assert_eq!(
        owner.query_one("SELECT count(*) FROM outbox.action", &[]).await.unwrap().get::<_, i64>(0),
        i64::try_from(received.len()).unwrap()
    );
    assert_eq!(
        received.iter().find(|received| received.request.path == "/once").unwrap().request.body,
        "{\"note\": \"n\"}"
    );
}
