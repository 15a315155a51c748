//! What a unique index promises about values that compare equal.

use tokio_postgres::error::SqlState;

use super::{run, table, value};

/// Under a nondeterministic collation a unique index in "C" takes two values that the column's own comparison calls equal.
///
/// Such collations need a server with ICU; one without refuses to create them, so that no table there can have one.
#[tokio::test]
async fn unique_index_in_c_allows_equal_ids() {
    let (_database, owner) = table("n integer").await;
    let collation = "CREATE COLLATION equal (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
    if let Err(error) = owner.batch_execute(collation).await {
        assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");
        let message = error.as_db_error().unwrap().message();
        assert_eq!(message, "ICU is not supported in this build");
        return;
    }
    run(
        &owner,
        "CREATE TABLE k (created_at timestamptz NOT NULL, id text COLLATE equal NOT NULL); \
         CREATE UNIQUE INDEX ON k (created_at, id COLLATE \"C\"); \
         INSERT INTO k VALUES ('2026-01-01', 'a'), ('2026-01-01', 'A')",
    )
    .await;
    let after = "SELECT count(*) FROM k WHERE (created_at, id) > ('2026-01-01', 'a')";
    assert_eq!(value::<i64>(&owner, after).await, 0, "neither is after the other");
    run(&owner, "TRUNCATE k; CREATE UNIQUE INDEX own ON k (created_at, id); INSERT INTO k VALUES ('2026-01-01', 'a')")
        .await;
    let refused = owner.batch_execute("INSERT INTO k VALUES ('2026-01-01', 'A')").await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::UNIQUE_VIOLATION), "an index in the column's collation refuses it");
}

/// Under a deterministic collation equal means the same bytes: a unique index in any collation keeps ids apart.
#[tokio::test]
async fn deterministic_collation_calls_only_same_bytes_equal() {
    let (_database, owner) = table("id text").await;
    // Two spellings of é: one code point, and e with an accent.
    run(&owner, "CREATE UNIQUE INDEX ON t (id COLLATE \"C\"); INSERT INTO t VALUES (U&'\\00E9'), (U&'e\\0301')").await;
    let apart = "SELECT count(*) FROM t AS a JOIN t AS b ON a.id = b.id";
    assert_eq!(value::<i64>(&owner, apart).await, 2);
}
