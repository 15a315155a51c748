//! Callers: all of them ask for the same requests, at the same moments, each on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::{Client, GenericClient};

use super::judge::Told;
use super::{MAILS, TEXTS};
use crate::Options;
use crate::postgres;

/// So many ask for each.
pub(super) const CALLERS: usize = 8;

/// New users a second; each is to get a mail and a text.
const PER_SECOND: u64 = 10;

/// Of a hundred calls, so many are followed by one for something that was asked for before.
const AGAIN: u8 = 25;
/// Of a hundred, before so many the same is asked for in a transaction that is rolled back.
const ROLLED_BACK: u8 = 10;

const ASK: &str = "SELECT request_id::text, status, already_sent FROM outbox.enqueue_once($1, $2, $3)";

/// Callers at work. Dropped, they stop at once.
#[derive(Debug)]
pub(super) struct Callers {
    tasks: JoinSet<anyhow::Result<Vec<Told>>>,
    calls: Arc<AtomicUsize>,
}

struct Caller {
    client: Client,
    random: fastrand::Rng,
    calls: Arc<AtomicUsize>,
    told: Vec<Told>,
}

impl Callers {
    /// Connects them all, then lets them ask while the play lasts.
    pub(super) async fn start(url: &str, options: &Options) -> anyhow::Result<Self> {
        let calls = Arc::new(AtomicUsize::new(0));
        let mut callers = Vec::new();
        for number in 0..CALLERS {
            let client = postgres::connect(url).await.context("A caller cannot connect")?;
            let random = fastrand::Rng::with_seed(options.seed ^ number as u64);
            callers.push(Caller { client, random, calls: Arc::clone(&calls), told: Vec::new() });
        }
        let (begun, users) = (Instant::now(), options.writing.as_secs() * PER_SECOND);
        let tasks = callers.into_iter().map(|caller| caller.ask_all(begun, users)).collect();
        Ok(Self { tasks, calls })
    }

    /// How often they have asked so far, with what was rolled back.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Waits until they have asked for everything; how often that was, and what they were told, but by calls that were
    /// rolled back.
    pub(super) async fn end(mut self) -> anyhow::Result<(usize, Vec<Told>)> {
        let mut told = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            told.extend(ended??);
        }
        Ok((self.calls(), told))
    }
}

impl Caller {
    async fn ask_all(mut self, begun: Instant, users: u64) -> anyhow::Result<Vec<Told>> {
        for user in 0..users {
            // All of them at the same moment: the first call of each races with the others'.
            tokio::time::sleep_until(begun + Duration::from_secs(1) / PER_SECOND as u32 * user as u32).await;
            for (_, template) in [MAILS, TEXTS] {
                if self.random.u8(..100) < ROLLED_BACK {
                    self.ask_in_vain(&about(user, template)).await?;
                }
                self.ask(about(user, template)).await?;
                if self.random.u8(..100) < AGAIN {
                    let before = self.random.u64(..=user);
                    self.ask(about(before, template)).await?;
                }
            }
        }
        Ok(self.told)
    }

    async fn ask(&mut self, about: String) -> anyhow::Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.told.push(ask(&self.client, &about).await?);
        Ok(())
    }

    /// Others that ask meanwhile wait for the end of this transaction, and then make the request themselves.
    async fn ask_in_vain(&mut self, about: &str) -> anyhow::Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let transaction = self.client.transaction().await?;
        ask(&transaction, about).await?;
        Ok(transaction.rollback().await?)
    }
}

/// What is to be sent once: this template to this user.
fn about(user: u64, template: &str) -> String {
    format!("u{user}:{template}")
}

/// Asks for it, and says what the answer was.
pub(super) async fn ask(client: &impl GenericClient, about: &str) -> anyhow::Result<Told> {
    let (user, template) = about.split_once(':').context("A key is a user and a template")?;
    let row = client.query_one(ASK, &[&about, &user, &template]).await?;
    let (id, status, already_sent) = (row.get(0), row.get(1), row.get(2));
    Ok(Told { about: about.to_owned(), id, status, already_sent, at: crate::now() })
}
