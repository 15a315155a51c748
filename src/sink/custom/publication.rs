//! One turn's publishing through a sink of one's own.

use std::time::{Duration, Instant};

use super::{Adapter, Stopped};
use crate::batch::Batch;
use crate::sink::http::answer::LONGEST_PAUSE;
use crate::sink::{Class, Failure, Flow, Mode, Published};
use crate::visible::bounded;

/// Codes of own sinks begin so, and mean nothing that other sinks' codes mean.
const PREFIX: &str = "custom_";
/// How long code and texts of a failure can be.
const LONGEST_CODE: usize = 60;
const LONGEST_TEXT: usize = 1024;
/// For a publication that nothing bounds.
const UNBOUNDED: Duration = Duration::from_secs(30);

/// One turn's messages.
#[derive(Debug)]
pub struct CustomPublication<'a> {
    sink: &'a Adapter,
    mode: Mode,
    acknowledged: usize,
    /// Set while messages may be on their way; still set in `finish` when `push` was dropped.
    in_flight: bool,
    /// Set when nothing more may be handed over in this turn.
    cut: bool,
    last: Option<Instant>,
    stopped: Option<Failure>,
    suspects: usize,
}

impl<'a> CustomPublication<'a> {
    pub(super) const fn new(sink: &'a Adapter, mode: Mode) -> Self {
        Self { sink, mode, acknowledged: 0, in_flight: false, cut: false, last: None, stopped: None, suspects: 1 }
    }

    pub(in crate::sink) async fn push(&mut self, batch: &Batch) -> Flow {
        let alone = self.mode.alone || self.sink.description.one_by_one;
        let all = self.sink.deliveries(batch, self.mode.mark);
        for part in all.chunks(if alone { 1 } else { all.len().max(1) }) {
            if self.in_flight || self.cut || self.stopped.is_some() {
                return Flow::Stop;
            }
            if self.too_early() || self.mode.is_over() {
                self.cut = true;
                return Flow::Stop;
            }
            (self.last, self.in_flight) = (Some(Instant::now()), true);
            let answer = self.sink.publish(part, self.deadline()).await;
            self.in_flight = false;
            self.note(part.len(), answer);
        }
        if self.stopped.is_some() { Flow::Stop } else { Flow::Continue }
    }

    fn too_early(&self) -> bool {
        match (self.last, self.sink.min_interval()) {
            (Some(last), Some(interval)) => last.elapsed() < interval,
            (None, _) | (_, None) => false,
        }
    }

    /// A little before the turn's end: an answer that comes with it is not heard.
    fn deadline(&self) -> Instant {
        let now = Instant::now();
        let end = self.mode.cut.or(self.mode.until);
        end.map_or(now + UNBOUNDED, |end| now + end.saturating_duration_since(now).mul_f64(0.9))
    }

    fn note(&mut self, sent: usize, answer: Result<(), Stopped>) {
        match answer {
            Ok(()) => self.acknowledged += sent,
            Err(stopped) if stopped.acknowledged >= sent => self.stopped = Some(contradiction(&stopped, sent)),
            Err(stopped) => {
                self.acknowledged += stopped.acknowledged;
                self.suspects = stopped.suspects.clamp(1, sent - stopped.acknowledged);
                self.stopped = Some(of_own(stopped.failure));
            }
        }
    }

    pub(in crate::sink) fn finish(self) -> Published {
        let stopped = if self.in_flight { Some(Failure::deadline()) } else { self.stopped };
        Published { acknowledged: self.acknowledged, stopped, suspects: self.suspects }
    }
}

/// What a sink of one's own says, in a form that columns, logs and terminals can hold; its code is no other sink's.
pub(super) fn of_own(failure: Failure) -> Failure {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let word: String = failure.code.chars().map(plain).take(LONGEST_CODE).collect();
    let code = if word.starts_with(PREFIX) { word } else { format!("{PREFIX}{word}") };
    Failure {
        class: failure.class,
        ambiguous: failure.ambiguous,
        subject: failure.subject,
        code,
        message: bounded(&failure.message, LONGEST_TEXT),
        hint: bounded(&failure.hint, LONGEST_TEXT),
        retry_after: failure.retry_after.map(|pause| pause.min(LONGEST_PAUSE)),
    }
}

/// A sink that has failed behind its last message has a mistake, and what it says of the others cannot be believed.
fn contradiction(stopped: &Stopped, sent: usize) -> Failure {
    let message = format!(
        "The sink was given {sent} messages and says that {} were accepted, and that one was not ({})",
        stopped.acknowledged,
        of_own(stopped.failure.clone()).code
    );
    let hint =
        "Correct the sink: Stopped::after(n, …) is about the message behind the first n of those that it was given.";
    Failure { ambiguous: true, ..Failure::of(Class::Fatal, "custom_contradiction", message, hint) }
}
