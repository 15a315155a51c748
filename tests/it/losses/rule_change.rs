//! A table whose rule becomes weaker under a running relay.
