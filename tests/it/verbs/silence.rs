//! Every command ends within its limits when the server says nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::CommandFactory as _;
use futures_util::StreamExt as _;
use outbox_relay::cli::Cli;
use tokio::net::TcpListener;

use crate::support::proxy::{Cut, Proxy};
use crate::support::relays::toml_of;
use crate::support::{CLOCK, PATIENCE, bookings, database, kafka_relay, outbox_relay};

/// Commands that have no limit, or talk to no server.
const WITHOUT: [&str; 6] = ["completions", "config show", "convert debezium", "health", "man", "schedule preview"];

/// What each command is called with, and its limit.
pub(super) const CALLS: [(&str, &str); 36] = [
    ("verify", "events --timeout 2s"),
    ("run", "--once --timeout 2s"),
    ("migrate up", "--timeout 2s"),
    ("migrate down", "--to 0 --timeout 2s"),
    ("migrate status", "--timeout 2s"),
    ("check", "--timeout 2s"),
    ("status", "--timeout 2s"),
    ("cursor list", "--timeout 2s"),
    ("cursor show", "events --timeout 2s"),
    ("cursor create", "events --now --timeout 2s"),
    ("cursor adopt", "events --yes --timeout 2s"),
    ("cursor reshard", "events --timeout 2s"),
    ("cursor remove", "events --yes --timeout 2s"),
    ("cursor rename", "events other --yes --timeout 2s"),
    ("cursor pause", "events --timeout 2s"),
    ("cursor resume", "events --timeout 2s"),
    ("cursor seek", "events --after-id 1 --yes --timeout 2s"),
    ("cursor skip", "events --id 1 --yes --timeout 2s"),
    ("cursor why", "events --timeout 2s"),
    ("replica list", "--timeout 2s"),
    ("dead-letter list", "--timeout 2s"),
    ("dead-letter show", "1 --timeout 2s"),
    ("dead-letter redrive", "1 --yes --timeout 2s"),
    ("dead-letter discard", "1 --yes --timeout 2s"),
    ("request list", "--timeout 2s"),
    ("request show", "01a1ff20-4202-76c3-af15-1206ca39ede4 --timeout 2s"),
    ("request discard", "01a1ff20-4202-76c3-af15-1206ca39ede4 --yes --timeout 2s"),
    ("request redrive", "01a1ff20-4202-76c3-af15-1206ca39ede4 --yes --timeout 2s"),
    ("request settle", "01a1ff20-4202-76c3-af15-1206ca39ede4 --arrived --yes --timeout 2s"),
    ("schedule list", "--timeout 2s"),
    ("schedule show", "x --timeout 2s"),
    ("schedule pause", "x --timeout 2s"),
    ("schedule resume", "x --timeout 2s"),
    ("schedule run-now", "x --timeout 2s"),
    ("action list", "--timeout 2s"),
    ("prune", "--yes --timeout 2s"),
];

/// Every command of the command line that has no further ones.
fn leaves(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
    for sub in command.get_subcommands() {
        let path = format!("{path} {}", sub.get_name()).trim().to_owned();
        if sub.has_subcommands() {
            leaves(sub, &path, found);
        } else {
            found.insert(path);
        }
    }
}

// Guarantee: observe.silent-server
#[test]
fn every_command_is_asked_of_a_silent_server() {
    let mut found = BTreeSet::new();
    leaves(&Cli::command(), "", &mut found);
    let called = CALLS.iter().map(|(path, _)| *path).chain(WITHOUT).map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(found, called);
}

/// Runs every command; gives what each ended with, after how long, and its log.
async fn all(url: &str) -> Vec<(&'static str, Option<i32>, Duration, String)> {
    let toml = toml_of(url, Some("127.0.0.1:1"), &kafka_relay("events", "t", ""));
    let runs = CALLS.iter().map(|(path, more)| {
        let toml = toml.clone();
        async move {
            let args: Vec<&str> = path.split(' ').chain(more.split(' ')).chain(["--connect-timeout", "1s"]).collect();
            let begun = Instant::now();
            let (code, _, log) = outbox_relay(&toml, &args).await;
            (*path, code, begun.elapsed(), log)
        }
    });
    futures_util::stream::iter(runs).buffer_unordered(6).collect().await
}

fn judge(ends: &[(&str, Option<i32>, Duration, String)]) {
    let mut wrong = Vec::new();
    for (path, code, took, log) in ends {
        // A server that does not answer is a finding of `check`, not a failure.
        let finding = *path == "check";
        let named = ["(--connect-timeout)", "(--timeout)"].iter().any(|flag| log.contains(flag));
        // What to do, and where.
        let told = log.contains("127.0.0.1:") && (log.contains("  -> ") || *path == "run");
        if *code != Some(if finding { 3 } else { 1 }) || *took >= PATIENCE || !(finding || named && told) {
            wrong.push(format!("{path}: {code:?} after {took:?}: {log}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// Guarantee: observe.silent-server
#[tokio::test(flavor = "multi_thread")]
async fn silent_server_ends_every_command_within_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            kept.push(connection);
        }
    });
    judge(&all(&format!("postgresql://relay@127.0.0.1:{port}/app")).await);
}

// Guarantee: observe.silent-server
#[tokio::test(flavor = "multi_thread")]
async fn server_silent_after_login_ends_every_command() {
    let database = database().await;
    bookings(&database, CLOCK).await;
    let url = database.url("postgres");
    let (before, after) = url.rsplit_once(':').unwrap();
    let (port, name) = after.split_once('/').unwrap();
    // The first statement about the product's own schema is the last that the server hears.
    let proxy = Proxy::start_at(port.parse().unwrap(), Cut::Silent, b"outbox.").await;
    judge(&all(&format!("{before}:{}/{name}", proxy.port)).await);
    assert!(proxy.cuts() >= CALLS.len() - 1, "all but those that begin with the catalog: {}", proxy.cuts());
}
