use super::*;

/// Functions of the tenant's that try to get out.
const ATTEMPTS: [(&str, &str, &str, &str); 9] = [
    ("inserts", "INSERT INTO orders VALUES (3)", "query_writes", "INSERT"),
    ("counts", "PERFORM nextval('counter')", "query_writes", "nextval()"),
    ("unlocks", "SET TRANSACTION READ WRITE; INSERT INTO orders VALUES (3)", "query_failed", "read-write"),
    ("sets", "PERFORM set_config('transaction_read_only', 'off', true)", "query_failed", "read-write"),
    ("commits", "COMMIT", "query_failed", "transaction"),
    ("resets", "RESET ROLE; PERFORM count(*) FROM outbox.control", "query_failed", "security-definer"),
    ("becomes", "SET LOCAL ROLE relay", "query_failed", "security-definer"),
    ("authorizes", "SET SESSION AUTHORIZATION DEFAULT", "query_failed", "security-definer"),
    ("configures", "PERFORM set_config('role', 'none', false)", "query_failed", "security-definer"),
];

// Guarantee: queries.read-only
#[tokio::test]
async fn a_query_writes_nothing_and_never_becomes_the_relay_whatever_the_functions_try_that_it_calls() {
    let tenants = Tenants::new().await;
    for (name, body, code, told) in ATTEMPTS {
        tenants.function(name, body).await;
        let unanswered = tenants.refused(&format!("SELECT {name}()")).await;
        assert_eq!(unanswered.code, code, "{name}: {unanswered:?}");
        assert!(unanswered.message.contains(told) && !unanswered.passing, "{name}: {unanswered:?}");
    }
    untouched(&tenants).await;
}

// Guarantee: queries.read-only
#[tokio::test]
async fn a_function_with_more_rights_than_the_tenant_writes_nothing_either() {
    let tenants = Tenants::new().await;
    let a = &tenants.a;
    let sql = format!(
        "CREATE FUNCTION {a}.privileged() RETURNS bigint LANGUAGE sql SECURITY DEFINER \
         AS 'INSERT INTO {a}.orders VALUES (3) RETURNING id'; GRANT EXECUTE ON FUNCTION {a}.privileged TO {a}"
    );
    tenants.owner.batch_execute(&sql).await.unwrap();
    assert_eq!(tenants.refused("SELECT privileged()").await.code, "query_writes");
    untouched(&tenants).await;
}

// Guarantee: queries.read-only
#[tokio::test]
async fn statements_that_write_or_end_the_transaction_are_no_query() {
    let tenants = Tenants::new().await;
    for (sql, code) in [
        ("SELECT nextval('counter')", "query_writes"),
        ("WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone", "query_failed"),
        ("DELETE FROM orders RETURNING *", "query_failed"),
        ("SELECT 1) AS x; DELETE FROM orders; SELECT * FROM (SELECT 1", "query_failed"),
        ("SELECT 1) AS x; COMMIT; SELECT * FROM (SELECT 1", "query_failed"),
        ("SELECT 1; SELECT 2", "query_failed"),
        ("SELECT * FROM orders FOR UPDATE", "query_failed"),
    ] {
        let unanswered = tenants.refused(sql).await;
        assert_eq!((unanswered.code, unanswered.passing), (code, false), "{sql}: {unanswered:?}");
    }
    untouched(&tenants).await;
}

async fn untouched(tenants: &Tenants) {
    let sql = format!("SELECT (SELECT count(*) FROM {0}.orders), (SELECT is_called FROM {0}.counter)", tenants.a);
    let row = tenants.owner.query_one(&sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (2, false));
}

// Guarantee: queries.session
#[tokio::test]
async fn no_trace_is_left_in_the_session() {
    let tenants = Tenants::new().await;
    tenants
        .function("leaves", "PERFORM pg_advisory_lock(7), set_config('app.tenant', 'a', false); SET work_mem = '1MB'")
        .await;
    tenants.function("fails", "PERFORM pg_advisory_lock(7); SET search_path = nowhere; RAISE 'no'").await;
    let before = tenants.standing().await;
    assert!(tenants.ask(&query("SELECT leaves()")).await.is_ok());
    assert_eq!(tenants.standing().await, before);
    assert_eq!(tenants.refused("SELECT fails()").await.code, "query_failed");
    assert_eq!(tenants.standing().await, before);
    assert_eq!(tenants.ask(&query("SELECT 1 AS one")).await.unwrap().rows, [r#"{"one":1}"#]);

    tenants.function("prepares", "EXECUTE 'PREPARE s1 AS SELECT 1'").await;
    let unanswered = tenants.refused("SELECT prepares()").await;
    assert_eq!(unanswered.code, "query_writes");
    assert!(unanswered.message.contains("prepared statements"), "{unanswered:?}");
}
