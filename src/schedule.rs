//! When a schedule is due: recurrence rules after RFC 5545, in the time zones of people.
//!
//! Pure. Three steps: the text becomes checked parts (`rule`), the parts give local times (`calendar`, with days from
//! the crate `rrule`) or instants (`clock`, for what counts in hours and less), and a `zone` makes instants of local
//! times. [`Recurrence`] bounds and orders the result. No text can hang a computation: years end with 2200, and steps are
//! counted.

mod calendar;
mod clock;
mod english;
mod problem;
mod recurrence;
mod rule;
mod walk;
mod zone;

pub use english::english;
pub use problem::Problem;
pub use recurrence::{Recurrence, When};
pub use walk::{Occurrence, Wall};

#[cfg(test)]
mod tests;
