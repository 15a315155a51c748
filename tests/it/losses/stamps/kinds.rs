//! Kinds of tables, of which the SQL that `check` prints makes the order proven.

/// What stands before `check` prints its SQL: how `s.bookings` is made, and a partition that comes later.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK)", ""),
    ("CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now())", ""),
    ("CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL)", ""),
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK) PARTITION BY HASH (id); \
         CREATE TABLE s.half PARTITION OF s.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 1) PARTITION BY HASH (id); \
         CREATE TABLE s.leaf PARTITION OF s.half FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "CREATE TABLE s.other PARTITION OF s.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
    ),
    (
        "CREATE TABLE s.bookings (id bigint, created_at DEFAULT_CLOCK, PRIMARY KEY (created_at, id)) \
         PARTITION BY RANGE (created_at); \
         CREATE TABLE s.past PARTITION OF s.bookings FOR VALUES FROM (MINVALUE) TO ('2000-01-01')",
        "CREATE TABLE s.rest (LIKE s.bookings INCLUDING ALL); \
         ALTER TABLE s.bookings ATTACH PARTITION s.rest FOR VALUES FROM ('2000-01-01') TO (MAXVALUE)",
    ),
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK); \
         CREATE TABLE s.child (PRIMARY KEY (id)) INHERITS (s.bookings)",
        "",
    ),
    // Other triggers: one that sorts later, one that changes the column in updates of others.
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK); \
         CREATE TRIGGER zzz_late BEFORE INSERT ON s.bookings FOR EACH ROW EXECUTE FUNCTION back_date(); \
         CREATE TRIGGER \"~\" BEFORE UPDATE OF id ON s.bookings FOR EACH ROW EXECUTE FUNCTION back_date()",
        "",
    ),
    // The trigger is there, but not always.
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK) PARTITION BY HASH (id); \
         CREATE TABLE s.leaf PARTITION OF s.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 0); STAMP ON s.bookings CALL",
        "CREATE TABLE s.other PARTITION OF s.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    ),
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK); STAMP ON s.bookings CALL; \
         ALTER TABLE s.bookings DISABLE TRIGGER zz_stamp_created_at",
        "",
    ),
    // A partition has one of its own, or another state of its parent's.
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK) PARTITION BY HASH (id); \
         CREATE TABLE s.leaf PARTITION OF s.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 0); STAMP ON s.leaf CALL; \
         ALTER TABLE s.leaf ENABLE ALWAYS TRIGGER zz_stamp_created_at",
        "CREATE TABLE s.other PARTITION OF s.bookings FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    ),
    (
        "CREATE TABLE s.bookings (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK) PARTITION BY HASH (id); \
         CREATE TABLE s.leaf PARTITION OF s.bookings FOR VALUES WITH (MODULUS 1, REMAINDER 0); STAMP ON s.bookings CALL; \
         ALTER TABLE s.bookings ENABLE ALWAYS TRIGGER zz_stamp_created_at; \
         ALTER TABLE s.leaf ENABLE REPLICA TRIGGER zz_stamp_created_at",
        "",
    ),
    // The relay reads a partition.
    (
        "CREATE TABLE s.root (id bigint PRIMARY KEY, created_at DEFAULT_CLOCK) PARTITION BY HASH (id); \
         CREATE TABLE s.bookings PARTITION OF s.root FOR VALUES WITH (MODULUS 1, REMAINDER 0); STAMP ON s.bookings CALL",
        "",
    ),
];
