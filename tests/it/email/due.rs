//! Due work by email, and under `at_most_once`.

use outbox_testkit::smtp::{Behaviour, Options, SmtpServer};

use crate::support::outside::json;
use crate::support::post::Stage;
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

// Guarantee: pending.keys
#[tokio::test(flavor = "multi_thread")]
async fn due_rows_are_mailed_once_each_and_marked() {
    let (stage, server) = (Stage::start().await, SmtpServer::start(&Options::default()).await.unwrap());
    stage
        .owner
        .batch_execute(
            "CREATE TABLE todos (id text PRIMARY KEY, due timestamptz, email text, sent boolean NOT NULL DEFAULT false); \
             GRANT SELECT, UPDATE (sent) ON todos TO relay; \
             INSERT INTO todos VALUES ('a/1', now() - interval '1 hour', 'ann@example.com'), \
             ('b', now() - interval '1 hour', 'bob@example.com'), ('never', now() + interval '1 hour', 'x@example.com')",
        )
        .await
        .unwrap();
    let relay = format!(
        "[[relay]]\nname = \"reminders\"\n[relay.source.pending]\ntable = \"public.todos\"\nkey = [\"id\"]\ndue = \"due\"\n\
         sent = \"sent\"\n[relay.sink.email]\nserver = \"127.0.0.1\"\nport = {}\nsecurity = \"none\"\n\
         from = \"shop@example.com\"\nto = \"{{{{ email }}}}\"\n\
         [relay.sink.email.templates.due]\nsubject = \"Due\"\ntext = \"{{{{ id }}}}\"\n",
        server.port()
    );
    let (code, _, log) = outbox_relay(&stage.toml(&relay), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let mut ids: Vec<String> =
        server.received().iter().flat_map(|mail| mail.header("message-id")).map(str::to_owned).collect();
    ids.sort();
    let due = "SELECT to_char(due AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM todos WHERE id = 'b'";
    let due: String = stage.owner.query(due, &[]).await.unwrap()[0].get(0);
    let due = due.replace(':', "=3A").replace('.', "=2E");
    assert_eq!(ids, ["a=2F1", "b"].map(|id| format!("<reminders/{id}/{due}@example.com>")));
    let marked: i64 = stage.owner.query_one("SELECT count(*) FROM todos WHERE sent", &[]).await.unwrap().get(0);
    assert_eq!(marked, 2);
}

// Guarantee: failures.smtp-once
#[tokio::test(flavor = "multi_thread")]
async fn at_most_once_never_repeats_a_mail_whose_answer_did_not_come() {
    let (stage, server) = (Stage::start().await, SmtpServer::start(&Options::default()).await.unwrap());
    server.behave(Behaviour::Reset).await.unwrap();
    stage.add("Ann", "ann@example.com").await;
    let relay = stage.relay_with("mail", server.port(), "security = \"none\"");
    let text = stage.toml(&relay.replace("start =", "guarantee = \"at_most_once\"\nstart ="));
    let _process = Process::spawn(&text, &["run"]);
    let unknown = || async {
        let (_, out, _) = outbox_relay(&text, &["request", "list", "--unknown", "-o", "json"]).await;
        json(&out)["requests"].as_array().map_or(0, Vec::len)
    };
    eventually(PATIENCE * 3, || async { unknown().await == 1 }).await;
    server.behave(Behaviour::Accept).await.unwrap();
    stage.add("Bob", "bob@example.com").await;
    eventually(PATIENCE * 2, || async { server.received().len() >= 2 }).await;
    let receivers: Vec<String> = server.received().into_iter().flat_map(|mail| mail.to).collect();
    assert_eq!(receivers, ["ann@example.com", "bob@example.com"]);
}
