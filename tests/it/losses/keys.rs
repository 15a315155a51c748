//! Keys that the database takes for equal, and shard keys that change.
