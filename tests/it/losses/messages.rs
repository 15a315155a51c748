//! One client message that holds several transactions.
