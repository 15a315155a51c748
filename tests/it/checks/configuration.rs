//! Configurations that cannot work, or not yet: each error with its fix.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::outside::{finding, json, keys, line, lines, stdout_relay};
use crate::support::{
    CLOCK, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, outbox_relay, toml, unique,
};

#[tokio::test(flavor = "multi_thread")]
async fn check_says_all_errors_with_their_fixes_and_ends_with_3() {
    let (database, broker) = (database().await, broker().await);
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute(
            "CREATE TABLE unindexed (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); \
             GRANT SELECT ON unindexed TO relay; \
             CREATE TABLE guarded (LIKE bookings INCLUDING ALL); GRANT SELECT ON guarded TO relay; \
             ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; REVOKE UPDATE ON outbox.control FROM relay",
        )
        .await
        .unwrap();
    let stream = |name: &str, table: &str| stdout_relay(name, "").replace("public.bookings", table);
    let relays = format!(
        "{}{}{}{}",
        stream("gone", "public.gone"),
        stream("unindexed", "public.unindexed"),
        stream("guarded", "public.guarded"),
        kafka_relay("topicless", &unique("absent"), "")
    );
    let text = toml(&database, "relay", Some(&broker.bootstrap_servers()), &relays);
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    assert_eq!((code, &document["ok"]), (Some(3), &Value::Bool(false)));
    for (code, level, relay) in [
        ("privilege_missing", "error", ""),
        ("table_missing", "error", "gone"),
        ("index_missing", "warn", "unindexed"),
        ("row_security", "error", "guarded"),
        ("topic_missing", "error", "topicless"),
    ] {
        let found = finding(&document, code).unwrap_or_else(|| panic!("{code} in {out}"));
        assert_eq!((&found["level"], &found["relay"]), (&level.into(), &relay.into()), "{code}");
    }
    let lacking = finding(&document, "privilege_missing").unwrap();
    assert_eq!(lacking["message"], "role relay lacks UPDATE on outbox.control");
    assert_eq!(lacking["fix_sql"].as_str().unwrap().matches("GRANT ").count(), 1, "{lacking}");
    let fixes = ["privilege_missing", "index_missing"].map(|code| finding(&document, code).unwrap()["fix_sql"].clone());
    for fix in fixes {
        for statement in fix.as_str().unwrap().split_inclusive(';').filter(|sql| sql.trim().len() > 1) {
            owner.batch_execute(statement).await.unwrap();
        }
    }
    let document = json(&outbox_relay(&text, &["check", "-o", "json"]).await.1);
    assert!(finding(&document, "privilege_missing").is_none() && finding(&document, "index_missing").is_none());
    let (code, out, _) = outbox_relay(&text, &["check"]).await;
    assert_eq!(code, Some(3));
    assert!(out.contains("  ERROR  table_missing            table public.gone does not exist\n"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_the_client_refuses_together_are_named_by_check_and_by_run() {
    let (database, broker) = (database().await, broker().await);
    bookings(&database, CLOCK).await;
    let topic = unique("refused_settings");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let relays = kafka_relay("r", &topic, "") + &kafka_relay("routed", "{{ customer }}", "");
    let settings = "\"reconnect.backoff.ms\" = \"5000\"\n\"reconnect.backoff.max.ms\" = \"1000\"";
    let relays = format!("[kafka.properties]\n{settings}\n{relays}");
    let text = toml(&database, "relay", Some(&broker.bootstrap_servers()), &relays);
    let (reason, fix) =
        ("`reconnect.backoff.max.ms` must be >= `reconnect.", "fix what it names in [kafka.properties]");
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let document = json(&out);
    let refused: Vec<_> =
        document["findings"].as_array().unwrap().iter().filter(|found| found["code"] == "kafka_refused").collect();
    assert_eq!((code, refused.len()), (Some(3), 2), "for each relay, whether or not rows name its topic: {document}");
    for found in refused {
        assert!(found["message"].as_str().unwrap().contains(reason), "{found}");
        assert!(found["fix_setting"].as_str().unwrap().contains(fix), "{found}");
    }
    let process = Process::spawn(&text, &["run"]);
    let told = line(&process, "relay cannot run; it is checked every 5 s").await;
    assert_eq!(told["code"], "kafka_client");
    assert!(told["error"].as_str().unwrap().contains(reason) && told["hint"].as_str().unwrap().contains(fix), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_would_halt_a_relay_at_its_first_row_are_found_by_check() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    let source = "start = \"now\"\n[relay.source.stream]\ntable = \"public.bookings\"\n";
    let sms = format!(
        "[[relay]]\nname = \"sms\"\n{source}[relay.sink.sms]\nprovider = \"twilio\"\naccount_sid = \"AC1\"\n\
         auth_token_file = \"{0}\"\nfrom = \"+491\"\nto = \"{{{{ customer }}}}\"\ntext = \"t\"\n",
        file.display()
    );
    let hook = format!(
        "[[relay]]\nname = \"hook\"\n{source}[relay.sink.webhook]\nurl = \"https://example.org/\"\nsecret_file = \"{}\"\n",
        file.display()
    );
    let text = toml(&database, "relay", None, &(sms + &hook));
    let told = async || {
        let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
        let document = json(&out);
        let found =
            document["findings"].as_array().unwrap().iter().filter(|found| found["code"] == "secret_unreadable");
        let found = found.map(|found| {
            assert_eq!(found["level"], "error");
            (found["relay"].as_str().unwrap().to_owned(), found["message"].as_str().unwrap().to_owned())
        });
        (code, found.collect::<Vec<_>>())
    };
    let named = |relay: &str, wrong: &str| {
        let key = if relay == "sms" { "sms.auth_token_file" } else { "webhook.secret_file or secret_files" };
        let said = format!("The secret of relay.sink.{key} cannot be used: {} {wrong}", file.display());
        (relay.to_owned(), said)
    };
    let missing = "cannot be read: No such file or directory (os error 2)";
    assert_eq!(told().await, (Some(3), vec![named("sms", missing), named("hook", missing)]));
    std::fs::write(&file, "\n").unwrap();
    assert_eq!(told().await, (Some(3), vec![named("sms", "is empty"), named("hook", "does not begin with whsec_")]));
    std::fs::write(&file, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    assert_eq!(told().await.1, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_a_configuration_without_relays() {
    let database = database().await;
    let (code, out, _) = outbox_relay(&toml(&database, "relay", None, ""), &["check", "-o", "json"]).await;
    let document = json(&out);
    assert_eq!((code, &finding(&document, "no_relay").unwrap()["level"]), (Some(0), &"warn".into()));
    let document =
        json(&outbox_relay(&toml(&database, "relay", None, &stdout_relay("r", "")), &["check", "-o", "json"]).await.1);
    assert!(finding(&document, "no_relay").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_kafka_client_logs_names_no_file_of_the_machine_that_built_it() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", Some("127.0.0.1:1"), &kafka_relay("away", "any", ""));
    let process = Process::spawn(&text, &["run"]);
    let clients = || lines(&process).into_iter().find(|line| line["target"] == "librdkafka");
    eventually(PATIENCE, || async { clients().is_some() }).await;
    assert_eq!(keys(&clients().unwrap()), BTreeSet::from(["timestamp", "level", "message", "target"]));
}
