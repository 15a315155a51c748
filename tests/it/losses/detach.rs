//! Partitions that are detached, wait to be detached, or return.
