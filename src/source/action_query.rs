//! placeholder
use std::time::Duration;
/// q
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// n
    pub name: String,
    /// s
    pub sql: String,
    /// t
    pub timeout: Duration,
    /// m
    pub max_rows: usize,
}
