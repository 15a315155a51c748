//! What operators see of requests, and what the configuration refuses.

use outbox_relay::config::{Config, Environment};
use outbox_relay::jobs::requests;
use outbox_testkit::provider::{Answer, Provider};

use super::{clients, having, listed, relay, welcome};
use crate::support::outside::json;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

#[tokio::test(flavor = "multi_thread")]
async fn list_show_and_redrive_tell_all_but_what_was_sent_and_note_who_decided() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(400)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let (id, ..) = welcome(&app, "ada").await;
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    let found = listed(&text, &["--status", "failed"]).await;
    assert_eq!((&found[0]["template"], &found[0]["user_id"]), (&"welcome".into(), &"ada".into()));
    let (code, out, _) = outbox_relay(&text, &["request", "show", "--key", "ada:welcome"]).await;
    let shown = json(&out);
    assert_eq!((code, &shown["request_id"], &shown["status"]), (Some(0), &id.clone().into(), &"failed".into()));
    assert_eq!(shown["error"]["code"], "http_400");
    let (code, out, log) = outbox_relay(&text, &["request", "redrive", &id, "--dry-run"]).await;
    assert_eq!((code, having(&owner, "failed").await), (Some(0), 1), "{out}{log}");
    assert_eq!(outbox_relay(&text, &["request", "redrive", &id]).await.0, Some(2), "nobody could be asked");
    let (code, out, _) = outbox_relay(&text, &["request", "redrive", &id, "--yes"]).await;
    assert_eq!((code, having(&owner, "pending").await), (Some(0), 1));
    assert!(out.ends_with("1 of 1: pending again\n"), "{out}");
    let sql = "SELECT verb, cursor, detail ->> 'requests' FROM outbox.operation";
    let row = owner.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("request redrive", "mails"));
    assert_eq!(row.get::<_, &str>(2), format!("[\"{id}\"]"));
    let (code, out, log) = outbox_relay(&text, &["request", "redrive", &id, "--yes"]).await;
    assert_eq!((code, out.ends_with("nothing to do\n")), (Some(0), true), "{out}{log}");
    assert!(log.contains("only failed and unknown ones"), "{log}");
    let nobody = "00000000-0000-0000-0000-000000000000";
    assert_eq!(outbox_relay(&text, &["request", "show", nobody]).await.0, Some(1));
    assert_eq!(outbox_relay(&text, &["request", "show", "ada"]).await.0, Some(2));
}

// Guarantee: requests.dedupe-for
#[tokio::test(flavor = "multi_thread")]
async fn redrive_leaves_a_request_alone_whose_key_another_has_taken_and_names_it() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Refuse(400)).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let call =
        "SELECT request_id::text FROM outbox.enqueue_once($1 || ':welcome', $1, 'welcome', dedupe_for => '1 hour')";
    let ask = async |user: &str| app.query_one(call, &[&user]).await.unwrap().get::<_, String>(0);
    let (first, refused) = (ask("ada").await, ask("ben").await);
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    owner.batch_execute("UPDATE outbox.request SET dedupe_until = now() WHERE user_id = 'ada'").await.unwrap();
    let other = ask("ada").await;
    assert_ne!(first, other);
    let (code, out, log) = outbox_relay(&text, &["request", "redrive", &first, &refused, "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    assert!(out.ends_with("1 of 1: pending again\n"), "{out}");
    let taken = format!("request {first} is left alone: request {other} (pending) has taken its dedupe key");
    let end =
        format!("`outbox-relay request show {other}`, and give this one up: `outbox-relay request discard {first}`");
    assert!(log.contains(&taken) && log.contains(&end), "{log}");
    let failed = "SELECT request_id::text FROM outbox.request WHERE status = 'failed'";
    assert_eq!(owner.query_one(failed, &[]).await.unwrap().get::<_, String>(0), first);

    // The key may be taken after the verb has looked: the statement itself refuses.
    let again = requests::redrive(&owner, std::slice::from_ref(&first), "test").await.unwrap();
    assert_eq!(again, Vec::<String>::new());
    owner.execute("DELETE FROM outbox.request WHERE request_id::text = $1", &[&other]).await.unwrap();
    let (code, out, log) = outbox_relay(&text, &["request", "redrive", &first, "--yes"]).await;
    assert_eq!((code, out.ends_with("nothing to do\n")), (Some(0), true), "{out}{log}");
    assert!(log.contains("another request had taken its dedupe key, and has been deleted since"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settle_records_unknown_outcome_and_who_decided() {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    let provider = Provider::start(|_| Answer::Lose).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    let mut ids = Vec::new();
    for user in ["ada", "ben", "eve"] {
        ids.push(welcome(&app, user).await.0);
    }
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    assert_eq!(having(&owner, "unknown").await, 3);
    let settle = async |arguments: &[&str]| outbox_relay(&text, &[&["request", "settle"], arguments].concat()).await;
    assert_eq!(settle(&[&ids[0]]).await.0, Some(2), "arrived or lost");
    assert_eq!(settle(&[&ids[0], "--arrived", "--lost"]).await.0, Some(2));
    assert_eq!(settle(&["ada:welcome", "--lost"]).await.0, Some(2), "no id");
    let (code, out, log) = settle(&[&ids[0], "--arrived", "--dry-run"]).await;
    assert_eq!((code, having(&owner, "unknown").await), (Some(0), 3), "{out}{log}");
    let (code, out, log) = settle(&[&ids[0], "--arrived"]).await;
    assert_eq!((code, having(&owner, "unknown").await), (Some(2), 3), "{out}{log}");
    assert!(out.is_empty() && log.contains("standard input is no terminal: add --yes"), "{out}{log}");
    let (code, out, log) = settle(&[&ids[0], &ids[1], "--arrived", "--yes"]).await;
    assert_eq!((code, out), (Some(0), format!("[\"{}\"] arrived\n[\"{}\"] arrived\n", ids[0], ids[1])), "{log}");
    let (code, out, log) = settle(&[&ids[2], "--lost", "--yes", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let settled = serde_json::json!({ "requests": [{ "relay": "mails", "key": [ids[2]], "outcome": "lost" }] });
    assert_eq!(json(&out), settled);
    assert_eq!((having(&owner, "completed").await, having(&owner, "failed").await), (2, 1));
    let noted = "SELECT detail ->> 'outcome', jsonb_array_length(detail -> 'requests') FROM outbox.operation \
                 WHERE verb = 'request settle' AND cursor = 'mails' ORDER BY operator, at";
    let noted = owner.query(noted, &[]).await.unwrap();
    let noted: Vec<(String, i32)> = noted.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(noted, [("arrived".to_owned(), 2), ("lost".to_owned(), 1)]);
    let (code, _, log) = settle(&[&ids[0], "--lost"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("is completed; only an unknown outcome can be settled"), "{log}");
    let (code, _, log) = settle(&["00000000-0000-0000-0000-000000000000", "--lost"]).await;
    assert!(code == Some(1) && log.contains("there is no request"), "{log}");
    assert_eq!((having(&owner, "completed").await, having(&owner, "failed").await), (2, 1), "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn list_refuses_unknown_filter_with_known_values() {
    let database = database().await;
    clients(&database).await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let text = toml(&database, "relay", None, &relay(&provider, "", ""));
    for (arguments, known) in [
        (["request", "list", "--status", "foo"], "pending, processing, completed, failed, unknown"),
        (["request", "list", "--relay", "foo"], "unknown relay \"foo\"; known: mails"),
        (["dead-letter", "list", "--cursor", "foo"], "unknown cursor \"foo\"; known: mails"),
        (["action", "list", "--status", "foo"], "queued, due, running, completed, failed, skipped"),
        (["action", "list", "--relay", "foo"], "unknown relay \"foo\"; known: mails"),
        (["action", "list", "--schedule", "foo"], "unknown schedule \"foo\"; known: none"),
        (["schedule", "list", "--relay", "foo"], "unknown relay \"foo\"; known: mails"),
    ] {
        let (code, out, log) = outbox_relay(&text, &arguments).await;
        assert_eq!(code, Some(2), "{arguments:?}: {out}{log}");
        assert!(log.contains(known), "{arguments:?}: {log}");
    }
    assert_eq!(outbox_relay(&text, &["request", "list", "--relay", "mails"]).await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_makes_its_templates_known_and_takes_none_of_another() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let mails = relay(&provider, "", "");
    let text = toml(&database, "relay", None, &mails);
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(0));
    let sql = "SELECT string_agg(name || ' ' || relay, ', ' ORDER BY name) FROM outbox.template";
    assert_eq!(owner.query_one(sql, &[]).await.unwrap().get::<_, &str>(0), "reset mails, welcome mails");
    let other = mails.replace("name = \"mails\"", "name = \"texts\"").replace(", \"reset\"", ", \"bye\"");
    let text = toml(&database, "relay", None, &other);
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "3s"]).await;
    assert_eq!(code, Some(1));
    assert!(
        log.contains("cursor_renamed") && log.contains("cursor mails has the template welcome, and no replica"),
        "{log}"
    );
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(3));
    assert!(out.contains("template_taken"), "{out}");
    assert!(out.contains("If relay mails was renamed: `outbox-relay cursor rename mails texts`."), "{out}");
    let mut replica = Process::spawn(&toml(&database, "relay", None, &mails), &["run"]);
    let known =
        "SELECT EXISTS (SELECT FROM outbox.replica WHERE stopped_at IS NULL AND relays @> '[{\"name\": \"mails\"}]')";
    eventually(PATIENCE * 2, async || owner.query_one(known, &[]).await.unwrap().get(0)).await;
    let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert!(out.contains("Give it another name in one of the two relays."), "{out}");
    replica.signal(rustix::process::Signal::TERM);
    assert_eq!(replica.wait().await, Some(0));
    // With a cursor of its own it is no renamed one.
    assert_eq!(outbox_relay(&text, &["cursor", "create", "texts", "--beginning"]).await.0, Some(0));
    let (code, _, log) = outbox_relay(&text, &["run", "--once", "--timeout", "3s"]).await;
    assert!(code == Some(1) && log.contains("template welcome belongs to relay mails"), "{log}");
    owner.batch_execute("SELECT outbox.enqueue('ada', 'reset')").await.unwrap();
    let none = toml(&database, "relay", None, &other.replace("\"welcome\"", "\"hello\""));
    let (_, out, _) = outbox_relay(&none, &["check", "-o", "json"]).await;
    assert!(out.contains("1 request waits for relay mails, which this configuration does not have"), "{out}");
    let fewer = toml(&database, "relay", None, &mails.replace(", \"reset\"", ""));
    let (code, out, _) = outbox_relay(&fewer, &["check", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("template_unused"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_requests_is_refused_with_key_value_and_fix() {
    let provider = Provider::start(|_| Answer::Accept).await.unwrap();
    let refused = |relay: &str| {
        let text = format!("[postgres]\nurl = \"postgresql://relay@127.0.0.1/app?sslmode=disable\"\n{relay}");
        let problems = Config::parse(&text, "test.toml", &Environment::from([])).expect_err(relay);
        problems.to_string()
    };
    for (more, sink, says) in [
        ("guarantee = \"at_least_once\"", "", "requests are sent once or not at all"),
        ("start = \"now\"", "", "due work has no beginning"),
        ("on_poison = \"dead_letter\"\ndead_letter_topic = \"t\"", "", "requests have no dead letters"),
        ("on_unknown = \"resend\"", "", "nothing says for how long a key is remembered"),
        ("on_unknown = \"ask\"", "", "this sink does not say where"),
        ("on_unknown = \"ask\"", "ask = \"ftp://x/\"", "not an http or https URL"),
        ("on_unknown = \"perhaps\"", "", "perhaps"),
        ("", "key_memory = \"1s\"", "key_memory"),
        ("", "provider_id = \"id\"", "no JSON pointer"),
    ] {
        let problems = refused(&relay(&provider, more, sink));
        assert!(problems.contains(says), "{more}{sink}: {problems}");
    }
    let stream = relay(&provider, "start = \"now\"\nguarantee = \"deduplicated\"", "key_memory = \"1h\"")
        .replace("source.requests]\ntemplates = [\"welcome\", \"reset\"]", "source.stream]\ntable = \"public.x\"");
    let problems = refused(&stream);
    assert_eq!(problems.matches("this is for requests that are sent once").count(), 2, "{problems}");
    let stdout = "[[relay]]\nname = \"x\"\n[relay.source.requests]\ntemplates = [\"a\"]\n[relay.sink.stdout]\n";
    assert!(refused(stdout).contains("this sink has no way to send a message once"));
    let twins = relay(&provider, "", "") + &relay(&provider, "", "").replace("\"mails\"", "\"texts\"");
    assert!(refused(&twins).contains("template \"welcome\" is one of relay mails already"));
    let none = relay(&provider, "", "").replace("templates = [\"welcome\", \"reset\"]", "");
    assert!(refused(&none).contains("name what can be requested"));
}
