//! Relays of streams: poll, turn, publish, advance.

pub(in crate::relay) mod at_most_once;
pub(in crate::relay) mod clock_watch;
pub(in crate::relay) mod gauges;
pub(in crate::relay) mod idle;
pub(in crate::relay) mod idle_poller;
pub(in crate::relay) mod late_rows;
pub mod learned;
pub(in crate::relay) mod measure;
pub(in crate::relay) mod member;
pub mod outcome;
pub(in crate::relay) mod poll;
pub(in crate::relay) mod progress_writer;
pub(in crate::relay) mod publish_decision;
pub(in crate::relay) mod read_ahead;
pub(in crate::relay) mod redrive;
pub(in crate::relay) mod report;
pub(in crate::relay) mod shards;
pub(in crate::relay) mod standby;
pub(in crate::relay) mod sweeps;
pub(in crate::relay) mod table_group;
pub mod turn;
pub(in crate::relay) mod turn_buffer;
pub(in crate::relay) mod turn_failure;
pub(in crate::relay) mod turn_progress;
pub(in crate::relay) mod weaker_rule;
pub mod worker;
