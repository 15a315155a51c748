//! The mails of one turn.

use std::time::SystemTime;

use tokio::time::Instant;

use super::EmailSink;
use super::answer::Step;
use super::mail::Mail;
use crate::batch::Batch;
use crate::sink::{Failure, Flow, Mode, Published};

/// One turn's mails.
#[derive(Debug)]
pub struct EmailPublication<'a> {
    sink: &'a EmailSink,
    mode: Mode,
    acknowledged: usize,
    /// Set while the message number `acknowledged` is on its way; still set in `finish` when `push` was dropped.
    in_flight: bool,
    /// How far that message has come.
    step: Step,
    /// Set when the rate or the time allows no further mail in this turn.
    cut: bool,
    last_mail: Option<Instant>,
    stopped: Option<Failure>,
}

impl EmailSink {
    pub(in crate::sink) fn begin(&self, mode: Mode) -> EmailPublication<'_> {
        EmailPublication {
            sink: self,
            mode,
            acknowledged: 0,
            in_flight: false,
            step: Step::default(),
            cut: false,
            last_mail: None,
            stopped: None,
        }
    }
}

impl<'a> EmailPublication<'a> {
    pub(in crate::sink) fn relay(&self) -> &'a str {
        self.sink.relay()
    }

    pub(in crate::sink) async fn push(&mut self, batch: &Batch) -> Flow {
        for message in batch.messages() {
            if self.in_flight || self.cut || self.stopped.is_some() {
                return Flow::Stop;
            }
            if self.too_early() || self.mode.is_over() {
                self.cut = true;
                return Flow::Stop;
            }
            match self.sink.templates.write(&message, SystemTime::now()) {
                Ok(mail) => self.send(&mail).await,
                Err(failure) => self.stopped = Some(failure),
            }
        }
        if self.stopped.is_some() { Flow::Stop } else { Flow::Continue }
    }

    fn too_early(&self) -> bool {
        match (self.last_mail, self.sink.min_interval) {
            (Some(last), Some(interval)) => last.elapsed() < interval,
            (None, _) | (_, None) => false,
        }
    }

    async fn send(&mut self, mail: &Mail) {
        self.last_mail = Some(Instant::now());
        self.step = Step::default();
        self.in_flight = true;
        let sent = self.sink.send(mail, self.sink.timeout, &mut self.step).await;
        self.in_flight = false;
        match sent {
            Ok(_) => self.acknowledged += 1,
            Err(failure) => self.stopped = Some(failure),
        }
    }

    pub(in crate::sink) fn finish(self) -> Published {
        let stopped = if self.in_flight {
            // Before the last line was begun, the server has no mail.
            Some(Failure { ambiguous: self.step >= Step::Dot, ..Failure::deadline() })
        } else {
            self.stopped
        };
        Published { acknowledged: self.acknowledged, stopped, suspects: 1 }
    }
}
