//! What the product promises, on a real PostgreSQL and a real Apache Kafka: a file per guarantee.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "tests: their names say what they promise, and a panic is a failure"
)]

mod basics;
mod chaos;
mod checks;
mod demo;
mod faults;
mod horizon;
mod identity;
mod kafka_sink;
mod migrations;
mod naive;
mod operators;
mod ordering;
mod outside;
mod refusals;
mod replicas;
mod sms_http;
mod stage;
mod storm;
#[allow(dead_code, unused_imports, reason = "a tool for all files, whichever are there")]
mod support;
mod verbs;
