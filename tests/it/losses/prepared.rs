//! Transactions that are prepared while a scan runs.
