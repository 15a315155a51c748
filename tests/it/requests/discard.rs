//! `request discard`: what is never to be sent any more, and how the relay of a receiver that is gone is taken out.

use outbox_testkit::provider::{Answer, Provider};
use tokio_postgres::Client;

use super::{clients, having, listed, relay, welcome};
use crate::support::outside::{json, stdout_relay};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// Requests of these users, in these statuses: `(user, status, how long ago its claim has expired)`.
async fn stand(owner: &Client, user: &str, status: &str, expired: Option<&str>) {
    let sql = "UPDATE outbox.request SET status = $2, token = 't', claimed_by = 'eu-1', \
               expires_at = clock_timestamp() - $3::text::interval WHERE user_id = $1";
    assert_eq!(owner.execute(sql, &[&user, &status, &expired]).await.unwrap(), 1);
}

/// Five requests: refused, pending, of unknown outcome, claimed by a replica, claimed by one that is gone.
async fn stage() -> (Database, Client, Client, String, Vec<String>) {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(400)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let mut ids = vec![welcome(&app, "refused").await.0];
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    for user in ["pending", "unknown", "claimed", "gone"] {
        ids.push(welcome(&app, user).await.0);
    }
    stand(&owner, "unknown", "unknown", None).await;
    stand(&owner, "claimed", "processing", Some("-1 hour")).await;
    stand(&owner, "gone", "processing", Some("1 second")).await;
    (database, owner, app, text, ids)
}

// Guarantee: requests.discard
#[tokio::test(flavor = "multi_thread")]
async fn discard_gives_up_what_was_refused_or_waits_and_keeps_its_key() {
    let (_database, owner, app, text, ids) = stage().await;
    let discard = async |arguments: &[&str]| outbox_relay(&text, &[&["request", "discard"], arguments].concat()).await;
    let (refused, pending) = (ids[0].as_str(), ids[1].as_str());
    let (code, out, log) = discard(&[refused, pending, "--dry-run"]).await;
    assert_eq!((code, having(&owner, "pending").await), (Some(0), 1), "{out}{log}");
    assert!(out.contains("refused") && out.contains("http_400") && out.contains("pending"), "{out}");
    let (code, _, log) = discard(&[refused]).await;
    assert!(code == Some(2) && log.contains("add --yes"), "{log}");
    let (code, out, log) = discard(&[refused, pending, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.ends_with("2 of 2: given up\n"), "{out}");
    let noted =
        "SELECT verb, cursor, detail -> 'requests' @> jsonb_build_array($1::text, $2::text) FROM outbox.operation";
    let row = owner.query_one(noted, &[&refused, &pending]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1), row.get(2)), ("request discard", "mails", true));

    assert_eq!(welcome(&app, "refused").await, (refused.to_owned(), "failed".to_owned(), false), "the key is owned");
    assert_eq!(listed(&text, &["--status", "pending"]).await.len(), 0);
    assert_eq!(listed(&text, &["--status", "failed"]).await.len(), 0);
    let given_up = listed(&text, &["--status", "discarded"]).await;
    assert_eq!((given_up.len(), &given_up[0]["error"]["code"]), (2, &"discarded".into()), "{given_up:?}");
    assert!(given_up.iter().any(|one| one["error"]["message"].to_string().contains("http_400")), "{given_up:?}");
    assert!(listed(&text, &[]).await.iter().all(|one| one["status"] != "discarded"));
    let (_, out, log) = outbox_relay(&text, &["request", "redrive", refused, "--yes"]).await;
    assert!(out.ends_with("nothing to do\n") && log.contains("is discarded"), "{out}{log}");
    let (_, out, log) = discard(&[refused, "--yes"]).await;
    assert!(out.ends_with("nothing to do\n") && log.contains("is discarded"), "{out}{log}");
    let status = json(&outbox_relay(&text, &["status", "-o", "json"]).await.1);
    assert_eq!(status["cursors"][0]["dead_letters"], 0, "{status}");
}

// Guarantee: requests.discard
#[tokio::test(flavor = "multi_thread")]
async fn discard_leaves_what_may_have_been_sent_to_settle() {
    let (_database, owner, _app, text, ids) = stage().await;
    let (code, out, log) = outbox_relay(&text, &["request", "discard", "--relay", "mails", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.ends_with("2 of 2: given up\n"), "{out}");
    for (id, why) in [
        (&ids[2], format!("`outbox-relay request settle {} --arrived` or `--lost` first", ids[2])),
        (&ids[3], "replica eu-1 is sending it".to_owned()),
        (&ids[4], format!("`outbox-relay request settle {} --arrived` or `--lost` first", ids[4])),
    ] {
        assert!(log.lines().any(|line| line.contains(id.as_str()) && line.contains(&why)), "{why}:\n{log}");
    }
    assert_eq!((having(&owner, "unknown").await, having(&owner, "processing").await), (1, 2), "nothing else changed");

    let (code, out, log) = outbox_relay(&text, &["request", "settle", &ids[3], "--lost", "--yes"]).await;
    assert!(code == Some(1) && log.contains("is processing"), "{out}{log}");
    let (code, out, log) = outbox_relay(&text, &["request", "settle", &ids[2], &ids[4], "--lost", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let lost = listed(&text, &["--status", "failed"]).await;
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().all(|one| one["error"]["code"] == "settled_lost"), "{lost:?}");
    let late = "UPDATE outbox.request SET status = 'completed' WHERE token = 't' AND status <> 'processing'";
    assert_eq!(owner.execute(late, &[]).await.unwrap(), 0, "a claimant that comes late changes nothing");
}

/// What a try of the pending request leaves that the receiver did not answer, under `on_unknown = "resend"`.
const TRIED: &str = "UPDATE outbox.request SET ambiguous = 1, attempts = 1, body = 'b', error = '{\"code\": \"http_500\"}' \
                     WHERE user_id = 'pending'";

// Guarantee: requests.discard
#[tokio::test(flavor = "multi_thread")]
async fn pending_request_that_may_have_arrived_is_unknown_instead_of_given_up() {
    let (_database, owner, _app, text, ids) = stage().await;
    owner.batch_execute(TRIED).await.unwrap();
    let discard = async |arguments: &[&str]| outbox_relay(&text, &[&["request", "discard"], arguments].concat()).await;
    let (refused, pending) = (ids[0].as_str(), ids[1].as_str());
    let (code, out, log) = discard(&[refused, pending, "--dry-run"]).await;
    assert_eq!((code, having(&owner, "pending").await), (Some(0), 1), "{out}{log}");
    assert!(out.contains("an earlier try may have arrived: becomes unknown"), "{out}");
    assert!(out.contains("\n1 of 2 may have arrived: recorded as unknown, not as given up"), "{out}");
    let (code, out, log) = discard(&[refused, pending, "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.contains("\n1 of 2: given up\n1 of 2: unknown, because an earlier try may have arrived"), "{out}");
    let unknown = listed(&text, &["--unknown"]).await;
    let found = unknown.iter().find(|one| one["request_id"] == pending).unwrap_or_else(|| panic!("{unknown:?}"));
    assert_eq!(found["error"]["code"], "discarded_unknown");
    assert!(found["error"]["message"].as_str().unwrap().ends_with("; the last try: http_500"), "{found}");
    let kept = "SELECT body IS NOT NULL AND ambiguous = 1 FROM outbox.request WHERE user_id = 'pending'";
    assert!(owner.query_one(kept, &[]).await.unwrap().get::<_, bool>(0), "the receiver may know its key");
    let noted = "SELECT detail -> 'requests' ->> 0, detail -> 'unknown' ->> 0 FROM outbox.operation WHERE verb = 'request discard'";
    let noted = owner.query_one(noted, &[]).await.unwrap();
    assert_eq!((noted.get::<_, &str>(0), noted.get::<_, &str>(1)), (refused, pending));

    let (code, out, log) = outbox_relay(&text, &["request", "settle", pending, "--lost", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let (code, out, log) = discard(&[pending, "--yes"]).await;
    assert!(code == Some(0) && out.ends_with("1 of 1: given up\n"), "{out}{log}");
}

// Guarantee: requests.discard
#[tokio::test(flavor = "multi_thread")]
async fn request_that_is_tried_after_the_preview_is_unknown_instead_of_given_up() {
    let (database, owner, _app, text, ids) = stage().await;
    let replica = database.connect("postgres").await;
    replica.batch_execute(&format!("BEGIN; {TRIED}")).await.unwrap();
    let mut verb = Process::spawn(&text, &["request", "discard", &ids[1], "--yes"]);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually(PATIENCE, async || owner.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    replica.batch_execute("COMMIT").await.unwrap();
    assert_eq!(verb.wait().await, Some(0), "{}", verb.log());
    let out = verb.out();
    assert!(!out.contains("becomes unknown") && out.contains("\n0 of 1: given up\n1 of 1: unknown"), "{out}");
    assert_eq!(having(&owner, "failed").await, 1, "the refused one");
}

// Guarantee: requests.discard
#[tokio::test(flavor = "multi_thread")]
async fn relay_of_a_receiver_that_is_gone_is_removed_by_the_printed_steps() {
    let (database, owner, _app, _text, ids) = stage().await;
    let kept = toml(&database, "relay", None, &stdout_relay("kept", ""));
    owner.batch_execute("CREATE TABLE public.bookings (id bigint, created_at timestamptz)").await.unwrap();
    stand(&owner, "claimed", "processing", Some("1 second")).await;
    let (code, _, log) = outbox_relay(&kept, &["cursor", "remove", "mails", "--yes"]).await;
    assert_eq!(code, Some(1), "{log}");
    for step in [
        format!("`outbox-relay request discard {}`", ids[0]),
        "`outbox-relay request discard --relay mails --status pending`".to_owned(),
        format!("`outbox-relay request settle {} {} --arrived`", ids[3], ids[4]),
        format!("outbox-relay request settle {} --lost", ids[2]),
    ] {
        assert!(log.contains(&step), "{step}:\n{log}");
    }
    let claimed = ["request", "settle", &ids[2], &ids[3], &ids[4], "--lost", "--yes"];
    assert_eq!(outbox_relay(&kept, &claimed).await.0, Some(0));
    let pending = ["request", "discard", "--relay", "mails", "--status", "pending", "--yes"];
    let (code, out, log) = outbox_relay(&kept, &pending).await;
    assert!(code == Some(0) && out.ends_with("1 of 1: given up\n"), "{out}{log}");
    let (_, _, log) = outbox_relay(&kept, &["cursor", "remove", "mails", "--yes"]).await;
    assert!(log.contains("4 failed requests -> "), "{log}");
    let failed = ["request", "discard", &ids[0], &ids[2], &ids[3], &ids[4], "--yes"];
    assert_eq!(outbox_relay(&kept, &failed).await.0, Some(0));
    let (code, out, log) = outbox_relay(&kept, &["cursor", "remove", "mails", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.contains("kept as history: 5 discarded requests\n"), "{out}");
    assert!(out.contains("\nit has no rows to give up\n") && !out.contains("cannot be counted"), "{out}");
}
