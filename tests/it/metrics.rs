//! docs/METRICS.md is true: of the code, and of what replicas under load export.

use std::collections::{BTreeMap, BTreeSet};

use ::metrics::Unit;
use outbox_relay::metrics::table::MetricKind;

use crate::support::fleet::Fleet;
use crate::support::outside::{get, listener, promtool, stdout_relay};
use crate::support::promql::metrics;
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, toml};

/// A row of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Documented {
    kind: String,
    unit: String,
    labels: Vec<String>,
}

/// The metrics of a section of the document, by name.
fn documented(section: &str) -> BTreeMap<String, Documented> {
    let text = std::fs::read_to_string("docs/METRICS.md").unwrap();
    let lines = text.lines().skip_while(|line| *line != format!("## {section}")).skip(1);
    let rows = lines.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
    let bare = |cell: &str| cell.trim().trim_matches('`').to_owned();
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let labels = cells[3].split(',').map(bare).filter(|label| !label.is_empty()).collect();
        (bare(cells[0]), Documented { kind: cells[1].to_owned(), unit: cells[2].to_owned(), labels })
    })
    .collect()
}

// Guarantee: observe.metrics-document
#[test]
fn every_metric_is_documented_with_type_unit_and_labels_and_nothing_else_is() {
    for (section, exported) in [("Exported", true), ("Reserved", false)] {
        let mut documented = documented(section);
        for metric in metrics().filter(|metric| metric.exported == exported) {
            let found = documented.remove(metric.name).unwrap_or_else(|| panic!("{} in {section}", metric.name));
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            assert_eq!(
                (found.kind.as_str(), &found.labels.iter().map(String::as_str).collect::<Vec<_>>()[..]),
                (kind, metric.labels),
                "{}",
                metric.name
            );
            let unit = match metric.unit {
                Unit::Seconds => found.unit.starts_with("seconds"),
                Unit::Bytes => found.unit == "bytes",
                _ => !found.unit.starts_with("seconds") && found.unit != "bytes" && !found.unit.is_empty(),
            };
            assert!(unit, "{}: {:?} is not {:?}", metric.name, found.unit, metric.unit);
        }
        assert!(documented.is_empty(), "{section} documents what does not exist: {documented:?}");
    }
}

/// What a page of metrics shows: each name with its type and the labels of its samples.
fn shown(page: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut shown: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            current = name.to_owned();
            shown.insert(current.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if line.starts_with(&current) && !current.is_empty() {
            let labels = line.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
            let names = labels.split(',').filter_map(|label| label.split_once('=')).map(|(name, _)| name);
            let entry = shown.get_mut(&current).unwrap();
            entry.1.extend(names.filter(|name| *name != "le").map(str::to_owned));
        }
    }
    shown
}

// Guarantee: observe.metrics-document
#[tokio::test(flavor = "multi_thread")]
async fn replicas_under_load_export_what_is_documented_and_nothing_else() {
    let fleet = Fleet::start().await;
    let documented = documented("Exported");
    let page = |replica: usize| {
        let url = format!("{}/metrics", fleet.listeners[replica]);
        async move { get(&url).await.1 }
    };
    // Each replica alone shows all of it in the end: whoever holds a cursor, dashboards must not depend on it.
    for replica in 0..fleet.listeners.len() {
        let missing = || async {
            let shown = shown(&page(replica).await);
            documented.keys().filter(|name| !shown.contains_key(*name)).cloned().collect::<Vec<_>>()
        };
        eventually(PATIENCE * 3, || async { missing().await.is_empty() }).await;
        let page = page(replica).await;
        promtool(&page);
        for (name, (kind, labels)) in shown(&page) {
            let expected = documented.get(&name).unwrap_or_else(|| panic!("{name} is exported and not documented"));
            let expected_labels: BTreeSet<_> = expected.labels.iter().cloned().collect();
            assert_eq!((kind, labels), (expected.kind.clone(), expected_labels), "{name}");
        }
    }
    // An alert on an increase needs the 0 before the first.
    let page = page(0).await;
    for metric in metrics().filter(|metric| metric.exported && metric.kind == MetricKind::Counter) {
        if metric.labels.contains(&"cursor") {
            let of = [("_pending_", "due"), ("_schedule_", "jobs"), ("_rate_limited_", "failing")];
            let own = of.iter().find(|(part, _)| metric.name.contains(part));
            let cursor = own.map_or("paused", |(_, cursor)| cursor);
            let begins = format!("{}{{cursor=\"{cursor}\"", metric.name);
            assert!(page.lines().any(|line| line.starts_with(&begins)), "{begins} begins at 0");
        }
    }
}

/// A relay of each kind of source, named by it.
fn relay_of_each_kind() -> String {
    let relay = |kind: &str, keys: &str, sink: &str| {
        format!("[[relay]]\nname = \"{kind}\"\n[relay.source.{kind}]\n{keys}[relay.sink.{sink}\n")
    };
    let due = "table = \"public.todos\"\nkey = [\"id\"]\ndue = \"at\"\nsent = \"sent\"\n";
    let http = "http]\nurl = \"http://127.0.0.1:9/requests\"";
    [
        stdout_relay("stream", ""),
        relay("pending", due, "stdout]"),
        relay("requests", "templates = [\"welcome\"]\n", http),
        relay("schedule", "", "stdout]"),
    ]
    .concat()
}

// Guarantee: observe.metrics-document
#[tokio::test(flavor = "multi_thread")]
async fn cursor_of_each_kind_of_source_has_as_many_series_as_documented() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let todos = "CREATE TABLE todos (id integer PRIMARY KEY, at timestamptz NOT NULL, sent boolean NOT NULL DEFAULT false); \
                 GRANT SELECT, UPDATE (sent) ON todos TO relay";
    owner.batch_execute(todos).await.unwrap();
    let process = Process::spawn(&toml(&database, "relay", None, &relay_of_each_kind()), &["run"]);
    let url = format!("{}/metrics", listener(&process).await);
    let written = "INSERT INTO bookings DEFAULT VALUES; INSERT INTO todos VALUES (1, now())";
    owner.batch_execute(written).await.unwrap();
    // One transaction that blocks the horizon: one series of `horizon_holders`.
    let mut writer = database.connect("app").await;
    let open = writer.transaction().await.unwrap();
    open.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    let document = std::fs::read_to_string("docs/METRICS.md").unwrap().replace('\n', " ");
    let kinds =
        [("stream", "a stream"), ("pending", "pending rows"), ("requests", "requests"), ("schedule", "schedules")];
    let documented = kinds.map(|(_, named)| {
        let (before, _) =
            document.split_once(&format!(" for {named}")).unwrap_or_else(|| panic!("no figure of {named}"));
        before.rsplit(' ').next().unwrap().parse::<usize>().unwrap_or_else(|_| panic!("no figure of {named}"))
    });
    let counted = std::sync::Mutex::new([0; 4]);
    let settled = async || {
        let read = get(&url).await.1;
        let has = |name: &str, cursor: &str| {
            read.lines().any(|line| line.starts_with(&format!("outbox_relay_{name}{{cursor=\"{cursor}\"")))
        };
        let sampled = kinds.iter().all(|(kind, _)| has("lag_stage_seconds", kind));
        let settled = sampled && has("horizon_holders", "stream");
        let count = |kind: &str| read.lines().filter(|line| line.contains(&format!("cursor=\"{kind}\""))).count();
        let now = kinds.map(|(kind, _)| count(kind));
        // A sample sets its metrics one after the other: as many as twice are all.
        std::mem::replace(&mut *counted.lock().unwrap(), now) == now && settled
    };
    eventually(PATIENCE * 2, settled).await;
    assert_eq!(counted.into_inner().unwrap(), documented, "{kinds:?}");
    open.rollback().await.unwrap();
}
