//! Many callers of one key, and kills at any instant: never a second request.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::database;
use crate::support::front::{Front, answer, welcome};

// Guarantee: intake.concurrent
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_concurrent_calls_of_one_key_get_one_request() {
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "connections = 10").await;
    for round in 0..5 {
        let call = json!({ "dedupe_key": format!("k{round}"), "user_id": "ada", "template": "welcome" });
        let calls = (0..100).map(|_| front.post(&call));
        let answers = futures_util::future::join_all(calls).await;
        assert!(answers.iter().all(|answer| answer.status == 202), "{answers:?}");
        let ids: BTreeSet<_> = answers.iter().map(|answer| answer.body["request_id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 1);
    }
    assert_eq!(owner.query("SELECT FROM outbox.request", &[]).await.unwrap().len(), 5);
}

// Guarantee: intake.kills
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_and_asked_again_it_makes_each_request_once() {
    let database = database().await;
    let owner = welcome(&database).await;
    let mut front = Front::start(&database, "").await;
    let (mut answered, mut lost) = (0, 0);
    for round in 0..12_u64 {
        // Half of the clients bring a key, half of them an id.
        let calls: Vec<_> = (0..20)
            .map(|number| match number % 2 {
                0 => json!({ "dedupe_key": format!("{round}:{number}"), "user_id": "ada", "template": "welcome" }),
                _ => {
                    let id = format!("01989b3c-0000-7000-8000-{round:06}{number:06}");
                    json!({ "request_id": id, "user_id": "ada", "template": "welcome" })
                }
            })
            .collect();
        let asking: Vec<_> = calls.iter().map(|call| tokio::spawn(answer(front.call(call)))).collect();
        // Another instant each round, from before the first statement to after the last answer.
        tokio::time::sleep(Duration::from_millis(round * 4)).await;
        front.process.signal(Signal::KILL);
        let mut first = Vec::new();
        for asked in asking {
            first.push(asked.await.unwrap());
        }
        front.process.wait().await;
        front.restart().await;
        for (call, first) in calls.iter().zip(first) {
            let again = front.post(call).await;
            assert_eq!(again.status, 202, "{again:?}");
            match first {
                Some(first) if first.status == 202 => {
                    assert_eq!(first.body["request_id"], again.body["request_id"], "what was answered is kept");
                    answered += 1;
                }
                _ => lost += 1,
            }
        }
    }
    println!("{answered} calls were answered before the kill, {lost} were not");
    let row = owner
        .query_one("SELECT count(*), count(DISTINCT COALESCE(dedupe_key, request_id::text)) FROM outbox.request", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (240, 240));
    assert!(lost > 0, "some kills came in time");
}
