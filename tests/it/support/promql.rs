//! As much of PromQL as checks of names need.

use outbox_relay::metrics::process;
use outbox_relay::metrics::table::{METRICS, Metric, MetricKind};

/// What Prometheus itself makes.
const OTHERS: [&str; 2] = ["up", "ALERTS"];

/// All metrics of the program, exported or not.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().chain(process::METRICS)
}

/// The program's metrics that a query reads.
///
/// # Panics
/// When it reads one that neither the program nor Prometheus has.
pub fn read_by(query: &str) -> Vec<&'static Metric> {
    selected(query).into_iter().filter(|name| !OTHERS.contains(name)).map(|name| metric(name, query)).collect()
}

fn metric(name: &str, query: &str) -> &'static Metric {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
    metrics()
        .find(|metric| match metric.kind {
            MetricKind::Histogram => of_histogram == Some(metric.name),
            MetricKind::Counter | MetricKind::Gauge => metric.name == name,
        })
        .unwrap_or_else(|| panic!("the program has no metric {name}: {query}"))
}

/// The names that are selected: those before a brace or a bracket, and those that can be nothing else.
fn selected(query: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '"') {
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = &text[text.find('"').expect("a closing quote") + 1..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if after.starts_with(['{', '[']) || name.starts_with("outbox_relay_") || name.starts_with("process_") {
            names.push(name);
        }
        rest = after;
    }
    names
}

#[test]
fn names_are_found_and_unknown_ones_convicted() {
    let query = "sum by (le, cursor) (rate(outbox_relay_delivery_latency_seconds_bucket{cursor=~\"outbox_relay_x\"}[5m])) \
                 / on (cursor) (max(outbox_relay_cursor_lag_seconds)) + sum(up{job=\"a\"})";
    let names: Vec<_> = read_by(query).iter().map(|metric| metric.name).collect();
    assert_eq!(names, ["outbox_relay_delivery_latency_seconds", "outbox_relay_cursor_lag_seconds"]);
    for wrong in ["outbox_relay_cursor_lag", "rate(outbox_relay_delivery_latency_seconds[5m])", "nothing{}"] {
        assert!(std::panic::catch_unwind(|| read_by(wrong)).is_err(), "{wrong}");
    }
}
