//! What the kinds of work differ in, as data. The relay of each is called `jobs`, and a job's body is its name.

use std::time::Duration;

use tokio_postgres::Client;

use crate::support::receiver::Receiver;
use crate::support::{Database, Process, database, toml};

/// A kind of work.
#[derive(Debug)]
pub struct Kind {
    /// Its configuration between the relay's name and its sink.
    source: &'static str,
    /// Its own configuration of the sink.
    sink: &'static str,
    pub setup: &'static str,
    /// Adds the job `$1`, due now.
    pub add: &'static str,
    /// How many jobs were sent and are recorded.
    pub recorded: &'static str,
    /// How many jobs count as ones that a replica had when it ended.
    pub interrupted: &'static str,
    /// How many claims there are.
    pub claims: &'static str,
    /// The table that holds claims.
    pub table: &'static str,
    /// Of that table: when a job was claimed.
    pub begun: &'static str,
    /// Of that table: the condition under which a changed or deleted row, `r`, is the record of an outcome.
    pub record: &'static str,
    /// Of that table: the job's name.
    pub job: &'static str,
    /// What becomes of a job when its replica is killed after it began to send.
    pub sent_again: bool,
    /// The exit code of a replica that has lost a claim while it was sending: 1 when an outcome cannot be recorded any more.
    pub after_lost_claim: i32,
    /// How long a claim lasts when nobody renews it and the deadline is [`DEADLINE`].
    pub lease: Duration,
}

/// The deadline of a relay that need not wait for long.
pub const DEADLINE: &str = "1s";
/// That of one whose claims have to be renewed in time, also on a busy machine.
pub const LONG_DEADLINE: &str = "2s";
/// How long a claim lasts with it, where the deadline decides that.
pub const LONG_LEASE: Duration = Duration::from_millis(4_800);

/// Due work that is marked after it was sent. The mark counts also when the claim is lost.
pub const PENDING: Kind = Kind {
    source: "guarantee = \"at_least_once\"\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"",
    sink: "body = \"{{ id }}\"",
    setup: "CREATE TABLE public.jobs (id text PRIMARY KEY, due timestamptz NOT NULL, sent boolean NOT NULL DEFAULT false); \
            GRANT SELECT, UPDATE (sent) ON public.jobs TO relay",
    add: "INSERT INTO public.jobs (id, due) VALUES ($1, now())",
    recorded: "SELECT count(*) FROM public.jobs AS j WHERE j.sent AND NOT EXISTS (SELECT FROM outbox.claim WHERE key[1] = j.id)",
    interrupted: "SELECT count(*) FROM outbox.claim WHERE state = 'unknown'",
    claims: "SELECT count(*) FROM outbox.claim WHERE state IN ('claimed', 'sending')",
    table: "outbox.claim",
    begun: "claimed_at",
    record: "TG_OP = 'DELETE'",
    job: "OLD.key[1]",
    sent_again: true,
    after_lost_claim: 0,
    lease: Duration::from_millis(2_400),
};

/// Due work that is marked before it is sent, and is never sent again.
pub const MARKED_FIRST: Kind = Kind {
    source: "guarantee = \"at_most_once\"\n[relay.source.pending]\ntable = \"public.jobs\"\nkey = [\"id\"]\ndue = \"due\"\nsent = \"sent\"",
    sent_again: false,
    after_lost_claim: 1,
    ..PENDING
};

/// Requests, whose body is pinned.
pub const REQUESTS: Kind = Kind {
    source: "on_unknown = \"resend\"\n[relay.source.requests]\ntemplates = [\"jobs\"]",
    sink: "key_memory = \"1h\"\nbody = \"{{ user_id }}\"",
    setup: "INSERT INTO outbox.template (name, relay) VALUES ('jobs', 'jobs')",
    add: "SELECT outbox.enqueue($1, 'jobs')",
    recorded: "SELECT count(*) FROM outbox.request WHERE status = 'completed'",
    interrupted: "SELECT count(*) FROM outbox.request WHERE ambiguous > 0 OR attempts > 0",
    claims: "SELECT count(*) FROM outbox.request WHERE expires_at IS NOT NULL",
    table: "outbox.request",
    begun: "claimed_at",
    record: "NEW.status = 'completed'",
    job: "OLD.user_id",
    sent_again: true,
    after_lost_claim: 1,
    lease: Duration::from_millis(2_400),
};

/// Scheduled actions, whose claims last for ten seconds and are renewed while they are carried out: one whose claim is lost is
/// stopped.
pub const ACTIONS: Kind = Kind {
    source: "[relay.source.schedule]",
    sink: "body = \"{{ schedule }}\"",
    setup: "",
    add: "INSERT INTO outbox.schedule (name, relay, starts_at, on_interrupted) VALUES ($1, 'jobs', now(), 'retry')",
    recorded: "SELECT count(*) FROM outbox.action WHERE status = 'completed'",
    interrupted: "SELECT count(*) FROM outbox.action WHERE attempts > 0",
    claims: "SELECT count(*) FROM outbox.action WHERE status = 'running'",
    table: "outbox.action",
    begun: "started_at",
    record: "NEW.status = 'completed'",
    job: "OLD.schedule",
    sent_again: true,
    after_lost_claim: 0,
    lease: Duration::from_secs(10),
};

impl Kind {
    /// The section of its relay, which sends to this receiver.
    pub fn relay(&self, receiver: &Receiver, deadline: &str, timeout: &str) -> String {
        format!(
            "[[relay]]\nname = \"jobs\"\n{}\n[relay.turn]\ndeadline = \"{deadline}\"\n[relay.sink.http]\nurl = \"{}/\"\n\
             timeout = \"{timeout}\"\n{}\n",
            self.source,
            receiver.url(),
            self.sink
        )
    }

    /// The configuration `text`, for many jobs at once.
    pub fn wide(&self, text: &str) -> String {
        let wide = format!("{}\nlimit = 100\nin_flight = 100", self.source);
        text.replacen(self.source, &wide, 1)
    }
}

/// A database with the kind's tables, a receiver, and the configuration of its relay.
pub struct Fixture {
    kind: &'static Kind,
    pub database: Database,
    pub owner: Client,
    pub receiver: Receiver,
    pub text: String,
}

impl Fixture {
    /// Of a relay with this deadline.
    pub async fn new(kind: &'static Kind, deadline: &str, timeout: &str) -> Self {
        let (database, receiver) = (database().await, Receiver::start());
        let owner = database.connect("postgres").await;
        owner.batch_execute(kind.setup).await.unwrap();
        let text = toml(&database, "relay", None, &kind.relay(&receiver, deadline, timeout));
        Self { kind, database, owner, receiver, text }
    }

    /// A replica of this name.
    pub fn replica(&self, name: &str) -> Process {
        Process::spawn(&self.text, &["run", "--replica-id", name])
    }

    pub async fn add(&self, job: &str) {
        self.owner.execute(self.kind.add, &[&job]).await.unwrap();
    }

    pub async fn recorded(&self) -> i64 {
        self.count(self.kind.recorded).await
    }

    pub async fn claims(&self) -> i64 {
        self.count(self.kind.claims).await
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.owner.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// The server refuses to record that jobs of this name were sent, with this SQLSTATE, until [`Self::allow`]. Claims can
    /// still be renewed.
    pub async fn refuse(&self, job: &str, sqlstate: &str) {
        let Kind { table, record, job: name, .. } = self.kind;
        self.owner
            .batch_execute(&format!(
                "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF {record} AND {name} LIKE '{job}' THEN RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}'; END IF; \
                 IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$; \
                 CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION public.refuse()"
            ))
            .await
            .unwrap();
    }

    /// The end of [`Self::refuse`].
    pub async fn allow(&self) {
        let sql = format!("DROP TRIGGER refuse ON {}; DROP FUNCTION public.refuse()", self.kind.table);
        self.owner.batch_execute(&sql).await.unwrap();
    }
}
