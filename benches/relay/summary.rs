//! The results in one paragraph.

use serde_json::Value;

use super::latency::{P50_MS, P99_MS, PERCENT};
use super::rates::{CPU_S_PER_MILLION, RATIO};
use super::report::{Goal, thousands};

/// None when a part was not measured.
pub fn summary(document: &Value) -> Option<String> {
    let results = document["results"].as_array()?;
    let find = |is: &dyn Fn(&Value) -> bool| results.iter().find(|entry| is(entry));
    let of = |payload: &str, place: usize| {
        let is =
            |entry: &&Value| entry["name"] == "relay" && entry["payload"] == payload && entry["delay_ms"].is_null();
        results.iter().filter(is).nth(place)
    };
    let relay = of("text", 0)?;
    let latency_of = |lines: bool| {
        let is_of = move |entry: &Value| entry["lines"].as_str().is_some_and(|written| written.is_empty() != lines);
        find(&move |entry| entry["name"] == "latency" && entry["target_per_second"] == 1_000 && is_of(entry))
    };
    let (latency, quick) = (latency_of(false)?, latency_of(true)?);
    let idle = find(&|entry| entry["name"] == "idle")?;
    let takeover = find(&|entry| entry["name"] == "takeover")?;
    let number = |entry: &Value, key: &str| entry[key].as_f64();
    let ratios =
        [("200 B", relay), ("row as JSON", of("row", 0)?), ("1.6 KiB", of("text", 1)?), ("16 KiB", of("text", 2)?)];
    let ratio = |(what, entry): &(&str, &Value)| {
        let ratio = number(entry, "ratio")?;
        Some(format!("{ratio:.2} ({what}: {})", Goal::Least(RATIO).judged(ratio)))
    };
    let ratios: Option<Vec<String>> = ratios.iter().map(ratio).collect();
    let many = find(&|entry| entry["name"] == "many_cursors")?;
    let most = |goal: f64, entry: &Value, key: &str| Some(Goal::Most(goal).told(number(entry, key)?));
    Some(format!(
        "**{rate} rows/s** of 200 bytes of text by one cursor, {cpu:.1} CPU-seconds per million rows ({cpu_goal}).\n\
         At 1,000 rows/s with `latency_window = \"1ms\"` (5 ms by default) p50 {p50:.1} ms, \
         p99 {p99:.1} ms ({p99_goal})\n\
         from `created_at` to the broker's log and {percent:.1}% of a core ({percent_goal}); with `freshness = \"1ms\"` (10 ms by \
         default)\np50 {quick_p50:.1} ms ({p50_goal}) and {quick_percent:.1}% of a core. Idle {idle:.2}%. Takeover after\n\
         SIGKILL {takeover:.0} ms. Of the slower raw limit, where the goal is {goal}: {ratios}.\n\
         {cursors} idle cursors over {tables} tables: {each:.1}% of a core for each of {replicas} replicas, {postgres:.1}% for \
         PostgreSQL;\na row to all cursors of its table: p99 {row:.0} ms.\n",
        ratios = ratios?.join(", "),
        goal = RATIO,
        rate = thousands(number(relay, "rows_per_second")?.round() as u64),
        cpu = number(relay, "cpu_s_per_million")?,
        p50 = number(latency, "p50_ms")?,
        p99 = number(latency, "p99_ms")?,
        percent = number(latency, "cpu_percent")?,
        cpu_goal = most(CPU_S_PER_MILLION, relay, "cpu_s_per_million")?,
        quick_p50 = number(quick, "p50_ms")?,
        quick_percent = number(quick, "cpu_percent")?,
        p50_goal = most(P50_MS, quick, "p50_ms")?,
        p99_goal = most(P99_MS, latency, "p99_ms")?,
        percent_goal = most(PERCENT, latency, "cpu_percent")?,
        idle = number(idle, "cpu_percent")?,
        takeover = number(takeover, "p50_ms")?,
        cursors = thousands(many["cursors"].as_u64()?),
        tables = many["tables"],
        replicas = many["replicas"],
        each = number(&many["idle"], "cpu_percent_median")?,
        postgres = number(&many["idle"], "postgres_cpu_percent")?,
        row = number(many, "p99_ms")?,
    ))
}
