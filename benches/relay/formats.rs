//! `formats`: what a record's format costs, by the same rows through each.
//!
//! The formats whose schemas are in a registry ask one of the bench's own, once for each drain.

use anyhow::Context as _;
use outbox_testkit::registry::ScriptedRegistry;
use serde_json::json;

use super::drain::{self, Drain};
use super::figure::{each, median, median_of, rounded, runs};
use super::options::Options;
use super::payload::Payload;
use super::report::{Report, thousands};
use super::stage::Stage;

/// Each format, and its section.
const FORMATS: [(&str, &str); 6] = [
    ("row", ""),
    ("cloudevents", "type = \"org.example.row\""),
    ("debezium", ""),
    ("avro", "subject = \"record\"\nrecord = \"org.example.AvroRow\""),
    ("protobuf", "subject = \"record\"\nmessage = \"org.example.ProtobufRow\""),
    ("json_schema", "subject = \"record\"\nrecord = \"JsonRow\""),
];
const AVRO: &str = r#"{"type":"record","name":"AvroRow","namespace":"org.example","fields":[{"name":"id","type":"long"},
    {"name":"created_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"customer","type":"string"},
    {"name":"payload","type":"string"}]}"#;
const PROTOBUF: &str = "syntax = \"proto3\"; package org.example; import \"google/protobuf/timestamp.proto\"; \
    message ProtobufRow { int64 id = 1; google.protobuf.Timestamp created_at = 2; string customer = 3; string payload = 4; }";
const JSON: &str = r#"{"type":"object","required":["id","created_at","customer","payload"],"additionalProperties":false,"properties":{
    "id":{"type":"integer"},"created_at":{"type":"string"},"customer":{"type":"string"},"payload":{"type":"string"}}}"#;

/// Drains the table through each format in turn.
pub async fn measure(stage: &Stage, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let registry = ScriptedRegistry::start().await?;
    registry.register("org.example.AvroRow", "AVRO", AVRO);
    registry.register("org.example.ProtobufRow", "PROTOBUF", PROTOBUF);
    registry.register("JsonRow", "JSON", JSON);
    let before = format!("[schema_registry]\nurl = \"{}\"\n", registry.url());
    let rows = options.rows(Payload::Row);
    stage.fill(Payload::Row, rows).await?;
    let rounds = options.rounds + 1;
    let mut all = FORMATS.map(|_| Vec::new());
    for round in 1..=rounds {
        for ((format, section), drains) in FORMATS.into_iter().zip(&mut all) {
            options.say(&format!("formats {round}/{rounds}: {format}"));
            let behind = match section {
                "" => format!("format = \"{format}\"\n"),
                section => format!("format = \"{format}\"\n[relay.sink.kafka.{format}]\n{section}\n"),
            };
            let drained = drain::drain(stage, &stage.near(), Payload::Row, rows, (&before, &behind)).await;
            let drained = drained.with_context(|| format.to_owned())?;
            // The first of each warms up.
            if round > 1 {
                drains.push(drained);
            }
        }
    }
    tell(report, &all, rows);
    Ok(())
}

fn tell(report: &mut Report, all: &[Vec<Drain>; FORMATS.len()], rows: u64) {
    report.section(format!("formats: {} rows (whole row, 200 B of JSON), one cursor", thousands(rows)));
    for ((format, _), drains) in FORMATS.into_iter().zip(all) {
        let rates = each(drains, |drain| drain.rows_per_second);
        // Beside the other in the same round: what disturbs one disturbs the other.
        let pairs: Vec<_> = drains.iter().zip(&all[0]).collect();
        let ratio = median(&each(&pairs, |(drain, row)| drain.rows_per_second / row.rows_per_second));
        let cpu = median_of(drains, |drain| drain.cpu_s_per_million);
        report.line(format, &rates, "rows/s", format!("{ratio:.2} of row; {cpu:.2} CPU s per million"));
        report.results.push(
            json!({"name": "formats", "format": format, "payload": "row", "rows": rows, "cursors": 1, "replicas": 1,
            "rows_per_second": rounded(median(&rates)), "ratio": rounded(ratio), "cpu_s_per_million": rounded(cpu),
            "runs": runs(&rates)}),
        );
    }
}
