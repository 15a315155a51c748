//! The scenario schedules: schedules of several tenants in plain SQL, edited, paused and deleted while replicas are killed,
//! one tenant whose endpoint never answers, and some seconds without any replica. The verdict is taken from
//! `outbox.action` and from what the endpoints received.
//!
//! The instants that are expected come from counting even steps from a schedule's beginning: nothing of the planner, and
//! nothing of its recurrence rules, is asked.

mod judge;
mod lateness;
mod metronome;
mod play;
mod rows;
mod scene;
mod summary;
mod timetable;

pub(super) use scene::Scene;

/// The relay.
const RELAY: &str = "jobs";
/// Tenants whose endpoints answer.
const HEALTHY: [&str; 2] = ["blue", "green"];
/// The tenant whose endpoint never does.
const HANGING: &str = "red";
