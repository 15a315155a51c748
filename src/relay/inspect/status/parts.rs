//! What stands in a cursor's status: its position, its holder, its sink.

use serde::Serialize;

/// A position.
#[derive(Debug, Serialize)]
pub struct PositionStatus {
    /// `created_at` of the last row passed.
    pub created_at: Option<String>,
    /// Its id.
    pub id: Option<String>,
}

/// A holder.
#[derive(Debug, Serialize)]
pub struct HolderStatus {
    /// The replica that has the lock, or that advanced last.
    pub replica: String,
    /// Its server process, while it has the lock.
    pub pid: Option<i32>,
}

/// A sink.
#[derive(Debug, Serialize)]
pub struct SinkStatus {
    /// Its kind; null when the relay is not configured here.
    pub kind: Option<&'static str>,
    /// `closed`, or `open` while it is out.
    pub circuit: &'static str,
    /// Since when it is open.
    pub opened_at: Option<String>,
}
