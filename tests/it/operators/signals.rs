//! Signals that say less than SIGTERM: a terminal that closes, and SIGQUIT.

use rustix::process::Signal;

use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{line, listener, printed, stdout_relay};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

/// A replica that runs, started by `env` with these of its options: what a test is started by may ignore signals.
async fn running_by_env(options: &[&str], database: &Database, relays: &str) -> Process {
    let mut env = tokio::process::Command::new("env");
    env.args(options).arg(env!("CARGO_BIN_EXE_outbox-relay"));
    let process = Process::spawn_command(env, &toml(database, "relay", None, relays), &["run"], &[]);
    listener(&process).await;
    process
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_closes_and_sigquit_drain_and_further_hangups_hurry_nothing() {
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    let options = ["--default-signal=HUP,QUIT"];
    for signal in [Signal::HUP, Signal::QUIT] {
        let mut process = running_by_env(&options, &database, &stdout_relay("s", "")).await;
        process.signal(signal);
        assert_eq!(process.wait().await, Some(0), "{}", process.log());
        assert!(process.log().contains("outbox-relay has drained"));
    }
    // A request without an answer keeps the turn open.
    gateway.set(Mood::Hang);
    owner.batch_execute("ALTER TABLE bookings ADD phone text DEFAULT '+1'").await.unwrap();
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let mut process = running_by_env(&options, &database, &sms_relay("sms", &gateway, "")).await;
    eventually(PATIENCE, || async { !gateway.asked().is_empty() }).await;
    process.signal(Signal::HUP);
    line(&process, "draining: running turns end, no new one begins").await;
    process.signal(Signal::HUP);
    line(&process, "draining goes on; the second signal that is not SIGHUP exits immediately").await;
    // Should both be seen at once, the lower number is first.
    process.signal(Signal::INT);
    process.signal(Signal::QUIT);
    assert_eq!(process.wait().await, Some(131), "SIGINT was the first that counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn under_nohup_a_terminal_that_closes_ends_nothing() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut process = running_by_env(&["--ignore-signal=HUP"], &database, &stdout_relay("s", "")).await;
    process.signal(Signal::HUP);
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, || async { printed(&process, "s") == ["1"] }).await;
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    let drained = line(&process, "draining: running turns end, no new one begins").await;
    assert_eq!(drained["signal"], Signal::TERM.as_raw());
}
