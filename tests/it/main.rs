//! What the product promises, on a real PostgreSQL and a real Apache Kafka: a file per guarantee.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "tests: their names say what they promise, a panic is a failure, and a script of events reads from top to end"
)]

mod action_query;
mod at_most_once;
mod audit;
mod basics;
mod casts;
mod chaos;
mod checks;
mod circuit;
mod cloudevents;
mod collations;
mod command;
mod completions;
mod consumer;
mod crowds;
mod dashboard;
mod dead_letter_topic;
mod debezium;
mod deploy;
mod due;
mod dumped;
mod email;
mod errors;
mod faults;
mod filter;
mod grants;
mod halts;
mod handover;
mod health;
mod horizon;
mod hostile;
mod http_access;
mod identity;
mod idle;
mod image;
mod intake;
mod jq;
mod kafka_answers;
mod kafka_login;
mod kafka_sink;
mod kafka_wire;
mod labels;
mod lanes;
mod late_rows;
mod listener;
mod lock_kill;
mod locked_tables;
mod log_pipe;
mod log_repeats;
mod losses;
mod lost_topic;
mod message;
mod metrics;
mod migrations;
mod naive;
mod notify;
mod odd_rows;
mod operators;
mod ordering;
mod outside;
mod own_sink;
mod parked;
mod password_command;
mod peers;
mod pending;
mod poison;
mod postgres_facts;
mod postgres_start;
mod postgres_wire;
mod queue;
mod recurrence;
mod refusals;
mod registry;
mod renamed;
mod replicas;
mod requests;
mod retention;
mod rolling;
mod rollout;
mod rotation;
mod schedules;
#[cfg(feature = "schema-registry")]
mod schema_registry;
mod secrets;
mod shards;
mod sms_http;
mod sql_sink;
mod sqlstates;
mod stage;
mod stages;
mod standby;
mod start;
mod statements;
mod status_page;
mod storm;
#[allow(dead_code, unused_imports, reason = "a tool for all files, whichever are there")]
mod support;
mod table;
#[cfg(feature = "otlp")]
mod telemetry;
mod tls;
mod topic_acl;
mod turn_progress;
mod verbs;
mod verify;
mod webhook;
mod words;
