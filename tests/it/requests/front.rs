//! A thousand calls over HTTP, most of them duplicates, while the replicas that take them, send and record are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use outbox_testkit::provider::{Answer, Provider, Request};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;

use super::{clients, having, listed, relay};
use crate::support::front::{TOKEN, address, answer, with_json};
use crate::support::outside::client;
use crate::support::{PATIENCE, Process, database, eventually, toml};

const KEYS: usize = 100;
const CALLS: usize = 1_000;
const KILLS: usize = 10;

/// Asks until somebody answers, by whichever replica is there; the request.
async fn ask(urls: &Mutex<Vec<String>>, key: usize) -> String {
    let body = json!({ "dedupe_key": format!("k{key}"), "user_id": format!("u{key}"), "template": "welcome" });
    loop {
        let url = fastrand::choice(&*urls.lock().unwrap()).unwrap().clone();
        let call = client().request(Method::POST, format!("{url}/v1/requests")).bearer_auth(TOKEN);
        match answer(with_json(call, &body)).await {
            Some(answer) if matches!(answer.status, 200 | 202) => {
                return answer.body["request_id"].as_str().unwrap().to_owned();
            }
            Some(answer) => assert!(answer.status >= 500, "{answer:?}"),
            // Nobody is there yet: the next one may be, and a replica takes a moment to start.
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// What the provider has accepted, by key; what is listed as ambiguous; how many are completed.
async fn storm(more: &str, sink: &str) -> (BTreeMap<String, usize>, BTreeSet<String>, usize) {
    let database = database().await;
    let (owner, _app) = clients(&database).await;
    let mut random = fastrand::Rng::new();
    // What comes first with a key may hang or be refused: some of each, however busy the machine is.
    let decide = |request: &Request| match (request.attempt, request.body.bytes().map(usize::from).sum::<usize>() % 8) {
        (1, 0 | 3) => Answer::Hang,
        (1, 6) => Answer::Refuse(500),
        _ => Answer::Late(Duration::from_millis(20)),
    };
    let provider = Provider::start(decide).await.unwrap();
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(tokens.path(), TOKEN).unwrap();
    let intake = format!("[intake]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n", tokens.path().display());
    let text = toml(&database, "relay", None, &(intake + &relay(&provider, more, sink)));
    let start = |n: usize| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")]);
    let mut replicas: Vec<Process> = (0..3).map(start).collect();
    let urls = Mutex::new(Vec::new());
    for replica in &replicas {
        let url = address(replica).await;
        urls.lock().unwrap().push(url);
    }
    let calls = join_all((0..CALLS).map(async |n| {
        // Spread over the kills: the sleep is the load, not a wait.
        tokio::time::sleep(Duration::from_millis(u64::try_from(n).unwrap() * 5)).await;
        let key = n * KEYS / CALLS;
        (key, ask(&urls, key).await)
    }));
    let kills = async {
        for _ in 0..KILLS {
            let victim = random.usize(0..3);
            tokio::time::sleep(Duration::from_millis(random.u64(100..600))).await;
            replicas[victim].signal(Signal::KILL);
            replicas[victim].wait().await;
            replicas[victim] = start(victim);
            let url = address(&replicas[victim]).await;
            urls.lock().unwrap()[victim] = url;
        }
    };
    let (asked, ()) = tokio::join!(calls, kills);
    let requests: BTreeSet<(usize, String)> = asked.into_iter().collect();
    assert_eq!(requests.len(), KEYS, "one request for each key, whoever was asked");
    eventually(PATIENCE * 9, async || having(&owner, "pending").await + having(&owner, "processing").await == 0).await;
    let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
    for one in provider.received().into_iter().filter(|one| one.is_accepted()) {
        *accepted.entry(one.request.key).or_default() += 1;
    }
    let listed = listed(&text, &["--ambiguous"]).await;
    let ambiguous = listed.iter().map(|one| format!("mails/{}", one["request_id"].as_str().unwrap())).collect();
    (accepted, ambiguous, usize::try_from(having(&owner, "completed").await).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_with_kills_and_a_provider_that_honours_keys_are_one_send_for_each_key() {
    let (accepted, ambiguous, completed) = storm("on_unknown = \"resend\"", "key_memory = \"1h\"").await;
    assert_eq!((accepted.len(), completed), (KEYS, KEYS));
    let repeated: Vec<_> = accepted.iter().filter(|(_, times)| **times > 1).collect();
    println!("{} of {KEYS} came again under their key; {} ambiguous", repeated.len(), ambiguous.len());
    assert!(!repeated.is_empty(), "no repeat: nothing is proven");
    assert!(repeated.iter().all(|(key, _)| ambiguous.contains(*key)), "{repeated:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_with_kills_and_a_provider_without_keys_send_nothing_twice_and_list_every_doubt() {
    let (accepted, ambiguous, completed) = storm("", "").await;
    assert!(accepted.values().all(|times| *times == 1), "{accepted:?}");
    println!("{completed} of {KEYS} completed, {} ambiguous, {} at the provider", ambiguous.len(), accepted.len());
    assert_eq!(completed + ambiguous.len(), KEYS, "each doubt ends as unknown");
    assert!(!ambiguous.is_empty() && accepted.len() >= completed);
}
