//! The same of jobs, which have no position: pending rows and requests, each claimed before it is sent and recorded after. One
//! replica, and `in_flight` is of each.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio_postgres::Client;

use super::figure::rounded;
use super::lanes::{CORE, LANES, Receiver, watch};
use super::options::Options;
use super::process::{ANY, head};
use super::report::Report;
use super::stage::Stage;

/// How long the receiver takes for a message, and how many may be on their way.
const CASES: [(u64, usize); 9] =
    [(1, 10), (1, 50), (1, 200), (10, 10), (10, 50), (10, 200), (100, 10), (100, 50), (100, 200)];
/// So many a second are made at most: a claim and a record take their time.
const MOST_PER_SECOND: f64 = 5_000.0;

const TABLE: &str = "
    CREATE TABLE public.lane_jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lane text NOT NULL,
        due timestamptz NOT NULL DEFAULT clock_timestamp(), sent boolean NOT NULL DEFAULT false, payload text NOT NULL);
    CREATE INDEX ON public.lane_jobs (due, id) WHERE NOT sent;
    GRANT SELECT, UPDATE (sent) ON public.lane_jobs TO relay;
    INSERT INTO outbox.template (name, relay) VALUES ('lane_job', 'lanes')";
const CLEAN: &str = "
    TRUNCATE public.lane_jobs, outbox.claim, outbox.sent, outbox.request; DELETE FROM outbox.cursor WHERE name = 'lanes'";
const DROP: &str = "
    TRUNCATE outbox.claim, outbox.sent, outbox.request; DELETE FROM outbox.template WHERE name = 'lane_job';
    DELETE FROM outbox.cursor WHERE name = 'lanes'; DROP TABLE public.lane_jobs";

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Pending,
    Requests,
}

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Requests => "requests",
        }
    }

    async fn fill(self, owner: &Client, rows: i64) -> anyhow::Result<()> {
        let sql = match self {
            Self::Pending => {
                "INSERT INTO public.lane_jobs (lane, payload) \
                 SELECT 'c' || n % $2::bigint, rpad(n::text, 200, 'x') FROM generate_series(1, $1::bigint) AS n"
            }
            Self::Requests => {
                "SELECT count(outbox.enqueue('u', 'lane_job', \
                 jsonb_build_object('lane', 'c' || n % $2::bigint, 'payload', rpad(n::text, 200, 'x')))) \
                 FROM generate_series(1, $1::bigint) AS n"
            }
        };
        owner.execute(sql, &[&rows, &LANES]).await?;
        Ok(owner.batch_execute("ANALYZE public.lane_jobs; ANALYZE outbox.request").await?)
    }

    fn toml(self, stage: &Stage, url: &str, in_flight: usize) -> String {
        let (source, memory) = match self {
            Self::Pending => (
                "[relay.source.pending]\ntable = \"public.lane_jobs\"\nkey = [\"id\"]\n\
                 due = \"due\"\nsent = \"sent\"\nlimit = 1000",
                "",
            ),
            Self::Requests => (
                "on_unknown = \"resend\"\n[relay.source.requests]\ntemplates = [\"lane_job\"]\nlimit = 1000",
                "key_memory = \"1h\"\n",
            ),
        };
        format!(
            "{}[[relay]]\nname = \"lanes\"\n{source}\n[relay.turn]\nin_flight = {in_flight}\nlane = \"lane\"\n\
             [relay.sink.http]\nurl = \"{url}\"\nbody = \"{{{{ payload }}}}\"\n{memory}",
            head(&stage.near(), ANY)
        )
    }
}

/// Measures and tells.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let owner = stage.owner().await?;
    owner.batch_execute(TABLE).await?;
    for source in [Source::Pending, Source::Requests] {
        report.section(format!("lanes of {}: messages a second, one replica, 2,000 lanes", source.word()));
        for case in CASES {
            one(stage, options, report, (&owner, source, case))
                .await
                .with_context(|| format!("{source:?} {case:?}"))?;
        }
    }
    Ok(owner.batch_execute(DROP).await?)
}

async fn one(
    stage: &Stage,
    options: &Options,
    report: &mut Report,
    (owner, source, (millis, in_flight)): (&Client, Source, (u64, usize)),
) -> anyhow::Result<()> {
    let word = source.word();
    options.say(&format!("lanes of {word}: {millis} ms, in_flight = {in_flight}"));
    let (ideal, seconds) = (in_flight as f64 * 1e3 / millis as f64, options.seconds.max(3));
    owner.batch_execute(CLEAN).await?;
    source.fill(owner, (ideal.min(MOST_PER_SECOND) * (seconds + 4) as f64) as i64 + 1_000).await?;
    let receiver = Receiver::start(Duration::from_millis(millis)).await?;
    let watched = watch(&source.toml(stage, &receiver.url, in_flight), &receiver, seconds).await?;
    let goals = if millis == 100 { watched.goals(ideal, CORE) } else { Vec::new() };
    let note: Vec<String> = std::iter::once(watched.note(ideal, millis)).chain(goals).collect();
    report.line(
        &format!("{word}, {millis} ms, in_flight = {in_flight}"),
        &[watched.per_second],
        "messages/s",
        note.join(", "),
    );
    report.results.push(
        json!({"name": "lanes", "source": word, "provider_ms": millis, "in_flight": in_flight, "cursors": 1, "replicas": 1,
        "rows_per_second": rounded(watched.per_second), "ratio": rounded(watched.per_second / ideal),
        "cpu_percent": rounded(watched.percent), "rss_max_bytes": watched.rss_max_bytes}),
    );
    Ok(())
}
