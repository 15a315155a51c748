//! PostgreSQL as the proof sees it: sessions that run messages of several transactions, a clock, and a table of two leaves.
//!
//! Everything has a tick of true time; an event at a tick has happened for a reading at that tick.

use proptest::prelude::*;

use super::at;
use crate::position::Timestamp;

/// The two leaves of the table.
pub(super) const LEAVES: [usize; 2] = [0, 1];

/// A transaction's life, in ticks.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    /// When the message came in which it began.
    pub(super) message: i64,
    pub(super) begin: i64,
    /// When it locks the table; the clock is read for rows from then on.
    pub(super) lock: i64,
    pub(super) stamps: Vec<i64>,
    /// When it is prepared, and leaves its session.
    pub(super) prepared: Option<i64>,
    pub(super) visible: i64,
    /// When its locks are released.
    pub(super) unlock: i64,
    pub(super) leaf: usize,
}

impl Transaction {
    /// When its session has nothing to do with it any more.
    pub(super) fn left(&self) -> i64 {
        self.prepared.unwrap_or(self.unlock)
    }
}

/// A session's life.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// From when to when it is connected.
    pub(super) connected: (i64, i64),
    /// When it reports activity: until then its client proves who it is, in a transaction of its own.
    pub(super) opened: i64,
    /// When each message came and when it was done with.
    pub(super) messages: Vec<(i64, i64)>,
    pub(super) transactions: Vec<Transaction>,
    /// Its activity may not be read.
    pub(super) hidden: bool,
    /// It reports no activity.
    pub(super) silent: bool,
    /// It has the relay's role.
    pub(super) relay_role: bool,
}

/// A change of the table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// The leaf is rewritten behind an exclusive lock: older snapshots find the new relation empty.
    Rewritten { leaf: usize, from: i64, to: i64 },
    /// The leaf is detached, and attached again.
    Detached { leaf: usize, from: i64, to: i64 },
    /// The same, concurrently: while it is pending, the catalog still lists it.
    Pending { leaf: usize, from: i64, to: i64 },
}

/// All that happens beside the relay.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) clients: Vec<Client>,
    /// When the clock steps back, and by how much.
    pub(super) steps: Vec<(i64, i64)>,
    pub(super) changes: Vec<Change>,
    /// The first transaction of each session is a login trigger's.
    pub(super) login_trigger: bool,
}

impl World {
    /// The database's clock.
    pub(super) fn clock(&self, tick: i64) -> Timestamp {
        at(tick - self.steps.iter().filter(|(when, _)| *when <= tick).map(|(_, back)| back).sum::<i64>())
    }

    /// Whether the plan of a query of this snapshot reads the leaf.
    pub(super) fn reads(&self, leaf: usize, tick: i64) -> bool {
        !self.changes.iter().any(|change| match *change {
            Change::Detached { leaf: of, from, to } | Change::Pending { leaf: of, from, to } => {
                of == leaf && from <= tick && tick < to
            }
            Change::Rewritten { .. } => false,
        })
    }

    /// Whether the catalog lists the leaf.
    pub(super) fn lists(&self, leaf: usize, tick: i64) -> bool {
        let pending = |change: &Change| matches!(*change, Change::Pending { leaf: of, from, to } if of == leaf && from <= tick && tick < to);
        self.reads(leaf, tick) || self.changes.iter().any(pending)
    }

    /// When a lock on the table is granted that is asked for at this tick.
    pub(super) fn granted(&self, tick: i64) -> i64 {
        let blocked = self.changes.iter().filter_map(|change| match *change {
            Change::Rewritten { from, to, .. } if from <= tick && tick < to => Some(to),
            _ => None,
        });
        blocked.max().unwrap_or(tick)
    }

    pub(super) fn end(&self) -> i64 {
        let lives = self.clients.iter().flat_map(|client| &client.transactions).map(|transaction| transaction.unlock);
        let stepped: i64 = self.steps.iter().map(|(_, back)| back).sum();
        lives.max().unwrap_or(0) + stepped + 500
    }
}

/// What one transaction is made from: pauses and lengths in ticks.
#[derive(Clone, Debug)]
struct Plan {
    /// It belongs to the message of the transaction before.
    same_message: bool,
    pause: i64,
    begin: i64,
    lead: i64,
    /// Its statements come in a message of their own.
    spans: bool,
    steps: Vec<i64>,
    commit: i64,
    release: i64,
    prepared: Option<i64>,
    leaf: usize,
}

fn plan() -> impl Strategy<Value = Plan> {
    let pauses = (any::<bool>(), 0..40_i64, 0..3_i64, 0..30_i64, any::<bool>());
    let ends = (prop::collection::vec(0..12_i64, 1..4), prop_oneof![4 => 0..10_i64, 1 => 0..200_i64], 0..5_i64);
    (pauses, ends, prop::option::weighted(0.3, 0..80_i64), 0..2_usize).prop_map(
        |((same_message, pause, begin, lead, spans), (steps, commit, release), prepared, leaf)| Plan {
            same_message,
            pause,
            begin,
            lead,
            spans,
            steps,
            commit,
            release,
            prepared,
            leaf,
        },
    )
}

fn client() -> impl Strategy<Value = Client> {
    let kind = prop_oneof![6 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true))];
    let login = prop_oneof![4 => 0..6_i64, 1 => 0..80_i64];
    (0..40_i64, login, prop::collection::vec(plan(), 1..4), kind, prop::bool::weighted(0.2)).prop_map(
        |(start, login, plans, (hidden, silent), relay_role)| {
            let mut client = Client {
                connected: (start, start),
                opened: start + login,
                messages: vec![],
                transactions: vec![],
                hidden,
                silent,
                relay_role,
            };
            let mut tick = start + login;
            for plan in &plans {
                tick = client.run(plan, tick);
            }
            client.connected.1 = tick;
            client
        },
    )
}

impl Client {
    /// It has a transaction, and reports nothing.
    pub(super) fn is_opening(&self, tick: i64) -> bool {
        self.connected.0 <= tick && tick < self.opened
    }

    /// Makes its first transaction a login trigger's: there is no message, and its time is the session's beginning. A hidden
    /// session has no bound but its transaction's first scan, which is unsound for that, too.
    fn trigger_at_login(&mut self) {
        if self.hidden {
            return;
        }
        let began = self.connected.0;
        let message = self.messages[0].0;
        self.messages[0].0 = began;
        for transaction in self.transactions.iter_mut().filter(|transaction| transaction.message == message) {
            transaction.message = began;
        }
    }

    /// Adds a transaction that begins at this tick or later; returns when the session is done with it.
    fn run(&mut self, plan: &Plan, mut tick: i64) -> i64 {
        // A hidden session is bounded by its transaction's first scan: unsound for messages of several, so it has none.
        let same = plan.same_message && !self.hidden && !self.messages.is_empty();
        tick += plan.pause;
        if !same {
            self.messages.push((tick, tick));
        }
        let message = self.messages.last().expect("pushed").0;
        let begin = if self.hidden { tick } else { tick + plan.begin };
        let lock = begin + plan.lead;
        if plan.spans && plan.lead > 2 {
            self.messages.last_mut().expect("pushed").1 = begin + 1;
            self.messages.push((lock, lock));
        }
        let mut stamps = vec![lock];
        for step in &plan.steps {
            stamps.push(stamps.last().expect("the first") + step);
        }
        let done = stamps.last().expect("the first") + plan.commit;
        let prepared = plan.prepared.map(|_| done);
        let visible = done + plan.prepared.unwrap_or(0);
        let unlock = visible + plan.release;
        self.transactions.push(Transaction {
            message,
            begin,
            lock,
            stamps,
            prepared,
            visible,
            unlock,
            leaf: plan.leaf,
        });
        let left = self.transactions.last().expect("pushed").left();
        self.messages.last_mut().expect("pushed").1 = left;
        left
    }
}

fn change() -> impl Strategy<Value = Change> {
    (0..3_u8, 0..2_usize, 0..200_i64, 1..60_i64).prop_map(|(kind, leaf, from, length)| match kind {
        0 => Change::Rewritten { leaf, from, to: from + length },
        1 => Change::Detached { leaf, from, to: from + length },
        _ => Change::Pending { leaf, from, to: from + length },
    })
}

/// Worlds; one in three has a clock that steps back, one in three a table that changes.
pub(super) fn world() -> impl Strategy<Value = World> {
    let step = (0..250_i64, prop_oneof![3 => 20..60_i64, 1 => 60..160_i64]);
    let steps = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(step, 1..6)];
    let changes = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(change(), 1..3)];
    (prop::collection::vec(client(), 1..5), steps, changes, prop::bool::weighted(0.2)).prop_map(
        |(mut clients, steps, changes, login_trigger)| {
            if login_trigger {
                clients.iter_mut().for_each(Client::trigger_at_login);
            }
            World { clients, steps, changes, login_trigger }
        },
    )
}
