//! The story: callers ask, providers fail, replicas are killed and start again, everything settles, everybody is asked.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::callers::{self, Callers};
use super::judge::{self, Message, Told};
use super::scene::Scene;
use super::summary::Summary;
use super::{MAILS, TEXTS, ledger};
use crate::delivery::Verdict;
use crate::kills::{self, Kill};
use crate::provider::{Answer, Provider, Received};
use crate::view::View;
use crate::{Options, look, postgres};

/// Everything between the stage's setting and its clearing; the verdict goes to standard output.
pub(super) async fn play(options: &Options, scene: &mut Scene, view: &mut View) -> anyhow::Result<Verdict> {
    scene.begun().await?;
    view.start();
    let callers = Callers::start(&scene.app_url(), options).await?;
    view.note(&format!(
        "{} callers ask for the same; the providers fail, hang, lose and answer late",
        callers::CALLERS
    ));
    let begun = Instant::now();
    let mut kills = Vec::new();
    for (at, victim) in kills::plan(options) {
        look::until(view, begun + at, async || present(scene, callers.calls()).await).await?;
        let pid = scene.replicas.kill9(&victim).await?;
        let mut kill = Kill::new(pid, &victim, begun.elapsed(), &[MAILS.0, TEXTS.0]);
        ledger::count_held(&scene.owner, &victim, &mut kill).await?;
        view.note(&kill.to_string());
        kills.push(kill);
        scene.reword()?;
        scene.replicas.restart(&victim)?;
    }
    look::until(view, begun + options.writing, async || present(scene, callers.calls()).await).await?;

    let (calls, told) = callers.end().await?;
    scene.mails.decide(|_| Answer::Accept);
    scene.texts.decide(|_| Answer::Accept);
    view.note("the callers have ended, and the providers are well again");
    look::settle(view, async || settled(scene).await, async || present(scene, calls).await).await?;
    for wrong in scene.replicas.drain().await? {
        view.note(&wrong);
    }
    let later = ask_again(scene, &told).await?;
    let ledger = ledger::read(&scene.owner).await?;
    let (mails, texts) = (messages(&scene.mails, MAILS.0), messages(&scene.texts, TEXTS.0));
    let both: Vec<&Message> = mails.iter().chain(&texts).collect();
    let asked = ledger.asked(calls, &told, &later, &both);
    let (mails, texts) = (ledger.sent(MAILS.0, &mails), ledger.sent(TEXTS.0, &texts));
    let verdict = judge::verdict(&asked, &mails, &texts);
    let received = [scene.mails.received(), scene.texts.received()];
    let summary = Summary::new(options, verdict, asked, [mails, texts], &received, kills);
    println!("\n{}", summary.table());
    if options.json {
        println!("{}", serde_json::to_string(&summary)?);
    }
    Ok(verdict)
}

/// Calls once more for each key, after everything.
async fn ask_again(scene: &Scene, told: &[Told]) -> anyhow::Result<Vec<Told>> {
    let app = postgres::connect(&scene.app_url()).await?;
    let mut later = Vec::new();
    for about in told.iter().map(|one| one.about.as_str()).collect::<BTreeSet<_>>() {
        later.push(callers::ask(&app, about).await?);
    }
    Ok(later)
}

/// What a provider has got, accepted or not, from this relay.
fn messages(provider: &Provider, relay: &str) -> Vec<Message> {
    let message = |one: Received| Message {
        accepted: one.is_accepted(),
        // An error of the server's says nothing: the provider may have done its work before it.
        answered: one.answered_at.is_some() && !matches!(one.answer, Answer::Refuse(500..)),
        id: one.request.key.strip_prefix(relay).and_then(|key| key.strip_prefix('/')).unwrap_or_default().to_owned(),
        body: one.request.body,
        at: one.request.at,
    };
    provider.received().into_iter().map(message).collect()
}

async fn settled(scene: &Scene) -> anyhow::Result<bool> {
    Ok(ledger::counts(&scene.owner).await?.iter().all(|counts| counts.pending + counts.processing == 0))
}

async fn present(scene: &Scene, calls: usize) -> anyhow::Result<Vec<String>> {
    let counts = ledger::counts(&scene.owner).await?;
    let mut lines = vec![format!("calls {calls}")];
    for (name, provider, counts) in [(MAILS.0, &scene.mails, counts[0]), (TEXTS.0, &scene.texts, counts[1])] {
        let received = provider.received();
        let accepted = received.iter().filter(|one| one.is_accepted()).map(|one| one.request.key.as_str());
        let distinct = accepted.clone().collect::<BTreeSet<_>>().len();
        let repeated = accepted.count() - distinct;
        let ledger::Counts { pending, processing, completed, unknown } = counts;
        lines.push(format!(
            "{name} accepted {distinct:>4}   repeated {repeated:>3}   pending {pending:>3}   processing {processing:>3}   \
             completed {completed:>4}   unknown {unknown:>3}"
        ));
    }
    lines.push(scene.replicas.states());
    Ok(lines)
}
