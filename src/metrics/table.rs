//! Every metric's name, kind, unit and description.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution, in buckets.
    Histogram,
}

/// One metric of the contract.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, prefix included.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Its unit.
    pub unit: Unit,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Its meaning, in one sentence.
    pub help: &'static str,
    /// Whether this version measures it; what it does not measure, it does not export.
    pub exported: bool,
}

macro_rules! metrics {
    ($($id:ident $name:literal $kind:ident $unit:ident [$($label:literal)*] $exported:literal $help:literal;)*) => {
        /// The names, prefix included.
        pub(super) mod name {
            $(
                pub(in super::super) const $id: &str = concat!("outbox_relay_", $name);
            )*
        }

        /// All metrics of the contract.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: name::$id,
            kind: MetricKind::$kind,
            unit: Unit::$unit,
            labels: &[$($label),*],
            help: $help,
            exported: $exported,
        }),*];
    };
}

metrics! {
    LAG "cursor_lag_seconds" Gauge Seconds ["cursor"] true
        "Age of the oldest committed row beyond the cursor's position, held back or not; 0 when there is none.";
    BACKLOG_ROWS "cursor_backlog_rows" Gauge Count ["cursor"] true
        "Committed rows beyond the cursor's position, counted up to a cap.";
    OBSERVED "cursor_observed_timestamp_seconds" Gauge Seconds ["cursor"] true
        "When this replica last measured lag and backlog.";
    LAST_ADVANCE "cursor_last_advance_timestamp_seconds" Gauge Seconds ["cursor"] true
        "When the cursor's position last moved.";
    HELD "cursor_held" Gauge Count ["cursor"] true "1 while rows are waiting that open transactions hold back.";
    PAUSED "cursor_paused" Gauge Count ["cursor"] true "1 while an operator has paused the cursor.";
    HALTED "cursor_halted" Gauge Count ["cursor"] true "1 while the cursor is halted and needs an operator.";
    CLOCK_REGRESSION "cursor_clock_regression" Gauge Count ["cursor"] true
        "1 while PostgreSQL's clock stands before the cursor's position.";
    TURNS "turns_total" Counter Count ["cursor" "result"] true "Turns, by how they ended.";
    TURN_DURATION "turn_duration_seconds" Histogram Seconds ["table" "phase"] true
        "Time that each phase of a turn took, of all cursors of a table.";
    HORIZON_HOLD "horizon_hold_seconds" Gauge Seconds ["cursor"] true
        "How far open transactions hold the horizon back, beyond the latency window.";
    HORIZON_HOLDERS "horizon_holders" Gauge Count ["cursor" "reason"] true
        "Open transactions that hold the horizon back, by reason.";
    PUBLISHED_ROWS "published_rows_total" Counter Count ["cursor" "sink"] true
        "Rows that the receiver has acknowledged.";
    PUBLISH_ERRORS "publish_errors_total" Counter Count ["cursor" "sink" "reason"] true
        "Failures that ended publishing, by what follows from them.";
    AMBIGUOUS "ambiguous_total" Counter Count ["cursor" "sink"] true
        "Failures after which the receiver may have the message although it did not say so.";
    REDELIVERED_ROWS "redelivered_rows_total" Counter Count ["cursor" "sink"] true
        "Rows that this process knows it sent again.";
    DELIVERY_LATENCY "delivery_latency_seconds" Histogram Seconds ["cursor" "sink"] true
        "Time from a row's created_at to its acknowledgement by the receiver; without rows that are older than the cursor.";
    BACKFILLED_ROWS "backfilled_rows_total" Counter Count ["cursor" "sink"] true
        "Rows delivered that were created before the cursor was.";
    RATE_LIMITED "sink_rate_limited_seconds_total" Counter Seconds ["cursor" "sink"] true
        "Whole seconds in which rows waited for the sink's rate limit only.";
    LAG_STAGE "lag_stage_seconds" Gauge Seconds ["cursor" "stage"] true
        "Where the time of one followed row went: the slowest since the last measurement; the stages add up to its age.";
    KAFKA_QUEUE "kafka_queue_messages" Gauge Count [] true
        "Messages in the Kafka client: not yet sent, or not yet acknowledged.";
    KAFKA_RTT "kafka_broker_rtt_seconds" Gauge Seconds ["broker"] true
        "Round trip of requests to a broker, 99th percentile; 0 while nothing was asked.";
    DB_POOL_CONNECTIONS "db_pool_connections" Gauge Count ["state"] true "Connections to PostgreSQL, by state.";
    POSTGRES_UP "postgres_up" Gauge Count [] true
        "1 while this replica is connected to PostgreSQL; 0 once an attempt to connect has failed, until one succeeds.";
    LOG_LINES_DROPPED "log_lines_dropped_total" Counter Count [] true
        "Log lines that were dropped because standard error was not read.";
    SPANS_EXPORTED "spans_exported_total" Counter Count [] true "Spans that the collector of [telemetry] has taken.";
    SPANS_DROPPED "spans_dropped_total" Counter Count [] true
        "Spans that were dropped: too many waited for the collector of [telemetry], or it did not take them.";
    BUILD_INFO "build_info" Gauge Count ["version"] true "1, labelled with the running version.";
    CONFIG_INFO "config_info" Gauge Count ["relay" "hash"] true
        "1, labelled with the digest of what decides what the relay delivers, and where, on this replica.";
    CONFIG_WAITS "config_waits" Gauge Count ["cursor"] true
        "1 while this replica does not run the relay because live replicas run another configuration of it.";
    LATE_ROWS "late_rows_total" Counter Count ["cursor"] true
        "Rows that became visible behind the cursor's position, and come late.";
    AUDIT_SLICES "audit_slices_total" Counter Count ["cursor" "result"] true
        "Slices of passed rows that were compared with the table: equal, gone (rows were deleted), late, unnamed (rows are missing, which ones cannot be told), unclear, skipped or over.";
    DEAD_LETTER_ROWS "dead_letter_rows" Gauge Count ["cursor"] true "Dead letters, and requests that have failed, that wait for an operator.";
    UNKNOWN_OUTCOMES "unknown_outcomes" Gauge Count ["cursor"] true
        "Rows of at_most_once that were sent or not, never to be sent again, and not settled by an operator yet.";
    DEAD_LETTERED_ROWS "dead_lettered_rows_total" Counter Count ["cursor" "sink"] true "Rows moved to the dead letters.";
    PARKED_KEYS "parked_keys" Gauge Count ["cursor"] true "Keys that are parked: their rows wait for a dead letter.";
    CIRCUIT_OPEN "sink_circuit_open" Gauge Count ["cursor" "sink"] true "1 while the sink's circuit breaker is open.";
    PENDING_DUE_ROWS "pending_due_rows" Gauge Count ["cursor"] true
        "Rows of due work that are due and not sent, counted up to a cap.";
    PENDING_LATENESS "pending_lateness_seconds" Histogram Seconds ["cursor"] true
        "Time from a row's due time to its acknowledgement.";
    PENDING_FAILURES "pending_failures_total" Counter Count ["cursor" "reason"] true
        "Rows of due work that were not sent (send_failed), or sent and not marked, so that they are sent again (sent_not_marked).";
    SCHEDULE_LATENESS "schedule_lateness_seconds" Histogram Seconds ["cursor"] true
        "Time from an action's planned instant, or from when it could first be begun, until it was first begun.";
    SCHEDULE_DUE "schedule_due_actions" Gauge Count ["cursor"] true
        "Scheduled actions that are due and not begun, counted up to a cap.";
    SCHEDULE_WAITING "schedule_waiting_seconds" Gauge Seconds ["cursor"] true
        "For how long the oldest occurrence has waited to be begun for the first time; 0 when none waits.";
    SCHEDULE_RUNNING "schedule_running_actions" Gauge Count ["cursor"] true "Scheduled actions that are being carried out, by any replica.";
    SCHEDULE_PROBLEMS "schedule_problems" Gauge Count ["cursor"] true "Schedules that cannot run: their column problem says why.";
    SCHEDULE_ACTIONS "schedule_actions_total" Counter Count ["cursor" "result"] true
        "Scheduled actions that ended: completed, failed, or skipped (an earlier one had not ended, or there was nothing to report).";
    SCHEDULE_MISSED "schedule_missed_total" Counter Count ["cursor"] true
        "Occurrences that came while no replica was there; their schedule's policy decides their status.";
    INTAKE_REQUESTS "intake_requests_total" Counter Count ["result"] true
        "Calls of the intake's POST /v1/requests, by result.";
    INTAKE_DURATION "intake_request_duration_seconds" Histogram Seconds [] true
        "Time from a call of the intake's POST /v1/requests to its answer.";
}

/// Gives every metric its description; a metric that has no value yet is not exported by it.
pub fn describe_all() {
    for metric in METRICS {
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, metric.unit, metric.help),
            MetricKind::Gauge => describe_gauge!(metric.name, metric.unit, metric.help),
            MetricKind::Histogram => describe_histogram!(metric.name, metric.unit, metric.help),
        }
    }
}
