//! A thousand requests, each asked for many times, by callers and to replicas that are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use outbox_testkit::provider::{Answer, Provider, Request};
use rustix::process::Signal;

use super::{clients, having, listed, relay, welcome};
use crate::support::{PATIENCE, Process, database, eventually, toml};

const USERS: usize = 200;
const CALLERS: usize = 5;
const KILLS: usize = 12;

/// Runs the storm: what the provider has accepted, by key with the bodies, and what is listed as ambiguous or unknown.
async fn storm(more: &str, sink: &str) -> (BTreeMap<String, Vec<String>>, BTreeSet<String>, usize) {
    let database = database().await;
    let (owner, app) = clients(&database).await;
    drop(app);
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    // What comes first with a key may be lost, hang or be refused: some of each, however busy the machine is.
    let decide = |request: &Request| match (request.attempt, request.body.bytes().map(usize::from).sum::<usize>() % 12)
    {
        (1, 0) => Answer::Lose,
        (1, 4) => Answer::Hang,
        (1, 8) => Answer::Refuse(500),
        _ => Answer::Late(Duration::from_millis(20)),
    };
    let provider = Provider::start(decide).await.unwrap();
    let relay = relay(&provider, more, sink)
        .replace("deadline = \"2s\"", "deadline = \"1s\"")
        .replace("\"1s\"\nbody", "\"400ms\"\nbody");
    let text = toml(&database, "relay", None, &relay);
    let start = |n: usize| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")]);
    let mut replicas: Vec<Process> = (0..3).map(start).collect();
    let callers = join_all((0..CALLERS).map(async |_| {
        let app = database.connect("app").await;
        let mut ids = Vec::new();
        for user in 0..USERS {
            ids.push(welcome(&app, &format!("u{user}")).await.0);
            // Spread over the kills: the sleep is the load, not a wait.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ids
    }));
    let kills = async {
        for _ in 0..KILLS {
            // Something is under way, and then a moment more.
            let (before, all) = (provider.count(), async || having(&owner, "pending").await == 0);
            eventually(PATIENCE * 6, async || provider.count() > before || all().await).await;
            tokio::time::sleep(Duration::from_millis(random.u64(0..500))).await;
            let victim = random.usize(0..3);
            replicas[victim].signal(Signal::KILL);
            replicas[victim].wait().await;
            replicas[victim] = start(victim);
        }
    };
    let (asked, ()) = tokio::join!(callers, kills);
    assert!(asked.iter().all(|ids| *ids == asked[0]), "every caller got the same requests");
    eventually(PATIENCE * 9, async || having(&owner, "pending").await + having(&owner, "processing").await == 0).await;
    let completed = usize::try_from(having(&owner, "completed").await).unwrap();
    assert_eq!(completed + usize::try_from(having(&owner, "unknown").await).unwrap(), USERS);
    let mut accepted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in provider.received().into_iter().filter(|one| one.is_accepted()) {
        accepted.entry(one.request.key).or_default().push(one.request.body);
    }
    let listed = listed(&text, &["--ambiguous"]).await;
    let ambiguous = listed.iter().map(|one| format!("mails/{}", one["request_id"].as_str().unwrap())).collect();
    (accepted, ambiguous, completed)
}

// Guarantee: requests.storm
#[tokio::test(flavor = "multi_thread")]
async fn with_a_provider_that_honours_keys_every_request_is_accepted_under_one_key_with_one_body() {
    let (accepted, ambiguous, completed) = storm("on_unknown = \"resend\"", "key_memory = \"1h\"").await;
    assert_eq!((accepted.len(), completed), (USERS, USERS));
    let repeated = accepted.values().filter(|bodies| bodies.len() > 1).count();
    println!("{repeated} of {USERS} came more than once under the same key; {} ambiguous", ambiguous.len());
    assert!(repeated > 0, "no repeat: nothing is proven");
    for (key, bodies) in &accepted {
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{key}: {bodies:?}");
        assert!(bodies.len() == 1 || ambiguous.contains(key), "{key} came {} times and is not listed", bodies.len());
    }
}

// Guarantee: requests.storm
#[tokio::test(flavor = "multi_thread")]
async fn with_a_provider_without_keys_nothing_is_sent_twice_and_every_ambiguity_is_listed() {
    let (accepted, ambiguous, completed) = storm("", "").await;
    for (key, bodies) in &accepted {
        assert_eq!(bodies.len(), 1, "{key} was sent twice");
    }
    let missing = USERS - accepted.len();
    println!("{completed} completed, {} ambiguous, {missing} not at the provider", ambiguous.len());
    assert!(missing > 0 && ambiguous.len() >= USERS - completed && ambiguous.len() > missing, "nothing is proven");
    assert_eq!(completed + ambiguous.len(), USERS, "each ambiguity ends as unknown");
    let sent: BTreeSet<&String> = accepted.keys().collect();
    assert!(sent.len() >= completed, "what is completed is there");
}
