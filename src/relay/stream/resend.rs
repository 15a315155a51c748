//! What a turn sends before any new row.

use crate::cursor::dead_letter::Redrive;

/// Rows that are sent before any other.
#[derive(Debug)]
pub(in crate::relay) struct Resend {
    pub(in crate::relay) rows: Vec<Redrive>,
    /// They are rows of keys that were released, and no dead letters; perhaps none of them is left.
    pub(in crate::relay) released: bool,
}
