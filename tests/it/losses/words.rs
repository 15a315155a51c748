//! What status and cursor why say of rows that are not delivered.
