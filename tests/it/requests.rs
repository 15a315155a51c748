//! Requests that are sent once: the ledger, the clerk that works it off, what becomes of outcomes that nobody knows.

use outbox_relay::migrate::app_grants;
use outbox_testkit::provider::Provider;
use tokio_postgres::Client;

use crate::support::outside::json;
use crate::support::{Database, outbox_relay};

mod clerk;
mod discard;
mod front;
mod ledger;
mod mail;
mod page;
mod rests;
mod storm;
mod unknown;
mod verbs;

/// A relay `mails` of requests for `welcome` and `reset` to this provider; `more` is added below `[[relay]]`, `sink` below its
/// sink.
fn relay(provider: &Provider, more: &str, sink: &str) -> String {
    format!(
        "[[relay]]\nname = \"mails\"\n{more}\n[relay.source.requests]\ntemplates = [\"welcome\", \"reset\"]\n\
         [relay.turn]\ndeadline = \"2s\"\n[relay.sink.http]\nurl = \"{}/messages\"\ntimeout = \"1s\"\n\
         body = '{{\"to\": {{{{ user_id | tojson }}}}, \"name\": {{{{ name | default(\"friend\") | tojson }}}}}}'\n{sink}\n",
        provider.url()
    )
}

/// The templates of [`relay`], as a relay that has run before has made them known.
async fn templates(owner: &Client) {
    owner
        .batch_execute("INSERT INTO outbox.template (name, relay) VALUES ('welcome', 'mails'), ('reset', 'mails')")
        .await
        .unwrap();
}

/// The owner and an application that may ask for requests.
async fn clients(database: &Database) -> (Client, Client) {
    let owner = database.connect("postgres").await;
    templates(&owner).await;
    owner.batch_execute(&app_grants("app")).await.unwrap();
    (owner, database.connect("app").await)
}

/// Asks for `welcome` to this user, once; id, status, already_sent.
async fn welcome(app: &Client, user: &str) -> (String, String, bool) {
    let sql = "SELECT request_id::text, status, already_sent FROM outbox.enqueue_once($1 || ':welcome', $1, 'welcome')";
    let row = app.query_one(sql, &[&user]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

/// How many requests have this status.
async fn having(owner: &Client, status: &str) -> i64 {
    let sql = "SELECT count(*) FROM outbox.request WHERE status = $1";
    owner.query_one(sql, &[&status]).await.unwrap().get(0)
}

/// What `request list` with these arguments lists.
async fn listed(toml: &str, arguments: &[&str]) -> Vec<serde_json::Value> {
    let arguments: Vec<&str> = ["request", "list", "-o", "json"].iter().chain(arguments).copied().collect();
    let (code, out, log) = outbox_relay(toml, &arguments).await;
    assert_eq!(code, Some(0), "{log}");
    json(&out)["requests"].as_array().unwrap().clone()
}
