//! Relays of schedules and of requests that have another name than before.

use outbox_testkit::provider::{Answer, Provider};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::{REFUSED, ends_well, exists, listed};
use crate::support::outside::{finding, json, line};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// A configuration with one relay of schedules, to this path of the provider.
fn schedules(database: &Database, provider: &Provider, name: &str, path: &str) -> String {
    let relay = format!(
        "[[relay]]\nname = \"{name}\"\n[relay.source.schedule]\n[relay.sink.http]\nurl = \"{}/{path}\"\n",
        provider.url()
    );
    toml(database, "relay", None, &relay)
}

/// Schedules of this relay, with these rules.
async fn scheduled(owner: &Client, relay: &str, rules: &[&str]) {
    let sql =
        "INSERT INTO outbox.schedule (name, relay, rule) SELECT $1 || rule, $1, rule FROM unnest($2::text[]) AS rule";
    owner.execute(sql, &[&relay, &rules]).await.unwrap();
}

/// The findings of `check` with this code, and its exit code.
async fn checked(text: &str, code: &str) -> (Option<i32>, Option<serde_json::Value>) {
    let (exit, check, _) = outbox_relay(text, &["check", "-o", "json"]).await;
    (exit, finding(&json(&check), code).cloned())
}

async fn has_replica(owner: &Client, relay: &str) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM outbox.replica WHERE stopped_at IS NULL AND relays @> jsonb_build_array(jsonb_build_object('name', $1::text)))";
    owner.query_one(sql, &[&relay]).await.unwrap().get(0)
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_of_schedules_is_refused_until_renamed() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    let named = |name: &str| schedules(&database, &provider, name, "jobs");
    scheduled(&owner, "old", &["FREQ=YEARLY", "FREQ=MONTHLY"]).await;
    ends_well(&named("old"), &["run", "--once"]).await;
    let message =
        "no cursor new; cursor old has 2 schedules that wait, and no replica has its relay: was the relay renamed?";
    let hint = "If it was renamed: `outbox-relay cursor rename old new`; if it is new: `outbox-relay cursor create new --beginning`.";
    let (code, found) = checked(&named("new"), "cursor_renamed").await;
    let found = found.expect("check names it");
    println!("{found}");
    assert_eq!((code, &found["level"], &found["fix_setting"]), (Some(3), &"error".into(), &hint.into()), "{found}");
    let process = Process::spawn(&named("new"), &["run"]);
    let refused = line(&process, REFUSED).await;
    assert_eq!((&refused["code"], &refused["error"]), (&"cursor_renamed".into(), &message.into()), "{refused}");
    assert_eq!(refused["hint"], hint);
    assert!(!exists(&owner, "new").await);
    eventually(PATIENCE * 2, async || listed(&named("new")).await).await;
    ends_well(&named("new"), &["cursor", "rename", "old", "new", "--yes"]).await;
    scheduled(&owner, "new", &["FREQ=SECONDLY"]).await;
    eventually(PATIENCE * 2, async || provider.count() > 0).await;
    let left = "SELECT count(*) FROM outbox.schedule WHERE relay = 'old'";
    assert_eq!(owner.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_with_schedules_under_both_names_is_renamed_by_what_is_printed() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    let named = |name: &str| schedules(&database, &provider, name, "jobs");
    scheduled(&owner, "old", &["FREQ=YEARLY"]).await;
    ends_well(&named("old"), &["run", "--once"]).await;
    // The application was released before the relay was renamed.
    scheduled(&owner, "new", &["FREQ=SECONDLY"]).await;
    let _process = Process::spawn(&named("new"), &["run"]);
    eventually(PATIENCE * 2, async || listed(&named("new")).await).await;
    let found = checked(&named("new"), "cursor_renamed").await.1.expect("check names it");
    let printed = found["fix_setting"].as_str().unwrap();
    let (sql, then) = printed.strip_prefix("If it was renamed: ").unwrap().split_once("; then ").unwrap();
    assert!(then.starts_with("`outbox-relay cursor rename old new`"), "{printed}");
    owner.batch_execute(sql).await.unwrap();
    ends_well(&named("new"), &["cursor", "rename", "old", "new", "--yes"]).await;
    eventually(PATIENCE * 2, async || provider.count() > 0).await;
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn rollout_of_renamed_schedules_is_refused_beside_the_old_replica() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    let named = |name: &str| schedules(&database, &provider, name, "jobs");
    scheduled(&owner, "old", &["FREQ=YEARLY"]).await;
    let old = Process::spawn(&named("old"), &["run", "--replica-id", "before"]);
    line(&old, "relay ready").await;
    eventually(PATIENCE, async || has_replica(&owner, "old").await).await;
    let new = Process::spawn(&named("new"), &["run"]);
    let refused = line(&new, REFUSED).await;
    let message = "no cursor new; cursor old has 1 schedule that waits, and replica before still runs relay old, which this \
                   configuration does not have: was the relay renamed?";
    assert_eq!(refused["error"], message);
    assert!(!exists(&owner, "new").await && !new.log().contains("relay ready"), "{}", new.log());
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn second_deployment_has_schedules_of_its_own() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    let old = schedules(&database, &provider, "old", "one");
    let new = schedules(&database, &provider, "new", "two");
    scheduled(&owner, "old", &["FREQ=YEARLY"]).await;
    let mut first = Process::spawn(&old, &["run", "--replica-id", "first"]);
    line(&first, "relay ready").await;
    eventually(PATIENCE, async || has_replica(&owner, "old").await).await;
    let (code, found) = checked(&new, "cursor_renamed").await;
    assert!(code == Some(0) && found.is_none(), "{found:?}");
    let mut second = Process::spawn(&new, &["run", "--replica-id", "second"]);
    line(&second, "relay ready").await;
    eventually(PATIENCE, async || has_replica(&owner, "new").await).await;
    assert!(checked(&new, "schedules_orphaned").await.1.is_none(), "a replica has them");
    assert_eq!(
        outbox_relay(&new, &["status", "--max-lag", "1h"]).await.0,
        Some(3),
        "as before: its lag is not known here"
    );

    first.signal(Signal::TERM);
    assert_eq!(first.wait().await, Some(0), "{}", first.log());
    let (code, out, log) = outbox_relay(&new, &["status", "--max-lag", "1h"]).await;
    println!("{out}{log}");
    assert!(out.contains("no live replica has relay old: 1 schedule waits; `outbox-relay cursor why old`"), "{out}");
    assert!(code == Some(3) && log.contains("old has no live replica, and 1 schedule waits"), "{log}");
    let status = json(&ends_well(&new, &["status", "-o", "json"]).await);
    let open = &status["cursors"][1]["open_work"];
    assert_eq!(
        (&open["schedules"], &open["actions"], &open["requests"]),
        (&1.into(), &0.into(), &0.into()),
        "{status}"
    );
    let found = checked(&new, "schedules_orphaned").await.1.expect("no replica has them");
    assert!(found["fix_setting"].as_str().unwrap().contains("`outbox-relay cursor rename old NEW`"), "{found}");
    let (code, why, _) = outbox_relay(&new, &["cursor", "why", "old"]).await;
    println!("{why}");
    assert!(code == Some(3) && why.contains("No live replica has relay old; 1 schedule waits"), "{why}");
    assert!(why.contains("or: if the relay was renamed: `outbox-relay cursor rename old NEW`"), "{why}");

    // It was renamed, and the sink changed with it: what the refusal prints is the way out.
    let (code, _, log) = outbox_relay(&new, &["cursor", "rename", "old", "new", "--yes"]).await;
    println!("{log}");
    let steps = "there is a cursor new already. To give it up: stop the replicas that have relay new, run `outbox-relay cursor remove \
                 new`, then `outbox-relay cursor rename old new`, and start them again. To keep it: `outbox-relay cursor remove old \
                 --dry-run` prints what waits for old";
    assert!(code == Some(1) && log.contains(steps), "{log}");
    second.signal(Signal::TERM);
    assert_eq!(second.wait().await, Some(0), "{}", second.log());
    ends_well(&new, &["cursor", "remove", "new", "--yes"]).await;
    ends_well(&new, &["cursor", "rename", "old", "new", "--yes"]).await;
    scheduled(&owner, "new", &["FREQ=SECONDLY"]).await;
    let _third = Process::spawn(&new, &["run"]);
    eventually(PATIENCE * 2, async || provider.count() > 0).await;
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn schedules_that_ended_ask_no_question_of_a_rename() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    scheduled(&owner, "old", &["FREQ=YEARLY"]).await;
    ends_well(&schedules(&database, &provider, "old", "jobs"), &["run", "--once"]).await;
    owner.batch_execute("UPDATE outbox.schedule SET enabled = false").await.unwrap();
    ends_well(&schedules(&database, &provider, "new", "jobs"), &["run", "--once"]).await;
    assert!(exists(&owner, "new").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn created_cursor_ends_the_question_for_schedules() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    let named = |name: &str| schedules(&database, &provider, name, "jobs");
    scheduled(&owner, "old", &["FREQ=YEARLY"]).await;
    ends_well(&named("old"), &["run", "--once"]).await;
    let (code, _, log) = outbox_relay(&named("new"), &["cursor", "create", "new", "--now"]).await;
    assert!(code == Some(1) && log.contains("which has no position: write --beginning"), "{log}");
    let out = ends_well(&named("new"), &["cursor", "create", "new", "--beginning"]).await;
    assert_eq!(out, "new: created; actions due: 0\n");
    ends_well(&named("new"), &["run", "--once"]).await;
}

/// A relay of requests that sends these templates, as they stand in TOML.
fn requests(database: &Database, provider: &Provider, name: &str, templates: &str) -> String {
    let relay = format!(
        "[[relay]]\nname = \"{name}\"\n[relay.source.requests]\ntemplates = [{templates}]\n\
         [relay.sink.http]\nurl = \"{}/messages\"\n",
        provider.url()
    );
    toml(database, "relay", None, &relay)
}

// Guarantee: commands.renamed-relay
#[tokio::test(flavor = "multi_thread")]
async fn renamed_relay_of_requests_is_refused_until_renamed() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    let named = |name: &str| requests(&database, &provider, name, "\"welcome\", \"reset\"");
    ends_well(&named("old"), &["run", "--once"]).await;
    owner.batch_execute("SELECT outbox.enqueue('ada', 'welcome')").await.unwrap();
    let process = Process::spawn(&named("new"), &["run"]);
    let refused = line(&process, REFUSED).await;
    let message = "no cursor new; cursor old has the templates reset, welcome, and no replica has its relay: was the relay renamed?";
    let hint = "If it was renamed: `outbox-relay cursor rename old new`; if it is new: give its templates other names, or hand them \
                over: take the templates out of relay old, stop it, decide its requests with an unknown outcome (`outbox-relay \
                request settle`), because relay new sends them with another Idempotency-Key, and run: BEGIN; UPDATE \
                outbox.template SET relay = 'new' WHERE relay = 'old' AND name IN ('welcome', 'reset'); COMMIT; BEGIN; LOCK TABLE \
                outbox.request IN SHARE ROW EXCLUSIVE MODE; UPDATE outbox.request SET relay = 'new' WHERE relay = 'old' AND \
                template IN ('welcome', 'reset') AND status <> 'completed'; COMMIT;";
    assert_eq!((&refused["code"], &refused["error"]), (&"cursor_renamed".into(), &message.into()), "{refused}");
    assert_eq!(refused["hint"], hint);
    assert!(!exists(&owner, "new").await);
    let (code, found) = checked(&named("new"), "cursor_renamed").await;
    assert_eq!((code, &found.expect("check names it")["fix_setting"]), (Some(3), &hint.into()));
    eventually(PATIENCE * 2, async || listed(&named("new")).await).await;
    ends_well(&named("new"), &["cursor", "rename", "old", "new", "--yes"]).await;
    eventually(PATIENCE * 2, async || provider.count() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_templates_is_handed_over_by_the_sql_that_is_printed() {
    let (database, provider) = (database().await, Provider::start(|_| Answer::Accept).await.unwrap());
    let owner = database.connect("postgres").await;
    ends_well(&requests(&database, &provider, "old", "\"welcome\", \"reset\""), &["run", "--once"]).await;
    owner.batch_execute("SELECT outbox.enqueue('ada', 'welcome'), outbox.enqueue('bob', 'reset')").await.unwrap();
    let new = requests(&database, &provider, "new", "\"welcome\"");
    let process = Process::spawn(&new, &["run"]);
    let hint = line(&process, REFUSED).await["hint"].as_str().unwrap().to_owned();
    let (_, sql) = hint.split_once("and run: ").expect("SQL");
    owner.batch_execute(sql).await.unwrap();
    eventually(PATIENCE * 2, async || provider.count() == 1).await;
    let relays =
        "SELECT string_agg(user_id || ' ' || relay || ' ' || status, ', ' ORDER BY user_id) FROM outbox.request";
    eventually(PATIENCE, async || {
        owner.query_one(relays, &[]).await.unwrap().get::<_, String>(0) == "ada new completed, bob old pending"
    })
    .await;
}
