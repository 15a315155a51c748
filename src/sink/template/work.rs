//! What a template may take for one row, beyond the steps that the library counts.
//!
//! The library counts each step as one, whatever it costs: one that searches a list or a text of the row costs as much as that is
//! long, and a filter makes gigabytes of a few bytes. So loops, macros, filters and tests look at the CPU time that this row has
//! taken, and filters and operators are asked how much they would make before they make it.

use std::time::Duration;

use minijinja::{Error, ErrorKind, State};
use rustix::time::{ClockId, clock_gettime};

/// The most CPU time of a template for one row: a turn waits for it, and its lock must outlive it.
pub(super) const CPU: Duration = Duration::from_secs(2);
/// The most bytes that filters and operators make for one row, and that is printed: blocks may keep it. In total, because the library
/// does not say what is freed: a value that passes through a block counts at each level.
pub(super) const MADE: usize = 32 << 20;
/// The most elements of a list that a filter takes: more than JSON of the longest text has.
pub(super) const ELEMENTS: usize = 2 << 20;
/// The clock is asked once in so many times: it takes as long as a step of a template.
const LOOK: u32 = 8;

/// What one row has taken so far.
#[derive(Debug)]
struct Taken {
    begun: Duration,
    looks: u32,
    made: usize,
}

impl Default for Taken {
    fn default() -> Self {
        Self { begun: cpu(), looks: 0, made: 0 }
    }
}

/// Our own mark on an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Exhausted {
    /// More CPU time.
    #[error("more than {0:?} of CPU time")]
    Time(Duration),
    /// More bytes or elements.
    #[error("more than {MADE} bytes or {ELEMENTS} elements")]
    Memory,
}

impl From<Exhausted> for Error {
    fn from(exhausted: Exhausted) -> Self {
        Self::new(ErrorKind::InvalidOperation, exhausted.to_string()).with_source(exhausted)
    }
}

/// Goes on, unless this row has taken its time.
pub(super) fn goes_on(state: &mut State<'_, '_>, limit: Duration) -> Result<(), Error> {
    let taken = state.get_or_insert_extension_with(Taken::default);
    taken.looks = taken.looks.wrapping_add(1);
    if taken.looks.is_multiple_of(LOOK) && cpu().saturating_sub(taken.begun) > limit {
        return Err(Exhausted::Time(limit).into());
    }
    Ok(())
}

/// So many bytes are about to be made.
pub(super) fn makes(state: &mut State<'_, '_>, bytes: usize) -> Result<(), Error> {
    let taken = state.get_or_insert_extension_with(Taken::default);
    taken.made = taken.made.saturating_add(bytes);
    if taken.made > MADE { Err(Exhausted::Memory.into()) } else { Ok(()) }
}

/// The CPU time of this thread. A template is printed in one go, on one.
pub(super) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
