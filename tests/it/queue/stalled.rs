//! Commits wait for a synchronous standby that is away.

use outbox_testkit::postgres::{Options, Postgres};

use super::kinds::DEADLINE;
use super::{Kind, sent};
use crate::support::outside::line;
use crate::support::receiver::Receiver;
use crate::support::relays::toml_of;
use crate::support::servers::prepare;
use crate::support::{PATIENCE, Process, eventually};

/// A claim's commit is not answered in time and takes place all the same. Nothing of it was sent: its job is no interrupted one, although
/// the claim has run out by the time at which it can be seen.
pub async fn unanswered_claim_is_given_back(kind: &'static Kind) {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    prepare(&postgres).await;
    let (receiver, owner) = (Receiver::start(), postgres.connect("postgres", "template_outbox").await.unwrap());
    owner.batch_execute(kind.setup).await.unwrap();
    let relay = kind.relay(&receiver, DEADLINE, "600ms");
    let text = toml_of(&postgres.url("relay", "template_outbox"), None, &relay);
    let process = Process::spawn(&text, &["run", "--replica-id", "first"]);
    line(&process, "relay ready").await;
    owner.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'away'").await.unwrap();
    owner.batch_execute("SELECT pg_reload_conf(); SET synchronous_commit = local").await.unwrap();
    owner.execute(kind.add, &[&"a"]).await.unwrap();
    let count = async |sql: &str| owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    eventually(PATIENCE, async || count(waits).await > 0).await;
    // For so long the standby is away.
    tokio::time::sleep(kind.lease * 3).await;
    assert_eq!(sent(&receiver), Vec::<String>::new(), "nothing is sent by a claim that may not be there");
    owner.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").await.unwrap();
    owner.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    eventually(PATIENCE * 3, async || count(kind.recorded).await == 1).await;
    assert_eq!((sent(&receiver), count(kind.interrupted).await), (vec!["a".to_owned()], 0), "{}", process.log());
    assert_eq!(count(kind.claims).await, 0);
}
