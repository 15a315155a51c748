use super::*;

// Guarantee: queries.limits
#[tokio::test]
async fn a_query_ends_in_time_also_where_it_waits_for_a_lock() {
    let tenants = Tenants::new().await;
    let brief = |sql: &str| Query { timeout: Duration::from_millis(200), ..query(sql) };
    tenants.owner.batch_execute(&format!("BEGIN; LOCK TABLE {}.orders", tenants.a)).await.unwrap();
    for sql in ["SELECT pg_sleep(1000)", "SELECT * FROM orders"] {
        let unanswered = tenants.ask(&brief(sql)).await.unwrap_err();
        assert_eq!((unanswered.code, unanswered.passing), ("query_timeout", false), "{unanswered:?}");
        assert_eq!(unanswered.message, "The query open_orders was ended after 200ms");
    }
    tenants.owner.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(tenants.ask(&query("SELECT * FROM orders")).await.unwrap().rows.len(), 2);
}

#[tokio::test]
async fn a_query_may_take_longer_than_a_turn() {
    let tenants = Tenants::new().await;
    // The session's own limits are those of a turn; the last exists from PostgreSQL 17 on.
    for name in ["statement_timeout", "lock_timeout", "transaction_timeout"] {
        let sql = format!("SELECT set_config(name, '1s', false) FROM pg_catalog.pg_settings WHERE name = '{name}'");
        tenants.session.batch_execute(&sql).await.unwrap();
    }
    assert_eq!(tenants.ask(&query("SELECT 1 AS n FROM pg_sleep(1.5)")).await.unwrap().rows, [r#"{"n":1}"#]);
}

// Guarantee: queries.limits
#[tokio::test]
async fn rows_beyond_the_bound_are_left_out_and_that_is_said() {
    let tenants = Tenants::new().await;
    for (rows, truncated) in [(4, false), (5, false), (6, true), (1_000_000, true)] {
        let sql = format!("SELECT n FROM generate_series(1, {rows}) AS n");
        let answer = tenants.ask(&Query { max_rows: 5, ..query(&sql) }).await.unwrap();
        let expected: Vec<String> = (1..=rows.min(5)).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
        assert_eq!(answer, Reported { rows: expected, truncated });
    }
}

// Guarantee: queries.limits
#[tokio::test]
async fn an_answer_above_a_mebibyte_is_refused_whether_it_is_one_row_or_many() {
    let tenants = Tenants::new().await;
    for sql in ["SELECT repeat('x', 3000000) AS x", "SELECT repeat('x', 2000) AS x FROM generate_series(1, 1000)"] {
        let unanswered = tenants.refused(sql).await;
        assert_eq!((unanswered.code, unanswered.passing), ("query_too_large", false), "{unanswered:?}");
    }
    let answer = tenants.ask(&query("SELECT repeat('x', 1000) AS x FROM generate_series(1, 1000)")).await.unwrap();
    assert_eq!(answer.rows.len(), 1000);
}

#[tokio::test]
async fn a_session_that_has_ended_is_the_servers_matter() {
    let tenants = Tenants::new().await;
    let closed = tenants.session.closed();
    let pid = tenants.session.pid;
    tenants.owner.query_one("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
    closed.cancelled().await;
    let unanswered = tenants.refused("SELECT 1").await;
    assert_eq!((unanswered.code, unanswered.passing), ("query_no_answer", true));
}
