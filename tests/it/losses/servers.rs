//! Sessions of one relay that are on two servers, and cursors made at the same instant.
