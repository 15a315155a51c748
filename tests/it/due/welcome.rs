//! System B: a welcome message six hours after `created`, at most once, beside the old job that sends the same messages
//! by its own `UPDATE … RETURNING`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outbox_testkit::provider::{Answer, Provider, Received, Request};
use rustix::process::Signal;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::{seed, times};
use crate::support::outside::{client, json};
use crate::support::{Database, PATIENCE, Process, database, eventually, outbox_relay, toml};

/// The table as it was found: 300 users. 240 become due from five seconds ago until
/// twenty seconds from now, 60 hours later.
const USERS: &str = "
    CREATE TABLE public.users (id bigint PRIMARY KEY, email text NOT NULL UNIQUE,
        created timestamp NOT NULL, sent_welcome boolean NOT NULL DEFAULT false);
    CREATE INDEX ON public.users (created, id) WHERE NOT sent_welcome;
    GRANT SELECT, UPDATE (sent_welcome) ON public.users TO relay;
    GRANT SELECT, UPDATE ON public.users TO app;
    INSERT INTO public.users SELECT i, 'user' || i || '@example.org', (now() AT TIME ZONE 'UTC') - interval '6 hours'
        + CASE WHEN i <= 240 THEN (i % 60) * interval '420 ms' - interval '5 s' ELSE i * interval '1 min' END
    FROM generate_series(1, 300) AS i";

/// What the old job runs: its own conditional flip of the flag.
const OLD_JOB: &str = "
    UPDATE public.users SET sent_welcome = true
    WHERE NOT sent_welcome AND id IN (
        SELECT id FROM public.users
        WHERE NOT sent_welcome AND created <= (now() AT TIME ZONE 'UTC') - interval '6 hours' ORDER BY created LIMIT 2)
    RETURNING email";

const KILLS: usize = 20;

fn config(database: &Database, provider: &Provider) -> String {
    let relay = format!(
        "[[relay]]\nname = \"welcome\"\nguarantee = \"at_most_once\"\n[relay.source.pending]\ntable = \"public.users\"\n\
         key = [\"id\"]\ndue = \"created\"\ndue_after = \"6h\"\ntime_zone = \"UTC\"\nsent = \"sent_welcome\"\n\
         limit = 100\nin_flight = 3\n[relay.turn]\ndeadline = \"2s\"\n\
         [relay.sink.http]\nmethod = \"POST\"\nurl = \"{}/welcome\"\n",
        provider.url()
    );
    toml(database, "relay", None, &relay)
}

/// The old job, every 100 ms, until it is told to stop; answers how many it has sent.
fn old_job(app: Client, url: String, stop: CancellationToken) -> JoinHandle<usize> {
    tokio::spawn(async move {
        let mut sent = 0;
        let mut pace = tokio::time::interval(Duration::from_millis(100));
        while !stop.is_cancelled() {
            for row in app.query(OLD_JOB, &[]).await.unwrap() {
                let body = serde_json::json!({"email": row.get::<_, &str>(0)}).to_string();
                let answer = client().post(format!("{url}/welcome")).body(body).send().await.unwrap();
                assert!(answer.status().is_success());
                sent += 1;
            }
            pace.tick().await;
        }
        sent
    })
}

fn address(received: &Received) -> String {
    let body: serde_json::Value = serde_json::from_str(&received.request.body).unwrap();
    body["email"].as_str().expect("an address").to_owned()
}

/// When each address is due, in microseconds.
async fn due(owner: &Client) -> BTreeMap<String, i64> {
    let sql = "SELECT email, (extract(epoch FROM created + interval '6 hours') * 1000000)::bigint FROM public.users";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The addresses whose outcome is unknown, as the operator's verb lists them.
async fn unknown(toml: &str, owner: &Client) -> BTreeSet<String> {
    let (code, out, log) = outbox_relay(toml, &["request", "list", "--unknown", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let listed = json(&out)["requests"].as_array().unwrap().clone();
    assert!(listed.iter().all(|one| one["relay"] == "welcome" && one["status"] == "unknown"), "{out}");
    let ids: Vec<i64> = listed.iter().map(|one| one["key"][0].as_str().unwrap().parse().unwrap()).collect();
    let sql = "SELECT email FROM public.users WHERE id = ANY($1)";
    owner.query(sql, &[&ids]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

// Guarantee: pending.welcome
#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_beside_the_old_job_send_no_address_twice_and_list_what_may_be_missing() {
    let (database, seed) = (database().await, seed());
    let owner = database.connect("postgres").await;
    owner.batch_execute(USERS).await.unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let slow = std::sync::Mutex::new(random.fork());
    // One in ten of the relay's requests is lost on its way: its sender cannot know. The old job's have no key.
    let decide = move |request: &Request| match request.row().ends_with('7') {
        true => Answer::Lose,
        false => Answer::Late(Duration::from_millis(slow.lock().unwrap().u64(50..300))),
    };
    let provider = Provider::start(decide).await.unwrap();
    let toml = config(&database, &provider);
    let start = |n: usize| Process::spawn(&toml, &["run", "--replica-id", &format!("r{n}")]);
    let mut replicas: Vec<Process> = (0..3).map(start).collect();
    let stop = CancellationToken::new();
    let old = old_job(database.connect("app").await, provider.url(), stop.clone());
    eventually(PATIENCE * 3, async || provider.received().iter().any(|one| !one.request.key.is_empty())).await;

    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(random.u64(200..1_500))).await;
        let victim = random.usize(0..3);
        replicas[victim].signal(Signal::KILL);
        assert_eq!(replicas[victim].wait().await, None, "{}", replicas[victim].log());
        replicas[victim] = start(victim);
    }
    let settled = "SELECT (SELECT count(*) FROM public.users WHERE NOT sent_welcome AND id <= 240) \
                   + (SELECT count(*) FROM outbox.claim WHERE state IN ('claimed', 'sending', 'waiting'))";
    eventually(PATIENCE * 6, async || owner.query_one(settled, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    for replica in &mut replicas {
        // The one that came last may not catch signals yet.
        eventually(PATIENCE, async || replica.log().contains("outbox-relay starts")).await;
        replica.signal(Signal::TERM);
        assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
    }
    stop.cancel();
    let by_the_old_job = old.await.unwrap();

    let (received, due, unknown) = (provider.received(), due(&owner).await, unknown(&toml, &owner).await);
    let received: Vec<Received> = received.into_iter().filter(Received::is_accepted).collect();
    let addresses: Vec<String> = received.iter().map(address).collect();
    let twice: Vec<_> =
        times(addresses.iter().map(String::as_str)).into_iter().filter(|(_, count)| *count > 1).collect();
    let early: Vec<_> = received.iter().filter(|one| one.request.at.unix_micros() < due[&address(one)]).collect();
    let expected: BTreeSet<String> = (1..=240).map(|id| format!("user{id}@example.org")).collect();
    let there: BTreeSet<String> = addresses.iter().cloned().collect();
    let missing: BTreeSet<String> = expected.difference(&there).cloned().collect();
    println!(
        "{KILLS} kills: {} addresses, {by_the_old_job} of them by the old job; {} unknown, of which {} are missing",
        there.len(),
        unknown.len(),
        missing.len()
    );
    assert!(twice.is_empty(), "two messages each: {twice:?}");
    assert!(early.is_empty(), "younger than six hours: {early:?}");
    assert!(there.is_subset(&expected), "not due: {:?}", there.difference(&expected).collect::<Vec<_>>());
    assert!(missing.is_subset(&unknown), "neither sent nor listed: {:?}", missing.difference(&unknown));
    assert!(by_the_old_job > 0 && by_the_old_job < there.len(), "both were at work");
    assert!(!missing.is_empty() && unknown.len() > missing.len(), "no loss, or no kill in a send: nothing is proven");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_kill_the_old_job_and_three_replicas_send_to_every_address_once() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(USERS).await.unwrap();
    // All of the 240 are due now.
    owner.batch_execute("UPDATE public.users SET created = created - interval '1 min' WHERE id <= 240").await.unwrap();
    let provider = Provider::start(|_| Answer::Late(Duration::from_millis(20))).await.unwrap();
    let toml = config(&database, &provider);
    let stop = CancellationToken::new();
    let old = old_job(database.connect("app").await, provider.url(), stop.clone());
    let start = |n: usize| Process::spawn(&toml, &["run", "--once", "--replica-id", &format!("r{n}")]);
    let mut replicas: Vec<Process> = (0..3).map(start).collect();
    for replica in &mut replicas {
        assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
    }
    stop.cancel();
    let by_the_old_job = old.await.unwrap();
    let addresses: Vec<String> = provider.received().iter().map(address).collect();
    let distinct: BTreeSet<&String> = addresses.iter().collect();
    println!("{by_the_old_job} of {} by the old job", addresses.len());
    assert_eq!((addresses.len(), distinct.len()), (240, 240));
    assert!(unknown(&toml, &owner).await.is_empty());
}
