//! Watcher and fetch without a sink: every look is made by the test, so that transactions can be scripted around it.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_relay::config::Config;
use outbox_relay::database::{self, Limits, Pool, Session, Sessions};
use outbox_relay::late::{Opened, Parts, Swept};
use outbox_relay::position::{Position, Timestamp};
use outbox_relay::relay::setup::prepare;
use outbox_relay::source::fetch::{self, Budget, FetchError, Request, Sizes, SweepRequest, Texts};
use outbox_relay::source::shape::Shape;
use outbox_relay::source::watcher::{Sighting, Watcher};
use tokio::sync::Mutex;

use super::servers::Database;
use super::{PATIENCE, config};

pub const LIMITS: Limits = Limits { statement: Duration::from_secs(10), lock_kill: Duration::from_secs(30) };

/// Reads one table as a relay does, with its position in memory.
pub struct Reader {
    pub config: outbox_relay::relay::Config,
    pub shape: Mutex<Shape>,
    probe: Session,
    watcher: Watcher,
    pool: Pool,
    rows: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    position: Option<Position>,
    known: Option<(u32, BTreeSet<u32>)>,
    delivered: Vec<String>,
}

/// Sessions as a relay opens them.
pub fn sessions(database: &Database, role: &str, name: &str) -> Sessions {
    Sessions::new(stream(database, role, "table = \"public.bookings\"").postgres, LIMITS, name.to_owned())
}

fn stream(database: &Database, role: &str, stream: &str) -> Config {
    let relay = format!("[[relay]]\nname = \"r\"\n[relay.source.stream]\n{stream}\n[relay.sink.stdout]\n");
    config(database, role, None, &relay)
}

impl Reader {
    /// A reader of `public.bookings`.
    pub async fn new(database: &Database, role: &str) -> Self {
        Self::of(database, role, "table = \"public.bookings\"").await
    }

    /// A reader of what `[relay.source.stream]` says here.
    pub async fn of(database: &Database, role: &str, source: &str) -> Self {
        let config = stream(database, role, source);
        let relay = config.relays.into_iter().next().unwrap();
        let sessions = |name: &str| Sessions::new(config.postgres.clone(), LIMITS, name.to_owned());
        let probe = sessions("probe").open().await.unwrap();
        let shape = prepare::shape(&probe, &relay.source).await.unwrap().unwrap();
        Self {
            watcher: Watcher::new(sessions("watcher"), LIMITS.statement),
            pool: database::pool(sessions("reader"), 1).unwrap(),
            probe,
            config: relay,
            shape: Mutex::new(shape),
            rows: 20_000,
            state: Mutex::default(),
        }
    }

    /// With turns of at most `rows`.
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// With this window; zero makes a script sharp: nothing is late by luck.
    pub async fn window(self, window: Duration) -> Self {
        self.shape.lock().await.margin.window = window;
        self
    }

    /// One look at the writers.
    pub async fn scan(&self) -> Sighting {
        self.watcher.scan(&*self.shape.lock().await).await.unwrap()
    }

    /// Reads the catalogue again.
    pub async fn catalogue(&self) {
        *self.shape.lock().await = prepare::shape(&self.probe, &self.config.source).await.unwrap().unwrap();
    }

    /// Looks, reads what is safe, and advances over it.
    pub async fn turn(&self) -> Result<Sighting, FetchError> {
        let sighting = self.scan().await;
        self.read(&sighting).await?;
        Ok(sighting)
    }

    /// What a reading after that position finds late.
    pub async fn opened(&self, after: &Position, swept: &Swept, parts: Parts) -> Result<Opened, FetchError> {
        self.opened_knowing(None, after, swept, parts).await
    }

    /// The same of a cursor that knows these partitions.
    pub async fn opened_knowing(
        &self,
        known: Option<&BTreeSet<u32>>,
        after: &Position,
        swept: &Swept,
        parts: Parts,
    ) -> Result<Opened, FetchError> {
        let (sighting, shape) = (self.scan().await, self.shape.lock().await.clone());
        let texts = Texts::new(&shape, &[], usize::MAX);
        let request = Request {
            shape: &shape,
            server: &sighting.server,
            fields: &[],
            texts: &texts,
            typed: false,
            after: Some(after),
            sweep: Some(SweepRequest { cursor: "c", swept, parts }),
            horizon: sighting.horizon.at,
            known,
            root: known.map(|_| shape.root),
            budget: Budget { rows: self.rows, bytes: 8 << 20, page: 8 << 20, time: Duration::from_secs(5) },
            sizes: Sizes::default(),
            alone: None,
        };
        let (mut giver, mut taker) = fetch::handoff(usize::MAX);
        let connection = database::Fragile::new(database::take(&self.pool).await.unwrap());
        let fetched = fetch::fetch(&connection, request, &mut giver).await?;
        fetch::end(connection, &fetched).await.unwrap();
        Ok(taker.opened().await.unwrap().clone())
    }

    /// Reads what is safe by an earlier look; gives how many rows.
    pub async fn read(&self, sighting: &Sighting) -> Result<usize, FetchError> {
        // However little may wait to be taken or is asked for at a time, what is read is the same.
        let (window, page) = (fastrand::usize(1..2_000), fastrand::choice([1, 500, 8 << 20]).unwrap());
        self.fetch(sighting, (window, page), async || {}).await
    }

    /// The same in pages, of which the second is given only when `between` has ended.
    pub async fn read_in_pages(&self, sighting: &Sighting, between: impl AsyncFnOnce()) -> Result<usize, FetchError> {
        self.fetch(sighting, (1, 1), between).await
    }

    async fn fetch(
        &self,
        sighting: &Sighting,
        (window, page): (usize, usize),
        between: impl AsyncFnOnce(),
    ) -> Result<usize, FetchError> {
        let shape = self.shape.lock().await.clone();
        let mut state = self.state.lock().await;
        let loan = database::Fragile::new(database::take(&self.pool).await.unwrap());
        let (mut sender, mut taker) = fetch::handoff(window);
        let texts = Texts::new(&shape, &[], 16 << 20);
        let request = Request {
            shape: &shape,
            server: &sighting.server,
            fields: &[],
            texts: &texts,
            typed: false,
            after: state.position.as_ref(),
            sweep: None,
            horizon: sighting.horizon.at,
            known: state.known.as_ref().map(|(_, known)| known),
            root: state.known.as_ref().map(|(root, _)| *root),
            budget: Budget { rows: self.rows, bytes: 8 << 20, page, time: Duration::from_secs(5) },
            sizes: Sizes::default(),
            alone: None,
        };
        let taking = async {
            let mut batches = Vec::new();
            let mut between = Some(between);
            while let Some((batch, _room)) = taker.next().await {
                batches.push(batch);
                if let Some(between) = between.take() {
                    between().await;
                }
            }
            batches
        };
        let fetching = async {
            let fetched = fetch::fetch(&loan, request, &mut sender).await;
            drop(sender);
            fetched
        };
        let (fetched, batches) = tokio::join!(fetching, taking);
        // Rows that came before an error are a true prefix, and are published.
        let rows = !batches.is_empty();
        for batch in batches {
            state.delivered.extend(batch.messages().map(|message| message.id.to_owned()));
            state.position = Some(batch.position(batch.len() - 1));
        }
        if rows {
            state.known = Some((shape.root, shape.descendants.clone()));
        }
        let fetched = fetched?;
        fetch::end(loan, &fetched).await?;
        Ok(fetched.rows)
    }

    /// The ids so far, in the order in which they came.
    pub async fn delivered(&self) -> Vec<String> {
        self.state.lock().await.delivered.clone()
    }

    /// Takes turns until exactly these ids have come; fails at once when another comes.
    #[track_caller]
    pub fn expect<T: ToString>(&self, ids: &[T]) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
        async move {
            let end = tokio::time::Instant::now() + PATIENCE * 3;
            loop {
                self.turn().await.unwrap();
                let delivered = self.delivered().await;
                if delivered == expected {
                    return;
                }
                let late = tokio::time::Instant::now() > end;
                let begins = expected.starts_with(&delivered);
                assert!(!late && begins, "{caller}: expected {expected:?}, delivered {delivered:?}");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Takes turns until every row committed before this call, and not held back, must have come; then says whether
    /// exactly these have.
    #[track_caller]
    pub fn settled<T: ToString>(&self, ids: &[T]) -> impl Future<Output = Sighting> {
        let caller = std::panic::Location::caller();
        let expected: Vec<String> = ids.iter().map(ToString::to_string).collect();
        async move {
            let sighting = self.past(true).await;
            assert_eq!(self.delivered().await, expected, "{caller}");
            sighting
        }
    }

    /// Looks, without reading, until rows of now are past the window.
    pub async fn watched(&self) -> Sighting {
        self.past(false).await
    }

    async fn past(&self, read: bool) -> Sighting {
        let margin = self.shape.lock().await.margin;
        let until = self.scan().await.horizon.observed_at.plus(margin.window + margin.precision * 2);
        loop {
            let sighting = self.scan().await;
            if read {
                self.read(&sighting).await.unwrap();
            }
            if sighting.horizon.observed_at > until {
                return sighting;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The position, as it is kept.
    pub async fn position(&self) -> Option<Position> {
        self.state.lock().await.position.clone()
    }

    /// Sets the position.
    pub async fn seek(&self, created_at: Timestamp, id: Option<&str>) {
        self.state.lock().await.position = Some(Position { created_at, id: id.map(str::to_owned) });
    }
}

/// All ids of a table in the order in which they must be published.
pub async fn ordered(owner: &tokio_postgres::Client, table: &str) -> Vec<String> {
    let sql = format!("SELECT id::text FROM {table} AS t ORDER BY t.created_at, t.id");
    owner.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}
