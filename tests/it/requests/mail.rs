//! Requests by email, to a real mail server.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use outbox_testkit::postgres::{password, without_password};
use outbox_testkit::smtp::{Behaviour, Options, SmtpServer};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::{clients, having, listed, welcome};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// A relay `mails` to this port; `more` is added below `[[relay]]`.
fn relay(port: u16, more: &str) -> String {
    let memory = if more.contains("resend") { "key_memory = \"1h\"" } else { "" };
    format!(
        "[[relay]]\nname = \"mails\"\n{more}\n[relay.source.requests]\n[relay.turn]\ndeadline = \"3s\"\n\
         [relay.sink.email]\nserver = \"127.0.0.1\"\nport = {port}\nsecurity = \"none\"\n\
         from = \"shop@example.com\"\nto = \"{{{{ user_id }}}}@example.com\"\ntemplate = \"{{{{ template }}}}\"\n{memory}\n\
         [relay.sink.email.templates.welcome]\nsubject = \"Welcome, {{{{ name | default(user_id) }}}}\"\n\
         text = \"Dear {{{{ name | default(user_id) }}}}\"\nhtml = \"<p>Dear <b>{{{{ name | default(user_id) }}}}</b></p>\"\n\
         [relay.sink.email.templates.reset]\nsubject = \"Reset\"\ntext = \"Reset\"\n"
    )
}

/// One session of psql that asks once: what it prints.
async fn psql(database: &Database, sql: &str) -> String {
    let mut command = tokio::process::Command::new("psql");
    command.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &without_password(&database.url("app")), "-c", sql]);
    command.env("PGPASSWORD", password("app"));
    let output = command.stdin(Stdio::null()).output().await.expect("psql is installed with PostgreSQL");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_of_psql_ask_for_one_mail_and_one_arrives() {
    let database = database().await;
    let (owner, _app) = clients(&database).await;
    let server = SmtpServer::start(&Options::default()).await.unwrap();
    let text = toml(&database, "relay", None, &relay(server.port(), ""));
    let _replicas = ["a", "b"].map(|name| Process::spawn(&text, &["run", "--replica-id", name]));
    let ask = "SELECT * FROM outbox.enqueue_once('ada:welcome', 'ada', 'welcome', '{\"name\": \"<Ada>\"}')";
    let answers = join_all((0..100).map(|_| psql(&database, ask))).await;
    let ids: BTreeSet<&str> = answers.iter().map(|answer| answer.split('|').next().unwrap()).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 1).await;
    let mails = server.received();
    assert_eq!(mails.len(), 1);
    assert_eq!(
        (mails[0].to.as_slice(), mails[0].header("subject")),
        (["ada@example.com".to_owned()].as_slice(), vec!["Welcome, <Ada>"])
    );
    assert!(mails[0].parts.iter().any(|(_, part)| part.contains("<b>&lt;Ada&gt;</b>")), "{mails:?}");
    let row = owner.query_one("SELECT provider_id, reply FROM outbox.request", &[]).await.unwrap();
    assert_eq!(mails[0].header("message-id"), [row.get::<_, &str>(0)]);
    assert!(row.get::<_, &str>(1).starts_with("250"), "{row:?}");
    assert_eq!(psql(&database, ask).await, format!("{}|completed|t", ids.first().unwrap()));
    assert_eq!(server.received().len(), 1);
}

// Guarantee: failures.slow-smtp
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_gets_each_mail_once_and_none_is_in_doubt() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let server = SmtpServer::start(&Options::default()).await.unwrap();
    server.behave(Behaviour::Slow(Duration::from_millis(800))).await.unwrap();
    for number in 0..20 {
        welcome(&app, &format!("user{number}")).await;
    }
    // The default time-out is 3 s, and two connections take eight for all.
    let text = toml(&database, "relay", None, &relay(server.port(), "").replace("deadline = \"3s\"\n", ""));
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 20).await;
    assert_eq!(server.received().len(), 20);
    let doubts = owner.query_one("SELECT sum(ambiguous) FROM outbox.request", &[]).await.unwrap();
    assert_eq!(doubts.get::<_, i64>(0), 0);
    assert!(!process.log().contains("send failed"), "no more is claimed than there are connections");
}

/// A process that begins with one request for a mail to this port, and is stopped and cut: the status that is left, and how
/// many outcomes are in doubt.
async fn cut(port: u16, begun: impl AsyncFn() -> bool) -> (String, i32) {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    welcome(&app, "ada").await;
    let relay = relay(port, "").replace("deadline = \"3s\"", "deadline = \"60s\"");
    let text = toml(&database, "relay", None, &format!("{relay}[shutdown]\ngrace = \"1s\"\n"));
    let mut process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 3, async || begun().await && having(&owner, "processing").await == 1).await;
    process.signal(Signal::TERM);
    process.wait().await;
    let row = owner.query_one("SELECT status, ambiguous FROM outbox.request", &[]).await.unwrap();
    (row.get(0), row.get(1))
}

// Guarantee: failures.cancelled-request
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_cut_is_in_doubt_behind_its_last_line_only() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connection = tokio::sync::OnceCell::new();
    let greeted = async || {
        connection.get_or_init(async || silent.accept().await.unwrap()).await;
        true
    };
    assert_eq!(cut(silent.local_addr().unwrap().port(), greeted).await, ("pending".to_owned(), 0));
    let server = SmtpServer::start(&Options::default()).await.unwrap();
    server.behave(Behaviour::Hang).await.unwrap();
    assert_eq!(cut(server.port(), async || server.received().len() == 1).await, ("unknown".to_owned(), 1));
}

/// Recording a request as completed waits until this client lets it.
async fn gate(owner: &Client) {
    owner
        .batch_execute(
            "CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$; \
             CREATE TRIGGER gate BEFORE UPDATE ON outbox.request FOR EACH ROW WHEN (NEW.status = 'completed') \
             EXECUTE FUNCTION public.gate(); SELECT pg_advisory_lock(4711)",
        )
        .await
        .unwrap();
}

/// A request whose mail the server has accepted, and whose replica was killed before it could record that.
async fn killed_after_250(more: &str) -> (Database, Client, SmtpServer, String, String) {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let server = SmtpServer::start(&Options::default()).await.unwrap();
    let text = toml(&database, "relay", None, &relay(server.port(), more));
    gate(&owner).await;
    let (id, ..) = welcome(&app, "ada").await;
    let mut process = Process::spawn(&text, &["run", "--replica-id", "first"]);
    let here = "FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database \
                WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted";
    let waits = &format!("SELECT count(*) {here}");
    eventually(PATIENCE * 3, async || {
        server.received().len() == 1 && owner.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    process.signal(Signal::KILL);
    process.wait().await;
    // Its session waits for this one, and this one would wait for its lock of the table.
    owner.batch_execute(&format!("SELECT pg_terminate_backend(l.pid) {here}")).await.unwrap();
    eventually(PATIENCE, async || owner.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    owner.batch_execute("DROP TRIGGER gate ON outbox.request; SELECT pg_advisory_unlock(4711)").await.unwrap();
    (database, owner, server, text, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_servers_250_the_mail_is_listed_and_not_sent_again() {
    let (_database, owner, server, text, id) = killed_after_250("").await;
    let _second = Process::spawn(&text, &["run", "--replica-id", "second"]);
    eventually(PATIENCE * 3, async || having(&owner, "unknown").await == 1).await;
    let found = listed(&text, &["--unknown"]).await;
    assert_eq!((found.len(), &found[0]["request_id"]), (1, &id.into()));
    assert_eq!(server.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_servers_250_resend_sends_the_same_mail_with_the_same_message_id() {
    let (_database, owner, server, text, _) = killed_after_250("on_unknown = \"resend\"").await;
    let _second = Process::spawn(&text, &["run", "--replica-id", "second"]);
    eventually(PATIENCE * 3, async || having(&owner, "completed").await == 1).await;
    let mails = server.received();
    assert_eq!(mails.len(), 2);
    assert_eq!(mails[0].header("message-id"), mails[1].header("message-id"));
    assert_eq!(mails[0].raw(), mails[1].raw());
    assert_eq!(listed(&text, &["--ambiguous"]).await.len(), 1);
    let (_, out, _) = outbox_relay(&text, &["check"]).await;
    assert!(out.contains("resend_without_key"), "{out}");
}
