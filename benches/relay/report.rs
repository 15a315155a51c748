//! The figures for people, on standard output, and for programs, in `target/bench.json`.

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::ask::Asked;
use super::figure::{Figures, Rates, median};
use super::latency::{Latency, PER_SECOND};
use super::machine::{Machine, target};
use super::payload::Payload;
use super::schedules::Watched;
use super::wake::Wake;

/// Of `relay` by the slower of the two raw rates, one cursor, text.
const RATIO: f64 = 0.55;
/// The latency window of the measured relays.
const WINDOW_MS: f64 = 5.0;
const P50_MS: f64 = WINDOW_MS + 4.0;
const P99_MS: f64 = 25.0;
const TAKEOVER_MS: f64 = 1_000.0;
const LATENESS_MS: f64 = 1_000.0;
const MEMORY_BYTES: u64 = 100 << 20;

/// Prints and writes.
pub fn write(machine: &Machine, figures: &Figures) -> anyhow::Result<()> {
    print(machine, figures);
    let file = target().join("bench.json");
    let mut text = serde_json::to_string_pretty(&document(machine, figures))?;
    text.push('\n');
    std::fs::write(&file, text)?;
    println!("\n{}", file.display());
    Ok(())
}

fn print(machine: &Machine, figures: &Figures) {
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    println!("{} cores, {}, {gib:.1} GiB", machine.cores, machine.cpu);
    println!(
        "PostgreSQL {} (fsync on), Apache Kafka {}, client and servers on this machine",
        machine.postgres,
        machine.kafka.as_deref().unwrap_or("?")
    );
    println!("\n{:<34}{:>12}{:>24}   goal", "what", "median", "lowest – highest");
    for (payload, rates) in [(Payload::Text, &figures.text), (Payload::Row, &figures.row)] {
        print_rates(payload, rates);
    }
    if !figures.sequential.is_empty() {
        line("sequential", &figures.sequential, "rows/s", "");
    }
    if !figures.latency.is_empty() {
        let label = format!("at {PER_SECOND}/s");
        let of = |value: fn(&Latency) -> f64| figures.latency.iter().map(value).collect::<Vec<_>>();
        let (p50, p99) = (of(|latency| latency.p50_ms), of(|latency| latency.p99_ms));
        line(&format!("latency p50 {label}"), &p50, "ms", &goal(median(&p50) <= P50_MS, &format!("<= {P50_MS} ms")));
        line(&format!("latency p99 {label}"), &p99, "ms", &goal(median(&p99) <= P99_MS, &format!("<= {P99_MS} ms")));
        let percent: Vec<f64> = figures.latency.iter().map(|latency| latency.cores * 100.0).collect();
        line(&format!("processor {label}"), &percent, "% of a core", "");
        line("  rows really written", &of(|latency| latency.per_second), "rows/s", "");
    }
    if !figures.takeover.is_empty() {
        let met = figures.takeover.iter().all(|millis| *millis <= TAKEOVER_MS);
        line("takeover, 3 replicas", &figures.takeover, "ms", &goal(met, &format!("<= {TAKEOVER_MS} ms, each")));
    }
    if let Some(idle) = &figures.idle {
        let met = idle.transaction_ids == 0 && idle.wal_bytes == 0;
        println!(
            "idle for {} s: {} transaction ids, {} bytes of WAL, {:.1} % of a core, {:.0} MiB   {}",
            idle.seconds,
            idle.transaction_ids,
            idle.wal_bytes,
            idle.cpu_s * 100.0 / idle.seconds as f64,
            mib(idle.rss_max_bytes),
            goal(met, "0 and 0")
        );
    }
    print_pending(figures);
    for models in &figures.models {
        let (model, each, ratio) = (models.kind.model, models.kind.each, median(&models.relay) / median(&models.raw));
        line(&format!("raw INSERT … SELECT, {model}"), &models.raw, "rows/s", "");
        line(&format!("sql_sink, {model} by {each}"), &models.relay, "rows/s", &format!("ratio {ratio:.2}"));
    }
    print_asked(&figures.asked);
    if !figures.rules.is_empty() {
        line("rules, a mix of six", &figures.rules, "next occurrences/s", "");
    }
    if let Some(watched) = &figures.schedules {
        println!("{}   {}", watched.line(), goal(watched.p99_ms <= LATENESS_MS, "p99 <= 1 s"));
    }
    let rss = figures.text.rss_max_bytes().max(figures.row.rss_max_bytes());
    if rss > 0 {
        let goal = goal(rss <= MEMORY_BYTES, &format!("<= {:.0} MiB", mib(MEMORY_BYTES)));
        println!("backlog of {} rows: at most {:.0} MiB   {goal}", figures.text.rows.max(figures.row.rows), mib(rss));
    }
}

fn print_rates(payload: Payload, rates: &Rates) {
    if rates.relay.is_empty() {
        return;
    }
    println!("{} payload, {} bytes, {} rows", payload.name(), rates.payload_bytes, rates.rows);
    let (how, read) = rates.read();
    line(&format!("  read_raw ({how})"), read, "rows/s", "");
    line("  produce_raw", &rates.produce, "rows/s", "");
    let goal = match payload {
        Payload::Text => goal(rates.ratio() >= RATIO, &format!(">= {RATIO}")),
        Payload::Row => String::new(),
    };
    line("  relay, one cursor", &rates.relayed(), "rows/s", &format!("ratio {:.2} {goal}", rates.ratio()));
    let (cpu, memory) = (rates.cpu_s_per_million(), mib(rates.rss_max_bytes()));
    println!("    {cpu:.2} processor seconds for a million rows, at most {memory:.0} MiB");
}

fn print_pending(figures: &Figures) {
    for claims in &figures.claims {
        let (replicas, ratio) = (claims.replicas, median(&claims.relay) / median(&claims.raw));
        line(&format!("raw UPDATE … RETURNING, {replicas} loops"), &claims.raw, "rows/s", "");
        line(&format!("pending_claim, {replicas} replicas"), &claims.relay, "rows/s", &format!("ratio {ratio:.2}"));
    }
    if !figures.wake.is_empty() {
        let of = |value: fn(&Wake) -> f64| figures.wake.iter().map(value).collect::<Vec<_>>();
        line("pending_wake p50", &of(|wake| wake.p50_ms), "ms", "");
        line("pending_wake p99", &of(|wake| wake.p99_ms), "ms", "");
    }
}

fn print_asked(asked: &[Asked]) {
    if asked.is_empty() {
        return;
    }
    let of = |value: fn(&Asked) -> f64| asked.iter().map(value).collect::<Vec<_>>();
    let (plain, each, once) = (of(|asked| asked.plain), of(|asked| asked.each), of(|asked| asked.once));
    let (direct, intake) = (of(|asked| asked.direct), of(|asked| asked.intake));
    let ratio = |value: &[f64], raw: &[f64]| format!("ratio {:.2}", median(value) / median(raw));
    line("plain row in outbox.message", &plain, "rows/s", "");
    line("ledger, enqueue", &each, "rows/s", &ratio(&each, &plain));
    line("ledger, enqueue_once", &once, "rows/s", &ratio(&once, &plain));
    line("enqueue_once, 4 connections", &direct, "calls/s", "");
    line("intake, 8 clients", &intake, "calls/s", &ratio(&intake, &direct));
    line("intake p50", &of(|asked| asked.p50_ms), "ms", "");
    line("intake p99", &of(|asked| asked.p99_ms), "ms", "");
}

fn line(what: &str, runs: &[f64], unit: &str, note: &str) {
    let number = |value: f64| if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    let (low, high) = runs.iter().fold((f64::MAX, f64::MIN), |(low, high), run| (low.min(*run), high.max(*run)));
    let range = format!("{} – {}", number(low), number(high));
    println!("{what:<34}{:>12}{range:>24}   {unit} {note}", number(median(runs)));
}

fn goal(met: bool, wanted: &str) -> String {
    format!("[{wanted}: {}]", if met { "met" } else { "missed" })
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The document: keys that do not apply are absent.
fn document(machine: &Machine, figures: &Figures) -> Value {
    let mut results = Vec::new();
    for (payload, rates) in [(Payload::Text, &figures.text), (Payload::Row, &figures.row)] {
        if !rates.relay.is_empty() {
            results.extend(rate_results(payload, rates));
        }
    }
    if !figures.sequential.is_empty() {
        results.push(json!({"name": "sequential", "payload": "text", "payload_bytes": figures.text.payload_bytes,
            "cursors": 1, "replicas": 1, "rows_per_second": rounded(median(&figures.sequential)),
            "runs": runs(&figures.sequential)}));
    }
    if !figures.latency.is_empty() {
        let of = |value: fn(&Latency) -> f64| rounded(median(&figures.latency.iter().map(value).collect::<Vec<_>>()));
        let each = figures.latency.iter();
        let each = each.map(|run| json!({"p50_ms": rounded(run.p50_ms), "p99_ms": rounded(run.p99_ms)}));
        results.push(json!({"name": "latency", "payload": "text", "payload_bytes": 200,
            "rows": figures.latency.iter().map(|run| run.rows).min(), "cursors": 1, "replicas": 1,
            "rows_per_second": of(|run| run.per_second), "cpu_s_per_million": of(|run| run.cpu_s_per_million),
            "p50_ms": of(|run| run.p50_ms), "p99_ms": of(|run| run.p99_ms), "runs": each.collect::<Vec<_>>()}));
    }
    if let Some(idle) = &figures.idle {
        results.push(json!({"name": "idle", "cursors": 1, "replicas": 1, "rss_max_bytes": idle.rss_max_bytes,
            "runs": [{"seconds": idle.seconds, "transaction_ids": idle.transaction_ids, "wal_bytes": idle.wal_bytes,
                "cpu_s": rounded(idle.cpu_s)}]}));
    }
    if !figures.takeover.is_empty() {
        results.push(json!({"name": "takeover", "payload": "text", "payload_bytes": 200, "cursors": 1, "replicas": 3,
            "p50_ms": rounded(median(&figures.takeover)), "runs": runs(&figures.takeover)}));
    }
    results.extend(pending_results(figures));
    results.extend(figures.models.iter().flat_map(|models| {
        let (model, each, rows) = (models.kind.model, models.kind.each, models.rows);
        let ratio = median(&models.relay) / median(&models.raw);
        [
            json!({"name": "sql_sink_raw", "model": model, "payload_bytes": 200, "rows": rows,
                "rows_per_second": rounded(median(&models.raw)), "runs": runs(&models.raw)}),
            json!({"name": "sql_sink", "model": model, "each": each, "payload_bytes": 200, "rows": rows, "cursors": 1,
                "replicas": 1, "rows_per_second": rounded(median(&models.relay)), "ratio": rounded(ratio),
                "runs": runs(&models.relay)}),
        ]
    }));
    results.extend(asked_results(&figures.asked));
    results.extend(rule_result(&figures.rules));
    results.extend(figures.schedules.iter().map(Watched::result));
    if let Some((payload, rates)) =
        [(Payload::Text, &figures.text), (Payload::Row, &figures.row)].into_iter().max_by_key(|(_, rates)| rates.rows)
        && !rates.relay.is_empty()
    {
        results.push(json!({"name": "backlog", "payload": payload.name(), "payload_bytes": rates.payload_bytes,
            "rows": rates.rows, "cursors": 1, "replicas": 1, "rss_max_bytes": rates.rss_max_bytes(),
            "runs": rates.relay.iter().map(|drain| drain.rss_max_bytes).collect::<Vec<_>>()}));
    }
    let mut document = Map::new();
    document.insert("machine".into(), Value::Object(place(machine)));
    document.extend(machine.commit.iter().map(|commit| ("commit".into(), json!(commit))));
    document.insert("at".into(), json!(Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)));
    document.insert("results".into(), Value::Array(results));
    Value::Object(document)
}

fn place(machine: &Machine) -> Map<String, Value> {
    let mut place = Map::new();
    place.insert("cores".into(), json!(machine.cores));
    place.insert("cpu".into(), json!(machine.cpu));
    place.insert("memory_bytes".into(), json!(machine.memory_bytes));
    place.insert("postgres".into(), json!(machine.postgres));
    place.extend(machine.kafka.iter().map(|kafka| ("kafka".into(), json!(kafka))));
    place
}

fn rate_results(payload: Payload, rates: &Rates) -> [Value; 3] {
    let (name, bytes, rows) = (payload.name(), rates.payload_bytes, rates.rows);
    let raw = |what: &str, each: &[f64]| {
        json!({"name": what, "payload": name, "payload_bytes": bytes, "rows": rows,
            "rows_per_second": rounded(median(each)), "runs": runs(each)})
    };
    let relayed = rates.relayed();
    let relay = json!({"name": "relay", "payload": name, "payload_bytes": bytes, "rows": rows, "cursors": 1,
        "replicas": 1, "rows_per_second": rounded(median(&relayed)), "ratio": rounded(rates.ratio()),
        "cpu_s_per_million": rounded(rates.cpu_s_per_million()), "rss_max_bytes": rates.rss_max_bytes(),
        "runs": runs(&relayed)});
    [raw("read_raw", rates.read().1), raw("produce_raw", &rates.produce), relay]
}

fn pending_results(figures: &Figures) -> Vec<Value> {
    let mut results = Vec::new();
    for claims in &figures.claims {
        let (replicas, rows, ratio) = (claims.replicas, claims.rows, median(&claims.relay) / median(&claims.raw));
        results.push(json!({"name": "pending_claim_raw", "rows": rows, "replicas": replicas,
            "rows_per_second": rounded(median(&claims.raw)), "runs": runs(&claims.raw)}));
        results.push(json!({"name": "pending_claim", "rows": rows, "replicas": replicas,
            "rows_per_second": rounded(median(&claims.relay)), "ratio": rounded(ratio), "runs": runs(&claims.relay)}));
    }
    if !figures.wake.is_empty() {
        let of = |value: fn(&Wake) -> f64| rounded(median(&figures.wake.iter().map(value).collect::<Vec<_>>()));
        let each = figures.wake.iter();
        let each = each.map(|run| json!({"p50_ms": rounded(run.p50_ms), "p99_ms": rounded(run.p99_ms)}));
        results
            .push(json!({"name": "pending_wake", "rows": figures.wake.iter().map(|run| run.rows).min(), "replicas": 1,
            "p50_ms": of(|run| run.p50_ms), "p99_ms": of(|run| run.p99_ms), "runs": each.collect::<Vec<_>>()}));
    }
    results
}

fn rule_result(rules: &[f64]) -> Option<Value> {
    let result = json!({"name": "rules", "rows_per_second": rounded(median(rules)), "runs": runs(rules)});
    (!rules.is_empty()).then_some(result)
}

fn asked_results(asked: &[Asked]) -> Vec<Value> {
    let Some(Asked { calls, .. }) = asked.first() else { return Vec::new() };
    let of = |value: fn(&Asked) -> f64| asked.iter().map(value).collect::<Vec<_>>();
    let result = |name: &str, value: fn(&Asked) -> f64, raw: Option<fn(&Asked) -> f64>| {
        let each = of(value);
        let mut result =
            json!({"name": name, "rows": calls, "rows_per_second": rounded(median(&each)), "runs": runs(&each)});
        if let Some(raw) = raw {
            result["ratio"] = rounded(median(&each) / median(&of(raw)));
        }
        result
    };
    let mut intake = result("intake", |asked| asked.intake, Some(|asked| asked.direct));
    intake["p50_ms"] = rounded(median(&of(|asked| asked.p50_ms)));
    intake["p99_ms"] = rounded(median(&of(|asked| asked.p99_ms)));
    vec![
        result("ledger_raw", |asked| asked.plain, None),
        result("ledger_enqueue", |asked| asked.each, Some(|asked| asked.plain)),
        result("ledger", |asked| asked.once, Some(|asked| asked.plain)),
        result("intake_raw", |asked| asked.direct, None),
        intake,
    ]
}

fn runs(values: &[f64]) -> Vec<Value> {
    values.iter().map(|value| rounded(*value)).collect()
}

/// Whole numbers above a thousand, thousandths below.
fn rounded(value: f64) -> Value {
    if value >= 1_000.0 { json!(value.round() as i64) } else { json!((value * 1e3).round() / 1e3) }
}
