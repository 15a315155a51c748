//! The plots: throughput beside the raw limits, and latency by rate. Drawn from the document alone.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

use super::payload::Payload;
use super::report::thousands;

const INK: RGBColor = RGBColor(0x1f, 0x29, 0x33);
const SOFT: RGBColor = RGBColor(0x61, 0x6e, 0x7c);
const RULE: RGBColor = RGBColor(0xd5, 0xda, 0xe1);
const READ: RGBColor = RGBColor(0xb8, 0xc4, 0xd6);
const PRODUCE: RGBColor = RGBColor(0x8a, 0x9b, 0xb5);
const RELAY: RGBColor = RGBColor(0x0b, 0x6e, 0x99);
const SLOW: RGBColor = RGBColor(0xe0, 0x8e, 0x45);

const WIDTH: i32 = 960;
const HEIGHT: i32 = 420;
const TOP: i32 = 122;
const BOTTOM: i32 = 336;
const BAR: i32 = 52;
const FONT: &str = "Helvetica, Arial, sans-serif";

type Drawn = anyhow::Result<()>;

/// Draws what the document holds into a directory; a part that was not measured has no plot.
pub fn draw(document: &Value, dir: &Path) -> Drawn {
    let results = document["results"].as_array().map_or(&[][..], Vec::as_slice);
    let named = |name: &str| results.iter().filter(|entry| entry["name"] == name).collect::<Vec<_>>();
    let place = place(document);
    if !named("relay").is_empty() && !named("read_raw").is_empty() {
        throughput(results, &place, &dir.join("throughput.svg"))?;
    }
    let mut latencies = named("latency");
    latencies.retain(|entry| entry["lines"] == "");
    if !latencies.is_empty() {
        latency(&latencies, &place, &dir.join("latency.svg"))?;
    }
    Ok(())
}

fn place(document: &Value) -> String {
    let machine = &document["machine"];
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let at = word(&document["at"]);
    format!(
        "{} cores ({}) shared by PostgreSQL {}, Apache Kafka {} and the relay · {} · {}",
        machine["cores"],
        word(&machine["cpu"]),
        word(&machine["postgres"]),
        word(&machine["kafka"]),
        at.split('T').next().unwrap_or_default(),
        word(&document["commit"])
    )
}

fn throughput(results: &[Value], place: &str, file: &Path) -> Drawn {
    let backend = SVGBackend::new(file, (WIDTH as u32, HEIGHT as u32));
    let page = Page(backend.into_drawing_area());
    page.0.fill(&WHITE)?;
    page.text("Throughput: one cursor beside the raw limits of the machine", (32, 34), 22, &INK, HPos::Left)?;
    let sub = "rows a second, medians; read: PostgreSQL read and nothing else; produce: Kafka written, idempotent, acks=all; goal: 85 %";
    page.text(sub, (32, 60), 14, &SOFT, HPos::Left)?;
    let panel = (WIDTH - 64) / Payload::ALL.len() as i32;
    for (index, payload) in (0..).zip(Payload::ALL) {
        let rates = ["read_raw", "produce_raw", "relay"].map(|name| rate(results, name, index as usize));
        let left = 32 + panel * index;
        page.text(payload.title(), (left + panel / 2, TOP - 26), 15, &INK, HPos::Center)?;
        let highest = rates.into_iter().flatten().fold(f64::MIN_POSITIVE, f64::max);
        let bars = [("read", &READ), ("produce", &PRODUCE), ("relay", &RELAY)];
        for (number, ((label, colour), rate)) in (0..).zip(bars.into_iter().zip(rates)) {
            let Some(rate) = rate else { continue };
            let middle = left + panel / 2 + (number - 1) * (BAR + 10);
            let top = BOTTOM - ((BOTTOM - TOP - 20) as f64 * rate / highest) as i32;
            page.bar(middle, top, colour)?;
            page.text(&short(rate), (middle, top - 9), 14, &INK, HPos::Center)?;
            page.text(label, (middle, BOTTOM + 16), 13, &SOFT, HPos::Center)?;
        }
        page.line((left + 14, BOTTOM), (left + panel - 14, BOTTOM), &SOFT)?;
        let limit = rates[0].into_iter().chain(rates[1]).fold(f64::MAX, f64::min);
        if let Some(relay) = rates[2] {
            let text = format!("{:.0} % of the slower limit", relay * 100.0 / limit);
            page.text(&text, (left + panel / 2, BOTTOM + 40), 14, &RELAY, HPos::Center)?;
        }
    }
    page.text(place, (32, HEIGHT - 18), 12, &SOFT, HPos::Left)?;
    Ok(page.0.present()?)
}

/// Rows a second of the so-manieth entry of a name that was measured without delay: the payloads in their order.
fn rate(results: &[Value], name: &str, index: usize) -> Option<f64> {
    let mut entries = results.iter().filter(|entry| entry["name"] == name && entry["delay_ms"].is_null());
    entries.nth(index)?["rows_per_second"].as_f64()
}

fn latency(entries: &[&Value], place: &str, file: &Path) -> Drawn {
    let backend = SVGBackend::new(file, (WIDTH as u32, HEIGHT as u32));
    let page = Page(backend.into_drawing_area());
    page.0.fill(&WHITE)?;
    page.text("Latency: single rows, from created_at to the broker's log", (32, 34), 22, &INK, HPos::Left)?;
    let sub = "milliseconds, latency_window 1 ms, freshness 10 ms, each row committed by itself; goal for p99: 10 ms";
    page.text(sub, (32, 60), 14, &SOFT, HPos::Left)?;
    for (x, colour, label) in [(WIDTH - 262, &RELAY, "median (p50)"), (WIDTH - 132, &SLOW, "p99")] {
        page.0.draw(&Rectangle::new([(x, 82), (x + 14, 96)], colour.filled()))?;
        page.text(label, (x + 22, 89), 14, &INK, HPos::Left)?;
    }
    let value = |entry: &Value, key: &str| entry[key].as_f64().unwrap_or(0.0);
    let highest = entries.iter().map(|entry| value(entry, "p99_ms")).fold(f64::MIN_POSITIVE, f64::max);
    let step = step(highest);
    let end = (highest / step).ceil() * step;
    let height = |ms: f64| BOTTOM - ((BOTTOM - TOP) as f64 * ms / end) as i32;
    let (left, right) = (84, WIDTH - 32);
    for number in 0..=(end / step).round() as u32 {
        let ms = f64::from(number) * step;
        page.line((left, height(ms)), (right, height(ms)), if number == 0 { &SOFT } else { &RULE })?;
        page.text(&format!("{ms} ms"), (left - 10, height(ms)), 13, &SOFT, HPos::Right)?;
    }
    let group = (right - left) / entries.len() as i32;
    for (index, entry) in (0..).zip(entries) {
        let middle = left + group * index + group / 2;
        for (shift, key, colour) in [(-34, "p50_ms", &RELAY), (34, "p99_ms", &SLOW)] {
            let ms = value(entry, key);
            page.bar(middle + shift, height(ms), colour)?;
            page.text(&format!("{ms:.1}"), (middle + shift, height(ms) - 10), 14, &INK, HPos::Center)?;
        }
        let rate = entry["target_per_second"].as_u64().unwrap_or_default();
        page.text(&format!("{} rows/s", thousands(rate)), (middle, BOTTOM + 18), 15, &INK, HPos::Center)?;
        let cpu = format!("processor: {:.1} % of a core", value(entry, "cpu_percent"));
        page.text(&cpu, (middle, BOTTOM + 40), 13, &SOFT, HPos::Center)?;
    }
    page.text(place, (32, HEIGHT - 18), 12, &SOFT, HPos::Left)?;
    Ok(page.0.present()?)
}

/// A round distance of lines, four to eight of them.
fn step(highest: f64) -> f64 {
    let rough = highest / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(power * 10.0)
}

/// Three digits and their power of a thousand.
fn short(rate: f64) -> String {
    let (value, unit) = match rate {
        rate if rate >= 999_500.0 => (rate / 1e6, " M"),
        rate if rate >= 1e3 => (rate / 1e3, " k"),
        rate => (rate, ""),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$}{unit}")
}

/// What is drawn on.
struct Page<'a>(DrawingArea<SVGBackend<'a>, Shift>);

impl Page<'_> {
    fn text(&self, text: &str, at: (i32, i32), size: i32, colour: &RGBColor, side: HPos) -> Drawn {
        let style = TextStyle::from((FONT, size)).color(colour).pos(Pos::new(side, VPos::Center));
        Ok(self.0.draw(&Text::new(text, at, style))?)
    }

    fn bar(&self, middle: i32, top: i32, colour: &RGBColor) -> Drawn {
        let corners = [(middle - BAR / 2, top), (middle + BAR / 2, BOTTOM)];
        Ok(self.0.draw(&Rectangle::new(corners, colour.filled()))?)
    }

    fn line(&self, from: (i32, i32), to: (i32, i32), colour: &RGBColor) -> Drawn {
        Ok(self.0.draw(&PathElement::new([from, to], colour.stroke_width(1)))?)
    }
}
