use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use super::exporter::Exporter;
use super::table::METRICS;
use super::*;
use crate::position::Timestamp;

/// Everything that this version measures.
fn measure_all(metrics: &CursorMetrics) {
    let pending = PendingMetrics::new("bookings");
    pending.set_due(3);
    pending.sent(Duration::from_millis(20));
    pending.send_failed();
    pending.sent_not_marked();
    let schedules = ScheduleMetrics::new("jobs");
    schedules.begun(Duration::from_millis(4));
    schedules.completed();
    schedules.skipped(2);
    schedules.failed();
    schedules.missed(3);
    schedules.set(4, 5, 6);
    schedules.set_waiting(Duration::from_millis(1500));
    intake::IntakeMetrics::new().answered(intake::IntakeResult::Repeated, Duration::from_millis(4));
    metrics.dead_lettered();
    metrics.late_rows(2);
    audited("bookings", AuditResult::Equal, 2);
    late_rows("bookings", 1);
    metrics.set_dead_letters(3);
    metrics.set_parked_keys(2);
    metrics.set_unknown_outcomes(3);
    metrics.set_circuit_open(true);
    let at = Timestamp::parse_rfc3339("2026-11-21T08:00:00.5Z").expect("valid");
    for result in TurnResult::ALL {
        metrics.turn_finished(result);
    }
    for phase in Phase::ALL {
        metrics.phase(phase, Duration::from_millis(3));
    }
    for error in PublishError::ALL {
        metrics.publish_failed(error);
    }
    metrics.published(20_000);
    metrics.redelivered(3);
    metrics.delivery_latency(Duration::from_millis(7), 20_000);
    metrics.backfilled(5);
    metrics.rate_limited(Duration::from_millis(1500));
    metrics.rate_limited(Duration::from_millis(600));
    metrics.set_lag(Duration::from_millis(1500), 12, at);
    metrics.set_last_advance(at);
    metrics.set_held(true);
    metrics.set_paused(false);
    metrics.set_halted(true);
    metrics.set_clock_regression(false);
    metrics.set_horizon_hold(Duration::from_secs(2), &[("writer", 2)]);
    metrics.looked(Looked { before: None, at, horizon: at, newest: Some(at), position: None, failing: false });
    set_kafka(12, &BTreeMap::from([("1".to_owned(), Duration::from_millis(2))]));
    set_postgres_up(true);
    set_pool_connections(PoolState::Idle, 3);
    set_pool_connections(PoolState::InUse, 7);
    set_config("bookings", "0123456789abcdef", true);
    set_config_waits("bookings", true);
}

fn rendered(measure: impl FnOnce()) -> String {
    let mut text = String::new();
    Exporter::local(|exporter| {
        measure();
        text = exporter.render();
    });
    text
}

fn exported(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

// Guarantee: observe.metrics
#[test]
fn all_that_is_measured_is_exported_and_nothing_else() {
    let text = rendered(|| measure_all(&CursorMetrics::new("bookings", "kafka").of_stream("public.bookings")));
    let all = METRICS.iter().chain(process::METRICS);
    let expected: BTreeSet<_> = all.filter(|metric| metric.exported).map(|metric| metric.name).collect();
    assert_eq!(exported(&text), expected);
    assert!(!text.contains(" summary"), "summaries of several replicas cannot be put together");
    for line in [
        "outbox_relay_turns_total{cursor=\"bookings\",result=\"relayed\"} 1",
        "outbox_relay_publish_errors_total{cursor=\"bookings\",sink=\"kafka\",reason=\"ambiguous\"} 1",
        "outbox_relay_ambiguous_total{cursor=\"bookings\",sink=\"kafka\"} 1",
        "outbox_relay_published_rows_total{cursor=\"bookings\",sink=\"kafka\"} 20000",
        "outbox_relay_sink_rate_limited_seconds_total{cursor=\"bookings\",sink=\"kafka\"} 2",
        "outbox_relay_cursor_lag_seconds{cursor=\"bookings\"} 1.5",
        "outbox_relay_cursor_observed_timestamp_seconds{cursor=\"bookings\"} 1795248000.5",
        "outbox_relay_cursor_halted{cursor=\"bookings\"} 1",
        "outbox_relay_horizon_holders{cursor=\"bookings\",reason=\"writer\"} 2",
        "outbox_relay_delivery_latency_seconds_bucket{cursor=\"bookings\",sink=\"kafka\",le=\"0.005\"} 0",
        "outbox_relay_delivery_latency_seconds_bucket{cursor=\"bookings\",sink=\"kafka\",le=\"0.01\"} 20000",
        "outbox_relay_backfilled_rows_total{cursor=\"bookings\",sink=\"kafka\"} 5",
        "outbox_relay_turn_duration_seconds_bucket{table=\"public.bookings\",phase=\"lock\",le=\"0.0025\"} 0",
        "outbox_relay_lag_stage_seconds{cursor=\"bookings\",stage=\"commit_wait\"} 0",
        "outbox_relay_intake_requests_total{result=\"repeated\"} 1",
        "outbox_relay_intake_requests_total{result=\"failed\"} 0",
        "outbox_relay_intake_request_duration_seconds_bucket{le=\"0.005\"} 1",
        "outbox_relay_schedule_lateness_seconds_bucket{cursor=\"jobs\",le=\"0.005\"} 1",
        "outbox_relay_schedule_actions_total{cursor=\"jobs\",result=\"completed\"} 1",
        "outbox_relay_schedule_actions_total{cursor=\"jobs\",result=\"skipped\"} 2",
        "outbox_relay_schedule_actions_total{cursor=\"jobs\",result=\"failed\"} 1",
        "outbox_relay_schedule_missed_total{cursor=\"jobs\"} 3",
        "outbox_relay_schedule_due_actions{cursor=\"jobs\"} 4",
        "outbox_relay_schedule_running_actions{cursor=\"jobs\"} 5",
        "outbox_relay_schedule_problems{cursor=\"jobs\"} 6",
        "outbox_relay_schedule_waiting_seconds{cursor=\"jobs\"} 1.5",
        "outbox_relay_kafka_queue_messages 12",
        "outbox_relay_config_info{relay=\"bookings\",hash=\"0123456789abcdef\"} 1",
        "outbox_relay_config_waits{cursor=\"bookings\"} 1",
        "outbox_relay_kafka_broker_rtt_seconds{broker=\"1\"} 0.002",
        "outbox_relay_db_pool_connections{state=\"in_use\"} 7",
        concat!("outbox_relay_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
    }
}

// Guarantee: observe.metrics
#[test]
fn at_start_counters_are_zero_and_what_nobody_measured_is_absent() {
    let text = rendered(|| drop(CursorMetrics::new("bookings", "sms")));
    for error in PublishError::ALL {
        let line = format!(
            "outbox_relay_publish_errors_total{{cursor=\"bookings\",sink=\"sms\",reason=\"{}\"}} 0",
            error.as_str()
        );
        assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
    }
    assert!(text.contains("outbox_relay_turns_total{cursor=\"bookings\",result=\"relayed\"} 0"));
    assert!(!text.contains("cursor_lag_seconds") && !text.contains("cursor_halted"), "{text}");
}

/// A cursor as it is after a backfill, with a transaction that holds it back.
fn healthy(cursor: &str) {
    let metrics = CursorMetrics::new(cursor, "kafka").of_stream("public.bookings");
    audit_begins(cursor);
    let at = Timestamp::from_unix_micros(0);
    for result in [TurnResult::Relayed, TurnResult::Idle, TurnResult::Busy] {
        metrics.turn_finished(result);
    }
    for phase in Phase::ALL {
        metrics.phase(phase, Duration::from_millis(3));
    }
    metrics.published(20_000);
    metrics.backfilled(10_000);
    metrics.delivery_latency(Duration::from_millis(7), 10_000);
    metrics.set_lag(Duration::ZERO, 0, at);
    metrics.set_last_advance(at);
    metrics.set_held(false);
    metrics.set_paused(false);
    metrics.set_halted(false);
    metrics.set_circuit_open(false);
    metrics.set_clock_regression(false);
    metrics.set_dead_letters(0);
    metrics.set_parked_keys(0);
    metrics.set_unknown_outcomes(0);
    metrics.set_horizon_hold(Duration::ZERO, &[("writer", 1)]);
    set_config_waits(cursor, false);
}

fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count()
}

#[test]
fn cursor_of_a_stream_has_as_many_series_as_documented() {
    let (one, two) = (rendered(|| healthy("a")), rendered(|| (healthy("a"), healthy("b")).1));
    let of_a = one.lines().filter(|line| line.contains("cursor=\"a\"")).count();
    assert_eq!(series(&two) - series(&one), of_a, "phases belong to the table");
    // A running process has as many of each kind of source: `tests/it/metrics.rs`.
    let documented = format!("{of_a} for a stream");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/METRICS.md")).expect("the page");
    assert!(page.contains(&documented), "METRICS.md does not say that {documented}");
}

#[test]
fn phases_can_be_switched_off() {
    let mut text = String::new();
    Exporter::local_with(Phases::Off, |exporter| {
        healthy("a");
        text = exporter.render();
    });
    assert!(!text.contains("turn_duration"), "{text}");
}

// Guarantee: page.stages
#[test]
fn stages_of_the_lag_are_kept_for_the_status_page() {
    let metrics = CursorMetrics::new("staged_lag", "kafka");
    let at = |seconds: i64| Timestamp::from_unix_micros(seconds * 1_000_000);
    for (now, newest) in [(9, 5), (14, 5), (15, 10)] {
        let (newest, position) = (Some(at(newest)), Some(at(5)));
        metrics.looked(Looked { before: None, at: at(now), horizon: at(8), newest, position, failing: false });
    }
    metrics.set_lag(Duration::from_secs(10), 1, at(20));
    let last = trail::find("staged_lag").and_then(|trail| trail.last()).expect("it was measured");
    assert_eq!(last.stages.map(|stage| stage.as_secs()), [4, 5, 1, 0], "not seen until 14, seen at 15, held until now");
}

#[test]
fn a_reason_that_no_longer_holds_goes_back_to_zero() {
    let text = rendered(|| {
        let metrics = CursorMetrics::new("b", "kafka");
        metrics.set_horizon_hold(Duration::from_secs(1), &[("writer", 1), ("prepared", 1)]);
        metrics.set_horizon_hold(Duration::ZERO, &[("writer", 4)]);
    });
    assert!(text.contains("outbox_relay_horizon_holders{cursor=\"b\",reason=\"prepared\"} 0"), "{text}");
    assert!(text.contains("outbox_relay_horizon_holders{cursor=\"b\",reason=\"writer\"} 4"), "{text}");
}

#[test]
fn infinite_instants_are_not_exported() {
    let text = rendered(|| CursorMetrics::new("b", "kafka").set_last_advance(Timestamp::INFINITY));
    assert!(!text.contains("last_advance"), "{text}");
}

#[test]
fn names_follow_the_conventions() {
    let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len(), "every name once");
    for metric in METRICS {
        assert!(metric.name.starts_with("outbox_relay_") && metric.help.ends_with('.'), "{metric:?}");
        assert_eq!(metric.name.ends_with("_total"), metric.kind == table::MetricKind::Counter, "{metric:?}");
        assert_eq!(metric.name.contains("_seconds"), metric.unit == metrics::Unit::Seconds, "{metric:?}");
    }
}

/// Where `promtool` is installed; the whole process is checked with it elsewhere.
#[test]
fn promtool_finds_nothing_to_complain_about() {
    let text = rendered(|| measure_all(&CursorMetrics::new("bookings\"\\\n#0", "kafka")));
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = started else { return };
    promtool.stdin.take().expect("piped").write_all(text.as_bytes()).expect("writes");
    let output = promtool.wait_with_output().expect("ends");
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stderr));
}
