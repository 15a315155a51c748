//! Scheduled actions: occurrences made once, carried out by whichever replica is free, edited at any time.

use outbox_relay::migrate::app_grants;
use outbox_testkit::provider::{Provider, Received};
use tokio_postgres::Client;

use crate::support::Database;

mod edits;
mod failing;
mod keeps;
mod locks;
mod measures;
mod missed;
mod operators;
mod page;
mod reports;
mod roles;
mod runs;
mod sinks;
mod slots;
mod storm;
mod tenants;
mod unanswered;
mod verbs;

/// A relay `jobs` of schedules to this provider; `source` is added below its source, `sink` below its sink.
fn relay(provider: &Provider, source: &str, sink: &str) -> String {
    format!(
        "[[relay]]\nname = \"jobs\"\n[relay.source.schedule]\n{source}\n[relay.turn]\ndeadline = \"2s\"\n\
         [relay.sink.http]\nurl = \"{}/{{{{ schedule }}}}\"\ntimeout = \"1s\"\nbody = '{{\"note\": {{{{ note | default(\"\") | tojson }}}}}}'\n\
         {sink}\n",
        provider.url()
    )
}

/// The owner and an application that may write schedules.
async fn clients(database: &Database) -> (Client, Client) {
    let owner = database.connect("postgres").await;
    owner.batch_execute(&app_grants("app")).await.unwrap();
    (owner, database.connect("app").await)
}

/// Names of the schedules whose actions have come, in their order.
fn names(received: &[Received]) -> Vec<String> {
    received.iter().map(|received| received.request.path.trim_start_matches('/').to_owned()).collect()
}

/// How many actions of this schedule have this status.
async fn having(owner: &Client, schedule: &str, status: &str) -> i64 {
    let sql = "SELECT count(*) FROM outbox.action WHERE schedule = $1 AND status = $2";
    owner.query_one(sql, &[&schedule, &status]).await.unwrap().get(0)
}
