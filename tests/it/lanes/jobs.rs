//! Lanes of due rows and of requests: those of one lane are sent in order, one at a time, by whichever replica, and others do not wait for them.

mod failing;
mod keys;
mod once;
mod plans;
mod storm;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio_postgres::Client;

use super::checker::{Arrival, Outcome, arrived, overtakings};
use crate::support::receiver::{Receiver, Request};
use crate::support::relays::parse;
use crate::support::{Database, PATIENCE, Replica, database, eventually, toml};

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Due,
    Requests,
}

const BOTH: [Source; 2] = [Source::Due, Source::Requests];

/// Jobs have numbers in the order in which they are to be sent; a message is its lane and its number.
struct Stage {
    source: Source,
    database: Database,
    owner: Client,
    receiver: Receiver,
}

impl Stage {
    async fn new(source: Source) -> Self {
        let database = database().await;
        let owner = database.connect("postgres").await;
        owner
            .batch_execute(
                "CREATE TABLE jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lane text, \
                 due timestamptz NOT NULL DEFAULT clock_timestamp(), sent boolean NOT NULL DEFAULT false); \
                 CREATE INDEX ON jobs (due, id) WHERE NOT sent; GRANT SELECT, UPDATE (sent) ON jobs TO relay; \
                 INSERT INTO outbox.template (name, relay) VALUES ('t', 'h'); CREATE SEQUENCE numbers",
            )
            .await
            .unwrap();
        Self { source, database, owner, receiver: Receiver::start() }
    }

    /// So many jobs, of so many lanes in turn.
    async fn add(&self, jobs: i64, lanes: i64) {
        self.ask("'k' || n % $2", &[&jobs, &lanes]).await;
    }

    /// A job of this lane; its number.
    async fn one(&self, lane: &str) -> i64 {
        self.ask("$2::text", &[&1_i64, &lane]).await;
        let last = match self.source {
            Source::Due => "SELECT max(id) FROM jobs",
            Source::Requests => "SELECT last_value FROM numbers",
        };
        self.owner.query_one(last, &[]).await.unwrap().get(0)
    }

    async fn ask(&self, lane: &str, parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)]) {
        let sql = match self.source {
            Source::Due => format!("INSERT INTO jobs (lane) SELECT {lane} FROM generate_series(1, $1::bigint) AS n"),
            Source::Requests => format!(
                "SELECT outbox.enqueue('u', 't', jsonb_build_object('lane', {lane}, 'id', nextval('numbers'))) \
                 FROM generate_series(1, $1::bigint) AS n"
            ),
        };
        self.owner.execute(&sql, parameters).await.unwrap();
    }

    /// How many jobs are neither sent nor given up.
    async fn left(&self) -> i64 {
        let sql = match self.source {
            Source::Due => "SELECT count(*) FROM jobs WHERE NOT sent",
            Source::Requests => "SELECT count(*) FROM outbox.request WHERE status IN ('pending', 'processing')",
        };
        self.owner.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn all_sent(&self) {
        eventually(PATIENCE * 4, async || self.left().await == 0).await;
    }

    /// With lanes; `more` is added below `[[relay]]`, `turn` below `[relay.turn]`, `sink` below its sink.
    fn text(&self, in_flight: usize, [more, turn, sink]: [&str; 3]) -> String {
        let turn = format!("in_flight = {in_flight}\nlane = \"lane\"\n{turn}");
        self.of("", [more, &turn, sink])
    }

    fn of(&self, in_source: &str, [more, turn, sink]: [&str; 3]) -> String {
        let (source, memory) = match self.source {
            Source::Due => {
                ("[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"", "")
            }
            Source::Requests => {
                ("on_unknown = \"resend\"\n[relay.source.requests]\ntemplates = [\"t\"]", "key_memory = \"1h\"\n")
            }
        };
        let relay = format!(
            "[[relay]]\nname = \"h\"\n{more}\n{source}\n{in_source}\n[relay.turn]\n{turn}\n[relay.sink.http]\n\
             url = \"{}/rows\"\nbody = \"{{{{ lane }}}} {{{{ id }}}}\"\n{memory}{sink}\n",
            self.receiver.url()
        );
        toml(&self.database, "relay", None, &relay)
    }

    /// What the receiver has accepted, by number.
    fn accepted(&self) -> Vec<i64> {
        self.receiver.requests().iter().filter(|request| request.status == 200).map(number).collect()
    }
}

/// The lane of a request.
fn lane(request: &Request) -> &str {
    request.body.split(' ').next().unwrap()
}

fn number(request: &Request) -> i64 {
    request.body.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Answers with this status to this lane, and accepts everything else, each after this long.
fn refuse(whom: &'static str, status: u16, pause: Duration) -> impl Fn(&Request) -> (u16, Duration) + Send + 'static {
    move |request| (if lane(request) == whom { status } else { 200 }, pause)
}

/// Two of one lane at a time, by an answer that takes this long.
fn two_at_a_time(requests: &[Request], answer: Duration) -> Vec<String> {
    let mut begun: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for request in requests {
        begun.entry(lane(request)).or_default().push(request.at);
    }
    let close = |times: &[std::time::SystemTime]| times[1].duration_since(times[0]).unwrap_or_default() < answer;
    begun.into_iter().filter(|(_, times)| times.windows(2).any(close)).map(|(lane, _)| lane.to_owned()).collect()
}

fn arrivals(receiver: &Receiver) -> Vec<Arrival> {
    let of = |request: &Request| Arrival {
        lane: lane(request).to_owned(),
        number: number(request),
        outcome: if request.status == 200 { Outcome::Accepted } else { Outcome::Refused },
        replayed: request.replayed,
    };
    receiver.requests().iter().map(of).collect()
}

fn overtaken(receiver: &Receiver) -> Vec<String> {
    let arrivals = arrivals(receiver);
    overtakings(&arrived(&arrivals), &arrivals)
}

fn in_order(receiver: &Receiver) {
    let found = overtaken(receiver);
    assert!(found.is_empty(), "{} overtakings, the first: {}", found.len(), found[0]);
}

fn each_once(stage: &Stage, jobs: usize) {
    let accepted = stage.accepted();
    let distinct: BTreeSet<&i64> = accepted.iter().collect();
    assert_eq!((accepted.len(), distinct.len()), (jobs, jobs), "accepted, distinct");
}

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn lanes_of_jobs_run_side_by_side_and_each_in_order() {
    const ANSWER: Duration = Duration::from_millis(300);
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(|_| (200, ANSWER));
        stage.add(300, 30).await;
        let text = stage.text(10, ["", "", ""]);
        let replicas: Vec<Replica> =
            ["r1", "r2", "r3"].iter().map(|name| Replica::start(&parse(&text), name)).collect();
        stage.all_sent().await;
        for replica in replicas {
            replica.stop().await;
        }
        each_once(&stage, 300);
        in_order(&stage.receiver);
        let requests = stage.receiver.requests();
        assert_eq!(two_at_a_time(&requests, ANSWER), [""; 0], "{source:?}");
        let most = requests.iter().map(|request| request.at_once).max().unwrap();
        assert!((10..=30).contains(&most), "{source:?}: {most} at a time");
        // One at a time they would take 90 s, side by side 3 s and what the machine adds.
        let took = requests[299].at.duration_since(requests[0].at).unwrap();
        println!("{source:?}: 300 in {took:?}, {most} at a time");
        assert!(took < Duration::from_secs(45), "{source:?}: {took:?}");
    }
}

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn jobs_without_lane_share_one() {
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(|_| (200, Duration::from_millis(5)));
        stage.ask("NULL::text || $2", &[&20_i64, &"x"]).await;
        let text = stage.text(10, ["", "", ""]).replace("{{ lane }} {{ id }}", "none {{ id }}");
        let replica = Replica::start(&parse(&text), "r1");
        stage.all_sent().await;
        replica.stop().await;
        assert!(stage.receiver.requests().iter().all(|request| request.at_once == 1), "{source:?}");
        each_once(&stage, 20);
        in_order(&stage.receiver);
    }
}

/// What convicts a relay that keeps no order: the same jobs, each on its own.
// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn without_lanes_overtaken_jobs_are_found() {
    const ANSWER: Duration = Duration::from_millis(20);
    for source in BOTH {
        let stage = Stage::new(source).await;
        stage.receiver.answer(|request| (if number(request) == 1 { 503 } else { 200 }, ANSWER));
        stage.add(40, 4).await;
        let replica = Replica::start(&parse(&stage.of("in_flight = 10", ["", "", ""])), "r1");
        eventually(PATIENCE, async || stage.left().await == 1).await;
        replica.stop().await;
        assert!(!overtaken(&stage.receiver).is_empty(), "{source:?}: 1 was overtaken");
        assert!(!two_at_a_time(&stage.receiver.requests(), ANSWER).is_empty(), "{source:?}: two at a time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lane_of_a_due_sms_is_its_number() {
    let stage = Stage::new(Source::Due).await;
    stage.receiver.answer(|_| (200, Duration::from_millis(50)));
    stage.ask("'+1555000000' || n % $2", &[&25_i64, &5_i64]).await;
    let text = stage.of("", ["", "in_flight = 20", ""]);
    let sms = format!(
        "[relay.sink.sms]\nprovider = \"twilio\"\nbase_url = \"{}\"\naccount_sid = \"AC1\"\nauth_token = \"hunter2\"\n\
         from = \"+15550000000\"\nto = \"{{{{ lane }}}}\"\ntext = \"{{{{ id }}}}\"\n",
        stage.receiver.url()
    );
    let text = format!("{}{sms}", text.split("[relay.sink.http]").next().unwrap());
    let replica = Replica::start(&parse(&text), "r1");
    stage.all_sent().await;
    replica.stop().await;
    let ids: Vec<i64> = stage.receiver.accepted("h").iter().map(|id| id.parse().unwrap()).collect();
    assert_eq!(ids.len(), 25);
    for number in 0..5 {
        assert!(ids.iter().filter(|id| **id % 5 == number).is_sorted(), "{ids:?}");
    }
    let most = stage.receiver.requests().iter().map(|request| request.at_once).max().unwrap();
    assert!((2..=5).contains(&most), "one for each number: {most}");
}

/// Whatever a relay does: the database refuses a second claim of a lane.
// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn database_refuses_a_second_claim_of_a_lane() {
    let stage = Stage::new(Source::Due).await;
    let claim = async |key: &str, state: &str, marked: bool, lane: Option<i64>| {
        let sql = "INSERT INTO outbox.claim (relay, key, due_at, state, marked, token, claimed_by, expires_at, not_before, lane) \
                   VALUES ('h', ARRAY[$1], now(), $2, $3, 't', 'r', now() - interval '1 hour', now(), $4)";
        stage.owner.execute(sql, &[&key, &state, &marked, &lane]).await.is_ok()
    };
    assert!(claim("1", "claimed", false, Some(7)).await);
    assert!(!claim("2", "sending", true, Some(7)).await && !claim("2", "waiting", true, Some(7)).await);
    assert!(claim("3", "waiting", false, Some(7)).await && claim("4", "unknown", true, Some(7)).await);
    assert!(claim("5", "claimed", false, Some(8)).await);
    assert!(claim("6", "claimed", false, None).await && claim("7", "claimed", false, None).await);
}
