//! What the user sees while the demo plays: a few lines that renew themselves on a terminal, plain lines elsewhere.
//! All of it goes to standard error; standard output belongs to the verdict.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// Between two plain lines.
const PLAIN: Duration = Duration::from_secs(2);
/// So many of the last notes stay in view.
const NOTES: usize = 5;

#[derive(Debug)]
pub(super) struct View {
    terminal: bool,
    title: String,
    writing: Duration,
    started: Instant,
    /// Lines of the last drawing, which the next one replaces.
    drawn: usize,
    last_plain: Option<Instant>,
    /// What the last plain line told.
    told: Vec<String>,
    /// The present, in lines.
    present: Vec<String>,
    notes: VecDeque<String>,
}

impl View {
    /// `title` stands above everything; the play lasts `writing`.
    pub(super) fn new(title: String, writing: Duration) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            title,
            writing,
            started: Instant::now(),
            drawn: 0,
            last_plain: None,
            told: Vec::new(),
            present: Vec::new(),
            notes: VecDeque::new(),
        }
    }

    /// Time counts from here.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Something has happened.
    pub(super) fn note(&mut self, text: &str) {
        let line = format!("{:6.1} s  {text}", self.started.elapsed().as_secs_f64());
        if !self.terminal {
            eprintln!("{line}");
            return;
        }
        self.notes.push_back(line);
        if self.notes.len() > NOTES {
            self.notes.pop_front();
        }
        self.draw();
    }

    /// The present.
    pub(super) fn show(&mut self, present: Vec<String>) {
        self.present = present;
        if self.terminal {
            self.draw();
        } else if self.last_plain.is_none_or(|last| last.elapsed() >= PLAIN) {
            self.last_plain = Some(Instant::now());
            eprintln!("{:6.1} s  {}", self.started.elapsed().as_secs_f64(), self.news());
            self.told.clone_from(&self.present);
        }
    }

    /// The present in one line, without what is as the last line told it, and without the columns of a terminal.
    fn news(&self) -> String {
        let told = |(index, line): &(usize, &String)| self.told.get(*index) != Some(*line);
        let narrow = |(_, line): (usize, &String)| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let news = self.present.iter().enumerate().filter(told).map(narrow).collect::<Vec<_>>().join("; ");
        if news.is_empty() { "as before".to_owned() } else { news }
    }

    fn draw(&mut self) {
        // Without line wrap, so that a line stays one line on a narrow terminal, too.
        let mut text = String::from("\x1b[?7l");
        if self.drawn > 0 {
            let _ = write!(text, "\x1b[{}A", self.drawn);
        }
        let mut lines = vec![self.title.clone(), self.progress()];
        lines.extend(self.present.iter().map(|line| format!("  {line}")));
        lines.push(String::new());
        lines.extend(self.notes.iter().cloned());
        for line in &lines {
            let _ = writeln!(text, "\r\x1b[2K{line}");
        }
        self.drawn = self.drawn.max(lines.len());
        for _ in lines.len()..self.drawn {
            let _ = writeln!(text, "\r\x1b[2K");
        }
        text.push_str("\x1b[?7h");
        // A terminal that is gone is no reason to end.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn progress(&self) -> String {
        const WIDTH: usize = 40;
        if self.present.is_empty() {
            return String::new();
        }
        let share = (self.started.elapsed().as_secs_f64() / self.writing.as_secs_f64()).min(1.0);
        let full = (share * WIDTH as f64) as usize;
        let bar = "=".repeat(full) + &" ".repeat(WIDTH - full);
        format!("  [{bar}] {:.0} of {:.0} s", share * self.writing.as_secs_f64(), self.writing.as_secs_f64())
    }
}
