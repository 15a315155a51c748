//! The figures of a run: lines for people, and entries of `results` for programs.

use std::fmt::Write as _;

use serde_json::Value;

use super::figure::median;

/// All that has been measured so far.
#[derive(Debug, Default)]
pub struct Report {
    /// The entries of `results`, in the document's order.
    pub results: Vec<Value>,
    /// Parts that ended with an error; what they had measured before is kept.
    pub failed: Vec<String>,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    title: String,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    what: String,
    median: String,
    range: String,
    unit: String,
    note: String,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// At least this.
    Least(f64),
    /// At most this.
    Most(f64),
}

impl Goal {
    /// The goal, and whether a value meets it. Below the noise of what is printed nothing is decided.
    pub fn told(self, value: f64) -> String {
        let (sign, bound) = match self {
            Self::Least(bound) => ("≥", bound),
            Self::Most(bound) => ("≤", bound),
        };
        format!("goal {sign} {bound}: {}", self.judged(value))
    }

    /// Whether a value meets it, in a word.
    pub fn judged(self, value: f64) -> &'static str {
        let met = match self {
            Self::Least(bound) => value >= bound,
            Self::Most(bound) => value <= bound,
        };
        if met { "met" } else { "missed" }
    }
}

impl Report {
    /// What follows belongs to this.
    pub fn section(&mut self, title: impl Into<String>) {
        self.sections.push(Section { title: title.into(), lines: Vec::new() });
    }

    /// A figure of several runs, with what is to be said of it.
    pub fn line(&mut self, what: &str, runs: &[f64], unit: &str, note: impl Into<String>) {
        let (low, high) = runs.iter().fold((f64::MAX, f64::MIN), |(low, high), run| (low.min(*run), high.max(*run)));
        let range = if runs.len() > 1 { format!("{} – {}", number(low), number(high)) } else { String::new() };
        let line =
            Line { what: what.into(), median: number(median(runs)), range, unit: unit.into(), note: note.into() };
        match self.sections.last_mut() {
            Some(section) => section.lines.push(line),
            None => self.sections.push(Section { title: String::new(), lines: vec![line] }),
        }
    }

    /// The same with a goal for the median.
    pub fn judged(&mut self, what: &str, runs: &[f64], unit: &str, goal: Goal) {
        self.line(what, runs, unit, goal.told(median(runs)));
    }

    /// Rows a second of an entry that has been written already; the first of its name and payload.
    pub fn found(&self, name: &str, payload: &str) -> Option<f64> {
        let is = |entry: &&Value| entry["name"] == name && entry["payload"] == payload;
        self.results.iter().find(is)?["rows_per_second"].as_f64()
    }

    /// The table in plain text.
    pub fn text(&self) -> String {
        let mut text = format!("{:<40}{:>12}{:>24}   unit, beside what, goal\n", "what", "median", "lowest – highest");
        for Section { title, lines } in &self.sections {
            let _ = writeln!(text, "{title}");
            for Line { what, median, range, unit, note } in lines {
                let what = format!("  {what}");
                let line = format!("{what:<40}{median:>12}{range:>24}   {unit}  {note}");
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        for failed in &self.failed {
            let _ = writeln!(text, "FAILED: {failed}");
        }
        text
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let mut text =
            "| what | median | lowest – highest | unit | beside what, goal |\n|---|--:|--:|---|---|\n".to_owned();
        for Section { title, lines } in &self.sections {
            let _ = writeln!(text, "| **{title}** | | | | |");
            for Line { what, median, range, unit, note } in lines {
                let _ = writeln!(text, "| {what} | {median} | {range} | {unit} | {note} |");
            }
        }
        text
    }
}

/// A number as people read it: thousands with commas, below a hundred with what still says something.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "–".into();
    }
    if value.abs() < 1.0 && value != 0.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 1_000.0 {
        return format!("{value:.1}").trim_end_matches(".0").to_owned();
    }
    thousands(value.round() as u64)
}

/// A whole number with commas.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
