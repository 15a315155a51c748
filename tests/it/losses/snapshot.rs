//! Snapshots that are older than the lock of the table they read.
