//! Relays that share the role of the application.
