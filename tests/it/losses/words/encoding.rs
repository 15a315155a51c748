//! Rows with bytes that are no UTF-8.
