//! Words that people read: names instead of numbers, and variables that would be ignored.

use crate::support::outside::stdout_relay;
use crate::support::{CLOCK, Process, bookings, database, outbox_relay, toml};

// Guarantee: commands.operator
#[tokio::test(flavor = "multi_thread")]
async fn pause_without_user_variable_names_the_login() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(0));
    let nameless = [("USER", String::new()), ("LOGNAME", String::new())];
    let mut pause = Process::spawn_with(&text, &["cursor", "pause", "s"], &nameless);
    assert_eq!(pause.wait().await, Some(0), "{}", pause.log());
    let (_, out, _) = outbox_relay(&text, &["cursor", "why", "s"]).await;
    let login = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    let login = String::from_utf8(login).unwrap();
    assert!(out.contains(&format!(" by {}", login.trim())), "{out}");
}

// Guarantee: config.variables
#[tokio::test(flavor = "multi_thread")]
async fn variable_with_one_underscore_is_refused() {
    let database = database().await;
    let text = toml(&database, "relay", None, &stdout_relay("s", ""));
    let wrong = [("OUTBOX_RELAY_POSTGRES_URL", "postgresql://other:hunter2@127.0.0.1/x".to_owned())];
    let mut show = Process::spawn_with(&text, &["config", "show", "--redacted"], &wrong);
    assert_eq!(show.wait().await, Some(2), "{}", show.out());
    let log = show.log();
    assert!(log.contains("fix: write OUTBOX_RELAY__POSTGRES__URL\n") && !log.contains("hunter2"), "{log}");
    let odd = [("OUTBOX_RELAY_CONFIGG", "x".to_owned())];
    let mut show = Process::spawn_with(&text, &["config", "show", "--redacted"], &odd);
    assert_eq!(show.wait().await, Some(0), "{}", show.log());
    let log = show.log();
    assert!(
        log.contains("unknown environment variable ignored") && log.contains("Write OUTBOX_RELAY_CONFIG, or"),
        "{log}"
    );
}
