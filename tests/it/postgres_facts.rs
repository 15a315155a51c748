//! The facts about PostgreSQL that the proof of "no row is lost" rests on, each checked on the real server.
//!
//! A fact that fails on a new major version breaks the proof, not only a test: see docs/ARCHITECTURE.md.
