//! What a turn sends before any new row.

use crate::cursor::dead_letter::Redrive;

/// Rows that are sent before any other.
#[derive(Debug)]
pub(in crate::relay) struct Resend {
    pub(in crate::relay) rows: Vec<Redrive>,
    /// They are rows of keys that were released, and no dead letters; perhaps none of them is left.
    pub(in crate::relay) released: bool,
}

impl Resend {
    /// A single dead letter.
    pub(in crate::relay) fn of(letter: Redrive) -> Self {
        Self { rows: vec![letter], released: false }
    }
}
