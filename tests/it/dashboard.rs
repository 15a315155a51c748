//! The dashboard and the alert rules fit the program: every name, and every panel on a real Prometheus.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::fleet::Fleet;
use crate::support::outside::json;
use crate::support::prometheus::Prometheus;
use crate::support::promql::read_by;
use crate::support::{PATIENCE, eventually};

const ALERTS: [&str; 19] = [
    "LagHigh",
    "LagCritical",
    "Stalled",
    "HorizonHeld",
    "Absent",
    "PostgresUnreachable",
    "LagUnknown",
    "PublishErrors",
    "DeadLettered",
    "ParkedKeys",
    "UnknownOutcomes",
    "LateRows",
    "RowsMissing",
    "CursorHalted",
    "ConfigMismatch",
    "ClockRegression",
    "CircuitOpen",
    "ScheduleLate",
    "ScheduleProblem",
];

fn file(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn dashboard() -> Value {
    json(&file("deploy/grafana/outbox-relay.json"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Panels that show something; rows are headings.
fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    list(&dashboard["panels"]).iter().filter(|panel| panel["type"] != "row")
}

/// Each query of the dashboard with its panel's title.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let of = |panel: &Value| {
        let expr = |target: &Value| (text(&panel["title"]).to_owned(), text(&target["expr"]).to_owned());
        list(&panel["targets"]).iter().map(expr).collect::<Vec<_>>()
    };
    panels(dashboard).flat_map(of).collect()
}

/// As Grafana does it, with everything chosen.
fn substituted(query: &str) -> String {
    let query = query.replace("$namespace", ".*").replace("$cursor", ".*").replace("$__rate_interval", "10s");
    assert!(!query.contains('$'), "a variable that Grafana would not know: {query}");
    query
}

/// The anchors of the runbook's headings.
fn anchors() -> BTreeSet<String> {
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
    };
    file("docs/RUNBOOK.md").lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

// Guarantee: observe.dashboard
#[test]
fn every_panel_has_a_unit_a_description_and_metrics_that_exist() {
    let (dashboard, anchors) = (dashboard(), anchors());
    let rows = list(&dashboard["panels"]).iter().filter(|panel| panel["type"] == "row");
    assert_eq!(
        rows.map(|row| text(&row["title"])).collect::<Vec<_>>(),
        [
            "Health",
            "Lag per cursor",
            "Throughput",
            "Latency",
            "Failures",
            "Schedules",
            "PostgreSQL",
            "Kafka",
            "Process"
        ]
    );
    let mut titles = BTreeSet::new();
    for panel in panels(&dashboard) {
        let title = text(&panel["title"]);
        assert!(titles.insert(title), "two panels are called {title}");
        assert!(text(&panel["description"]).ends_with('.'), "{title} has a description");
        assert!(!text(&panel["fieldConfig"]["defaults"]["unit"]).is_empty(), "{title} has a unit");
        assert!(!list(&panel["targets"]).is_empty(), "{title} shows something");
        for link in panel["links"].as_array().into_iter().flatten() {
            let anchor = text(&link["url"]).strip_prefix("${runbook}#").expect("links lead to the runbook");
            assert!(anchors.contains(anchor), "{title}: the runbook has no section {anchor}");
        }
    }
    for (_, query) in queries(&dashboard) {
        read_by(&query);
    }
    let variables: Vec<_> =
        list(&dashboard["templating"]["list"]).iter().map(|variable| text(&variable["name"])).collect();
    assert_eq!(variables, ["datasource", "namespace", "cursor", "runbook"]);
}

// Guarantee: observe.dashboard
#[test]
fn every_metric_of_the_alert_rules_exists() {
    let rules = file("deploy/prometheus/rules.yaml");
    let mut expression = None;
    for line in rules.lines() {
        let indent = line.len() - line.trim_start().len();
        match line.trim() {
            "expr: |" => expression = Some(String::new()),
            code if indent == 10 || (indent > 10 && expression.is_some()) => {
                if let Some(expression) = &mut expression {
                    expression.push_str(code);
                    expression.push('\n');
                }
            }
            _ => {
                if let Some(query) = expression.take() {
                    read_by(&query);
                }
            }
        }
    }
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert_eq!(alerts, ALERTS);
}

/// Waits until each of these queries answers with a number.
async fn all_answer(prometheus: &Prometheus, mut silent: Vec<&(String, String)>) {
    assert!(silent.len() >= 35, "most of the dashboard: {}", silent.len());
    let (end, mut looks) = (Instant::now() + PATIENCE * 4, tokio::time::interval(Duration::from_millis(100)));
    while !silent.is_empty() {
        looks.tick().await;
        let mut still = Vec::new();
        for asked in silent {
            let samples = prometheus.query(&substituted(&asked.1)).await;
            if !samples.iter().any(|(_, value)| value.is_finite()) {
                still.push(asked);
            }
        }
        assert!(Instant::now() < end, "these panels show nothing: {still:#?}");
        silent = still;
    }
}

// Guarantee: observe.dashboard
#[tokio::test(flavor = "multi_thread")]
async fn every_panel_shows_data_of_three_replicas_under_load_and_alerts_see_what_is_wrong() {
    let fleet = Fleet::start().await;
    let targets: Vec<_> = fleet.listeners.iter().map(|url| url.trim_start_matches("http://")).collect();
    let prometheus = Prometheus::start(&targets).await;
    eventually(PATIENCE, || async {
        prometheus.query("sum(up{job=\"outbox-relay\"})").await.first().is_some_and(|(_, up)| *up == 3.0)
    })
    .await;

    let all = queries(&dashboard());
    let (shown, waiting): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, query)| read_by(query).iter().all(|metric| metric.exported));
    let waiting: BTreeSet<_> = waiting.iter().map(|(title, _)| title).collect();
    println!("{} queries show data; their metrics are not exported in this version: {waiting:?}", shown.len());
    all_answer(&prometheus, shown).await;

    let chosen = "outbox_relay_turns_total{namespace=~\".*\"}";
    let series = prometheus.api("series", &[("match[]", chosen)]).await;
    let cursors: BTreeSet<_> = list(&series).iter().map(|series| text(&series["cursor"])).collect();
    assert_eq!(
        cursors,
        BTreeSet::from(["due", "events", "failing", "halted", "jobs", "paused", "sms"]),
        "the variable offers them"
    );

    let rules = prometheus.api("rules", &[]).await;
    let rules = list(&rules["groups"][0]["rules"]).clone();
    assert_eq!(rules.iter().map(|rule| text(&rule["name"])).collect::<Vec<_>>(), ALERTS);
    for rule in &rules {
        assert_eq!((&rule["health"], rule["lastError"].as_str().unwrap_or_default()), (&"ok".into(), ""), "{rule}");
    }
    let alarmed = || async {
        let data = prometheus.api("alerts", &[]).await;
        let name = |alert: &Value| {
            let labels = &alert["labels"];
            (text(&labels["alertname"]).to_owned(), labels["cursor"].as_str().unwrap_or_default().to_owned())
        };
        list(&data["alerts"]).iter().map(name).collect::<BTreeSet<_>>()
    };
    let pair = |alert: &str, cursor: &str| (alert.to_owned(), cursor.to_owned());
    eventually(PATIENCE, || async {
        let alarmed = alarmed().await;
        alarmed.contains(&pair("CursorHalted", "halted")) && alarmed.contains(&pair("PublishErrors", "failing"))
    })
    .await;
    let alarmed = alarmed().await;
    let paused: Vec<_> = alarmed.iter().filter(|(_, cursor)| ["paused", ""].contains(&cursor.as_str())).collect();
    assert!(paused.is_empty(), "neither a paused cursor alarms nor the replicas: {paused:?}");
}
