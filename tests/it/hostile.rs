//! Hostile content in rows, names and servers' words cannot forge a log line, a metric, a document or a terminal's picture.

use outbox_testkit::postgres::login;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::gateway::{Gateway, sms_relay};
use crate::support::outside::{get, halted, json, lines, listener, printed, promtool};
use crate::support::{
    CLOCK, PATIENCE, Process, bookings, broker, database, eventually, outbox_relay, records, toml, unique,
};

/// Clears the screen, sets the title, rings, breaks the line, ends strings of JSON and of labels, turns the writing round.
const EVIL: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n{\"level\":\"INFO\",\"message\":\"forged\"}\n\"} 1\\\u{9b}31m\u{202e}</script>";

/// No byte that a terminal would obey: of the control characters only the line's end.
#[track_caller]
fn tame(place: &str, text: &str) {
    let wild = text.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
    assert!(wild.is_none(), "{wild:?} in {place}: {text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("{\"level\":\"INFO\",\"message\":\"forged\"}")),
        "{place}: {text}"
    );
}

/// Every line of the log is a line of ours.
#[track_caller]
fn sound(process: &Process) {
    let log = process.log();
    let parsed = lines(process);
    assert_eq!(parsed.len(), log.lines().count(), "{log}");
    assert!(parsed.iter().all(|line| line["timestamp"].is_string() && line["message"] != "forged"), "{log}");
    assert!(!log.contains(['\u{1b}', '\u{7}']), "{log:?}");
}

// Guarantee: secrets.hostile-text
#[tokio::test(flavor = "multi_thread")]
async fn hostile_rows_arrive_unchanged_or_are_refused_and_forge_nothing() {
    let (database, broker, gateway) = (database().await, broker().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text").await.unwrap();
    let topic = unique("hostile");
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let source = "start = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n";
    let relays = format!(
        "{}[[relay]]\nname = \"k\"\n{source}[relay.sink.kafka]\ntopic = \"{topic}\"\nkey = \"customer\"\n\
         payload = {{ column = \"payload\" }}\nheaders = {{ phone = \"phone\" }}\n\
         [[relay]]\nname = \"routed\"\n{source}[relay.sink.kafka]\ntopic = \"{{{{ customer }}}}\"\nkey = \"customer\"\n\
         payload = {{ column = \"payload\" }}\n\
         [[relay]]\nname = \"h\"\n{source}[relay.sink.http]\nurl = \"{}/{{{{ id }}}}\"\nbody = \"row\"\n\
         headers = {{ X-Phone = \"{{{{ phone }}}}\" }}\n\
         [[relay]]\nname = \"s\"\n{source}[relay.sink.stdout]\n",
        sms_relay("sms", &gateway, ""),
        gateway.url
    );
    let text = toml(&database, "relay", Some(&broker.bootstrap_servers()), &relays);
    let insert = "INSERT INTO bookings (customer, payload, phone) VALUES ($1, $1, $1)";
    owner.execute(insert, &[&EVIL]).await.unwrap();
    let mut process = Process::spawn_with(&text, &["run"], &[("RUST_LOG", "debug".to_owned())]);
    let url = listener(&process).await;
    eventually(PATIENCE * 2, async || !gateway.accepted().is_empty() && !printed(&process, "s").is_empty()).await;
    eventually(PATIENCE * 2, async || !records(&broker.bootstrap_servers(), &topic).await.is_empty()).await;
    let record = &records(&broker.bootstrap_servers(), &topic).await[0];
    assert_eq!((record.text().as_str(), record.key.as_deref(), record.header("phone")), (EVIL, Some(EVIL), Some(EVIL)));
    let form = reqwest::Url::parse(&format!("http://x/?{}", gateway.asked()[0].form)).unwrap();
    assert!(form.query_pairs().any(|(name, value)| name == "To" && value == EVIL), "{form}");
    assert_eq!(halted(&owner, "h").await.1["code"], "invalid_header");
    let (_, routed) = halted(&owner, "routed").await;
    assert_eq!(routed["class"], "poison", "{routed}");

    let metrics = get(&format!("{url}/metrics")).await.1;
    promtool(&metrics);
    assert!(!metrics.contains("owned") && !metrics.contains("forged"));
    for verb in [&["status"][..], &["cursor", "list"], &["check"]] {
        let (_, out, log) = outbox_relay(&text, verb).await;
        tame(&format!("{verb:?}"), &out);
        tame(&format!("{verb:?}"), &log);
    }
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0));
    sound(&process);
    assert!(!process.log().contains("owned"), "no row content in a log, at level debug either");
    let printed = process.out();
    assert_eq!(printed.lines().count(), 1, "{printed:?}");
    assert_eq!(json(printed.trim_end())["row"]["phone"], EVIL);
    assert!(!printed.contains('\u{1b}'));
}

// Guarantee: secrets.hostile-text
#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_words_of_others_sessions_are_shown_as_escapes() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let name = "b\u{1b}[31m\n{\"level\":\"INFO\"}\" x\u{7}";
    let (quoted, role) =
        (outbox_relay::database::quote_ident(name), outbox_relay::database::quote_ident(&database.name));
    owner
        .batch_execute(&format!(
            "CREATE TABLE public.{quoted} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at {CLOCK}, \
             {quoted} text); GRANT SELECT ON public.{quoted} TO relay; {}; \
             CREATE TRIGGER {quoted} BEFORE UPDATE ON public.{quoted} FOR EACH ROW \
             EXECUTE FUNCTION suppress_redundant_updates_trigger(); INSERT INTO public.{quoted} DEFAULT VALUES",
            login(&role)
        ))
        .await
        .unwrap();
    let table = serde_json::Value::from(format!("public.{quoted}")).to_string();
    let relay = |relay: &str, sink: &str| {
        format!(
            "[[relay]]\nname = \"{relay}\"\nstart = \"beginning\"\n[relay.source.stream]\ntable = {table}\n{sink}\n"
        )
    };
    let missing = "[relay.sink.http]\nurl = \"http://127.0.0.1:1/\"\nbody = \"{{ missing }}\"";
    let text = toml(&database, "relay", None, &format!("{}{}", relay("s", "[relay.sink.stdout]"), relay("m", missing)));
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || !printed(&process, "s").is_empty()).await;
    halted(&owner, "m").await;
    // Somebody holds the horizon back under a name that PostgreSQL lets through, and somebody wrote an error of his own.
    let writer = database.connect("postgres").await;
    let application = outbox_relay::database::quote_literal(EVIL);
    writer.batch_execute(&format!("SET application_name = {application}; BEGIN")).await.unwrap();
    writer.batch_execute(&format!("INSERT INTO public.{quoted} DEFAULT VALUES")).await.unwrap();
    let error =
        serde_json::json!({ "at": EVIL, "class": EVIL, "code": EVIL, "message": EVIL, "hint": EVIL }).to_string();
    let sql = "UPDATE outbox.cursor_status SET last_error = $1::text::jsonb, message_id = $2 WHERE cursor = 'm'";
    owner.execute(sql, &[&error, &EVIL]).await.unwrap();
    owner.execute("UPDATE outbox.cursor SET advanced_by = $1 WHERE name = 's'", &[&EVIL]).await.unwrap();
    for verb in [&["status"][..], &["cursor", "list"], &["check"], &["config", "show", "--redacted"]] {
        let (code, out, log) = outbox_relay(&text, verb).await;
        assert!(code.is_some_and(|code| code != 2), "{log}");
        tame(&format!("{verb:?}"), &out);
        tame(&format!("{verb:?}"), &log);
    }
    for verb in [&["status", "-o", "json"][..], &["cursor", "list", "-o", "json"], &["check", "-o", "json"]] {
        let (_, out, _) = outbox_relay(&text, verb).await;
        assert_eq!(out.lines().count(), 1, "one document a line: {out}");
        assert!(json(&out).is_object() && !out.contains('\u{1b}'), "{out}");
    }
    sound(&process);
}

/// A server that answers whatever comes with an error of PostgreSQL's form and words of its own.
async fn impostor() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked).await;
            let fields = format!("SFATAL\0VFATAL\0C57P03\0M{EVIL}\0H{EVIL}\0\0");
            let mut answer = vec![b'E'];
            answer.extend_from_slice(&u32::try_from(fields.len() + 4).unwrap().to_be_bytes());
            answer.extend_from_slice(fields.as_bytes());
            let _ = stream.write_all(&answer).await;
        }
    });
    port
}

// Guarantee: secrets.hostile-text
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_server_forges_neither_a_log_line_nor_a_picture() {
    let port = impostor().await;
    let text = format!(
        "[postgres]\nurl = \"postgresql://relay@127.0.0.1:{port}/app?sslmode=disable\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"s\"\n[relay.source.stream]\ntable = \"public.b\"\n\
         [relay.sink.stdout]\n"
    );
    for (verb, expected) in
        [(&["status"][..], 1), (&["check"], 3), (&["cursor", "list"], 1), (&["migrate", "status"], 1)]
    {
        let (code, out, log) = outbox_relay(&text, verb).await;
        assert_eq!(code, Some(expected), "{verb:?}: {log}");
        assert!(format!("{out}{log}").contains("owned"), "the words are shown: {out}{log}");
        tame(&format!("{verb:?}"), &out);
        tame(&format!("{verb:?}"), &log);
    }
    let process = Process::spawn(&text, &["run"]);
    let url = listener(&process).await;
    eventually(PATIENCE, async || process.log().contains("PostgreSQL cannot be reached")).await;
    tame("readyz", &get(&format!("{url}/readyz")).await.1);
    sound(&process);
}
