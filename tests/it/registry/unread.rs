//! What cannot be read: another version's row, a template's file, the answer to a write.

use outbox_testkit::smtp::{Options, SmtpServer};

use super::{CLOCK, PATIENCE, bookings, database, eventually, row, start, stdout_relay};
use crate::support::outside::{json, line, printed};
use crate::support::{Process, outbox_relay, toml};

/// What a session of a process runs.
const LIVES: &str =
    "SELECT pg_advisory_lock_shared(hashtextextended('outbox-relay process ' || instance, 0)) FROM outbox.replica";

// Guarantee: failures.unreadable-configuration
#[tokio::test]
async fn configuration_of_another_version_is_shown_unreadable() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let later = "DELETE FROM outbox.replica; INSERT INTO outbox.replica (id, version, relays) \
                 VALUES ('later', '9.9.9', '[\"events\", {\"name\": \"events\", \"config\": {}}]')";
    owner.batch_execute(later).await.unwrap();
    owner.batch_execute(LIVES).await.unwrap();
    let (_, out, _) = outbox_relay(&text, &["replica", "list"]).await;
    let shown = out.lines().find(|line| line.starts_with("later")).unwrap_or_default();
    assert!(shown.contains("9.9.9") && shown.contains("configuration not readable: "), "{out}");
    println!("{out}");
    let (_, out, _) = outbox_relay(&text, &["replica", "list", "-o", "json"]).await;
    let listed = json(&out);
    assert!(listed["replicas"][0]["unreadable"].is_string(), "{listed}");
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    assert_ne!(json(&out)["cursors"][0]["state"], "no_replica", "it may have the relay");
    // It holds up no replica that it does not stand in the way of.
    let mails = stdout_relay("mails", "");
    let (code, _, log) =
        outbox_relay(&toml(&database, "relay", None, &mails), &["cursor", "create", "mails", "--now"]).await;
    assert_eq!(code, Some(0), "{log}");
    let other = start(&database, &mails, "other");
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || !printed(&other, "mails").is_empty()).await;
    // Of the same relay its configuration is another.
    let same = start(&database, &stdout_relay("events", ""), "same");
    line(&same, "relay waits for replicas with another configuration").await;
}

#[tokio::test]
async fn cursor_stays_beside_live_replica_of_unreadable_configuration() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let later = "DELETE FROM outbox.replica; \
                 INSERT INTO outbox.replica (id, version, relays) VALUES ('later', '9.9.9', '[\"events\"]'); \
                 SET application_name = 'outbox-relay/later'";
    owner.batch_execute(later).await.unwrap();
    owner.batch_execute(LIVES).await.unwrap();
    for verb in [&["cursor", "remove", "events", "--yes"][..], &["cursor", "rename", "events", "new", "--yes"]] {
        let (code, _, log) = outbox_relay(&text, verb).await;
        assert!(code != Some(0) && log.contains("replica later is running"), "{code:?} {log}");
    }
    let cursors = owner.query_one("SELECT count(*) FROM outbox.cursor WHERE name = 'events'", &[]).await.unwrap();
    assert_eq!(cursors.get::<_, i64>(0), 1);
}

// Guarantee: failures.unreadable-configuration
#[tokio::test]
async fn unreadable_template_file_is_named_beside_other_replicas() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let server = SmtpServer::start(&Options::default()).await.unwrap();
    let port = server.port();
    let relay = |file: &str| {
        format!(
            "[[relay]]\nname = \"mails\"\nstart = \"now\"\n[relay.source.stream]\ntable = \"public.bookings\"\n\
             [relay.sink.email]\nserver = \"127.0.0.1\"\nport = {port}\nsecurity = \"none\"\nfrom = \"a@b.c\"\nto = \"{{{{ payload }}}}\"\n\
             [relay.sink.email.templates.t]\nsubject = \"S\"\ntext_file = \"{file}\"\n"
        )
    };
    let spawn = |file: &str, name: &str| {
        Process::spawn(&toml(&database, "relay", None, &relay(file)), &["run", "--replica-id", name])
    };
    let path = file.path().display().to_string();
    let healthy = spawn(&path, "healthy");
    line(&healthy, "relay ready").await;
    let missing = format!("{path}.missing");
    for name in ["first", "second"] {
        let blind = spawn(&missing, name);
        let said = line(&blind, "relay cannot run; it is checked every 5 s").await;
        let error = said["error"].as_str().unwrap();
        assert!(error.contains("templates.t.text_file") && error.contains(&missing), "{said}");
        eventually(PATIENCE, async || row(&owner, name).await.is_some_and(|(_, r)| r[0]["refused"].is_object())).await;
        let (_, relays) = row(&owner, name).await.unwrap();
        assert_eq!(
            (&relays[0]["config_hash"], &relays[0]["refused"]["code"]),
            (&"unreadable".into(), &"invalid_setting".into())
        );
        assert!(!blind.log().contains("another configuration"), "{}", blind.log());
    }
    // Only with the file there is a configuration, which is compared.
    let late = spawn(&missing, "late");
    line(&late, "relay cannot run; it is checked every 5 s").await;
    std::fs::copy(file.path(), &missing).unwrap();
    line(&late, "relay waits for replicas with another configuration").await;
    std::fs::remove_file(&missing).unwrap();
}

// Guarantee: failures.unreadable-configuration
#[tokio::test]
async fn write_without_an_answer_stops_no_relay() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE FUNCTION public.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER swallow BEFORE INSERT ON outbox.replica FOR EACH ROW EXECUTE FUNCTION public.swallow(); \
             INSERT INTO bookings DEFAULT VALUES",
        )
        .await
        .unwrap();
    let process = start(&database, &stdout_relay("events", ""), "r1");
    eventually(PATIENCE, async || !printed(&process, "events").is_empty()).await;
    let said = line(&process, "cannot write the row of this replica; relaying goes on").await;
    assert!(said["error"].as_str().unwrap().contains("outbox.replica"), "{said}");
    assert!(said["hint"].as_str().unwrap().contains("trigger"), "{said}");
    owner.batch_execute("DROP TRIGGER swallow ON outbox.replica").await.unwrap();
    eventually(PATIENCE, async || row(&owner, "r1").await.is_some()).await;
    line(&process, "the row of this replica can be written again").await;
}
