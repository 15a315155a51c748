//! What operators see of relays: status, explanations, checks, resharding.

pub mod adopt;
pub mod check;
mod clock_step;
pub mod diagnose;
pub mod explain;
pub mod facts;
pub mod locked;
pub mod observe;
pub mod overview;
pub mod planned;
pub mod reshard;
pub mod status;
pub mod waiting_rows;
