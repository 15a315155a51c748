//! TLS to PostgreSQL, Kafka and HTTP receivers: who cannot prove to be the right server gets nothing.

mod http;
mod kafka;
mod own_certificate;
mod postgres;
