//! Strict templates over a row's columns.
