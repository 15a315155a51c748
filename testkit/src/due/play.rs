//! The story: rows become due, replicas are killed and start again, everything settles, and the provider is asked what
//! it has.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::judge::{self, Delivery, Row, Truth};
use super::rows::{self, REMINDERS, WELCOME};
use super::scene::Scene;
use super::summary::Summary;
use crate::delivery::Verdict;
use crate::kills::{self, Kill};
use crate::provider::{Answer, Received};
use crate::view::View;
use crate::{Options, look};
use outbox_relay::position::Timestamp;

/// Half of what a sender waits for its answer: who was answered later may have gone before.
const IN_GOOD_TIME: Duration = Duration::from_millis(600);

/// Claims that somebody still has to do something about.
const OPEN: &str = "SELECT count(*) FROM outbox.claim WHERE state IN ('claimed', 'sending', 'waiting')";

/// What a replica was sending: the claims that it leaves behind.
const HELD: &str = "
    SELECT relay, relay || '/' || array_to_string(key, '/'), (extract(epoch FROM due_at) * 1000000)::bigint FROM outbox.claim
    WHERE claimed_by = $1 AND state IN ('claimed', 'sending')";

/// Everything between the stage's setting and its clearing; the verdict goes to standard output.
pub(super) async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
    let before = [marked(&rows::todos(&scene.owner).await?), marked(&rows::users(&scene.owner).await?)];
    scene.begun().await?;
    view.start();
    view.note("rows become due; the provider fails, hangs and answers late");
    let begun = Instant::now();
    let (mut kills, mut held) = (Vec::new(), HashSet::new());
    for (at, victim) in kills::plan(options) {
        look::until(view, begun + at, async || present(scene).await).await?;
        let kill = kill(scene, &victim, begun, &mut held).await?;
        view.note(&kill.to_string());
        kills.push(kill);
        scene.replicas.restart(&victim)?;
    }
    look::until(view, begun + options.writing, async || present(scene).await).await?;

    let end = crate::now();
    scene.provider.decide(|_| Answer::Accept);
    view.note("the provider is well again");
    look::settle(view, async || settled(scene, end).await, async || present(scene).await).await?;
    for wrong in scene.replicas.drain().await? {
        view.note(&wrong);
    }
    let received = scene.provider.received();
    let (todos, users) = (rows::todos(&scene.owner).await?, rows::users(&scene.owner).await?);
    let unknown = rows::unknown(&scene.owner, WELCOME).await?;
    let truth = |rows, before| Truth { rows, before, end };
    let reminders = truth(&todos, &before[0]).at_least_once(&deliveries(&received, "PUT"), &held);
    let welcome = truth(&users, &before[1]).at_most_once(&deliveries(&received, "POST"), &unknown);
    let verdict = judge::verdict(&reminders, &welcome);
    let summary = Summary::new(options, verdict, &reminders, &welcome, kills, &received);
    println!("\n{}", summary.table());
    if options.json {
        println!("{}", serde_json::to_string(&summary)?);
    }
    Ok(verdict)
}

async fn kill(scene: &mut Scene, victim: &str, begun: Instant, held: &mut HashSet<String>) -> anyhow::Result<Kill> {
    let pid = scene.replicas.kill9(victim).await?;
    let mut kill = Kill::new(pid, victim, begun.elapsed(), &[REMINDERS, WELCOME]);
    for row in scene.owner.query(HELD, &[&victim]).await? {
        kill.count(row.get(0));
        held.insert(rows::key(row.get(1), row.get(2)));
    }
    Ok(kill)
}

fn marked(rows: &[Row]) -> HashSet<String> {
    rows.iter().filter(|row| row.marked).map(|row| row.key.clone()).collect()
}

/// What the provider has accepted of one system. Todos come by PUT, on a path that two of them share: their key tells
/// them apart.
fn deliveries(received: &[Received], method: &str) -> Vec<Delivery> {
    let accepted = received.iter().filter(|one| one.is_accepted() && one.request.method == method);
    let delivery = |one: &Received| Delivery {
        key: one.request.key.clone(),
        at: one.request.at,
        answered: one.took().is_some_and(|took| took <= IN_GOOD_TIME),
    };
    accepted.map(delivery).collect()
}

/// Whether every row that was due at `end` is marked and no claim is open.
async fn settled(scene: &Scene, end: Timestamp) -> anyhow::Result<bool> {
    let rows = [rows::todos(&scene.owner).await?, rows::users(&scene.owner).await?];
    let open: i64 = scene.owner.query_one(OPEN, &[]).await?.get(0);
    Ok(open == 0 && rows.iter().flatten().all(|row| row.marked || row.due > end))
}

async fn present(scene: &Scene) -> anyhow::Result<Vec<String>> {
    let now = crate::now();
    let received = scene.provider.received();
    let mut lines = Vec::new();
    for (relay, method, rows) in
        [(REMINDERS, "PUT", rows::todos(&scene.owner).await?), (WELCOME, "POST", rows::users(&scene.owner).await?)]
    {
        let due = rows.iter().filter(|row| row.due <= now && !row.marked).count();
        let delivered = deliveries(&received, method);
        let distinct = delivered.iter().map(|one| one.key.as_str()).collect::<HashSet<_>>().len();
        let unknown = rows::unknown(&scene.owner, relay).await?.len();
        let repeated = delivered.len() - distinct;
        lines.push(format!(
            "{relay:<9} delivered {distinct:>5}   repeated {repeated:>3}   due, not marked {due:>4}   unknown {unknown:>3}"
        ));
    }
    lines.push(scene.replicas.states());
    Ok(lines)
}
