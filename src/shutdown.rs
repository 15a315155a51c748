//! How a process ends: the first signal drains, the second exits at once.
