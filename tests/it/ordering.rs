//! Rows come in the order of `(created_at, id)`, each once, whatever the ids, the ties, the start and the names are.

mod first_request;
mod names;
pub mod plans;
mod start;
mod ties;
