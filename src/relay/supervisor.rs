//! Runs all relays of a process, grouped by source.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::pace::Backoff;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::intervals::RECHECK;
use crate::relay::engine::registry;
use crate::relay::engine::wakeups;
use crate::relay::setup::prepare;
use crate::relay::stream::idle_poller;
use crate::relay::stream::table_group::Group;
use crate::source;

/// Runs the relays until the engine stops and their running turns have ended. A group that panics is started again.
pub async fn run(engine: Arc<Engine>, relays: Vec<Config>) {
    let mut groups: HashMap<_, Vec<Config>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let row = Arc::clone(&engine);
    let upkeep = move || {
        let engine = Arc::clone(&row);
        async move {
            registry::run(&engine.registry, &engine.probe, &engine.replica, engine.call_deadline, &engine.stop).await;
        }
    };
    tasks.spawn(again(Arc::clone(&engine), "outbox.replica".to_owned(), upkeep));
    if relays.iter().any(|relay| relay.poll.notify) {
        let engine = Arc::clone(&engine);
        tasks.spawn(async move { wakeups::listen(&engine.hints, &engine.stop).await });
    }
    for relay in relays {
        if let source::Config::Pending(due) = relay.source.clone() {
            let table = relay.source.table().to_string();
            let pending_engine = Arc::clone(&engine);
            tasks.spawn(again(Arc::clone(&engine), table, move || {
                let run = crate::relay::queue::due_rows::run(Arc::clone(&pending_engine), relay.clone(), due.clone());
                admitted(Arc::clone(&pending_engine), relay.clone(), run)
            }));
        } else if let source::Config::Requests(requests) = relay.source.clone() {
            let (table, requests_engine) = (relay.source.table().to_string(), Arc::clone(&engine));
            tasks.spawn(again(Arc::clone(&engine), table, move || {
                let run =
                    crate::relay::queue::requests::run(Arc::clone(&requests_engine), relay.clone(), requests.clone());
                admitted(Arc::clone(&requests_engine), relay.clone(), run)
            }));
        } else if let source::Config::Schedule(schedules) = relay.source.clone() {
            let (table, runner) = (relay.source.table().to_string(), Arc::clone(&engine));
            tasks.spawn(again(Arc::clone(&engine), table, move || {
                let run = crate::relay::queue::actions::run(Arc::clone(&runner), relay.clone(), schedules.clone());
                admitted(Arc::clone(&runner), relay.clone(), run)
            }));
        } else {
            groups.entry(relay.source.clone()).or_default().push(relay);
        }
    }
    let sentry = Arc::new(idle_poller::IdlePoller::default());
    if !groups.is_empty() {
        let (polling, sentry) = (Arc::clone(&engine), Arc::clone(&sentry));
        let run = move || idle_poller::run(Arc::clone(&polling), Arc::clone(&sentry));
        tasks.spawn(again(Arc::clone(&engine), "all that rest".to_owned(), run));
    }
    for (source, relays) in groups {
        let (group, sentry) = (Arc::clone(&engine), Arc::clone(&sentry));
        let table = source.table().to_string();
        let run = move || Group::new(Arc::clone(&group), Arc::clone(&sentry), source.clone(), relays.clone()).run();
        tasks.spawn(again(Arc::clone(&engine), table, run));
    }
    while tasks.join_next().await.is_some() {}
    registry::stop(&engine.registry, &engine.probe).await;
}

/// Runs a relay once this process may run it.
async fn admitted(engine: Arc<Engine>, relay: Config, run: impl Future<Output = ()>) {
    let mut known = None;
    loop {
        engine.heartbeat.beat();
        tokio::select! {
            admitted = engine.registry.admitted(&relay, &engine.stop) => match admitted {
                Ok(()) => break,
                Err(unready) => {
                    prepare::not_ready(&engine, &relay, &unready, None, known.as_ref() != Some(&unready)).await;
                    known = Some(unready);
                    tokio::select! {
                        () = tokio::time::sleep(RECHECK) => {}
                        () = engine.stop.cancelled() => {}
                    }
                }
            },
            () = tokio::time::sleep(RECHECK) => {}
        }
    }
    run.await;
}

/// Runs it, and again when it has given way to another configuration or panics, until the engine stops.
async fn again<F>(engine: Arc<Engine>, table: String, run: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut backoff = Backoff::new();
    while !engine.stop.is_cancelled() {
        if let Err(error) = tokio::spawn(run()).await {
            let pause = backoff.failed(fastrand::f64());
            tracing::error!(table, %error, ?pause, "relay group panicked: it is started again");
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = engine.stop.cancelled() => {}
            }
        }
    }
}
