use super::*;

// Guarantee: queries.limits
#[tokio::test]
async fn a_query_reads_the_tenants_tables_by_their_bare_names_and_each_number_keeps_its_digits() {
    let tenants = Tenants::new().await;
    let answer =
        tenants.ask(&query("SELECT id, total, $1->'least' AS least FROM orders ORDER BY id DESC; -- all")).await;
    assert!(answer.is_err(), "a comment behind a semicolon is more than one query");
    let sql =
        "SELECT id, total, $1->'least' AS least FROM orders WHERE id >= ($1->>'least')::int ORDER BY id DESC -- newest";
    let answer = tenants.ask(&query(sql)).await.unwrap();
    assert_eq!(
        answer.rows,
        [r#"{"id":9007199254740993,"total":98765432109876543210.50,"least":2}"#, r#"{"id":2,"total":1.00,"least":2}"#]
    );
    assert!(!answer.truncated);
    let sql = "SELECT DISTINCT tenant FROM orders;";
    for tenant in [&tenants.a, &tenants.b] {
        let answer = run(&tenants.session, &query(sql), Some(tenant), Some(tenant), "{}").await.unwrap();
        assert_eq!(answer.rows, [format!(r#"{{"tenant":"{tenant}"}}"#)]);
    }
}

// Guarantee: queries.tenant
#[tokio::test]
async fn a_query_reads_neither_another_tenant_nor_what_only_the_relay_may_read() {
    let tenants = Tenants::new().await;
    for sql in [format!("SELECT * FROM {}.orders", tenants.b), "SELECT * FROM outbox.control".to_owned()] {
        let unanswered = tenants.refused(&sql).await;
        assert_eq!(unanswered.code, "query_failed");
        assert!(unanswered.message.contains("permission denied"), "{unanswered:?}");
    }
    assert!(run(&tenants.session, &query("SELECT * FROM outbox.control"), None, None, "{}").await.is_ok());
}

// Guarantee: queries.tenant
#[tokio::test]
async fn security_by_rows_holds_for_the_tenant() {
    let tenants = Tenants::new().await;
    let sql = format!(
        "CREATE TABLE public.shared (tenant name, n integer); ALTER TABLE public.shared ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY own ON public.shared USING (tenant = current_user); \
         INSERT INTO public.shared VALUES ('{0}', 1), ('{1}', 2); GRANT SELECT ON public.shared TO {0}, {1}",
        tenants.a, tenants.b
    );
    tenants.owner.batch_execute(&sql).await.unwrap();
    let answer = tenants.ask(&query("SELECT n FROM public.shared")).await.unwrap();
    assert_eq!(answer.rows, [r#"{"n":1}"#]);
}

// Guarantee: queries.role-refused
#[tokio::test]
async fn a_role_that_the_relay_may_not_become_is_refused_with_the_grant_that_fixes_it() {
    let tenants = Tenants::new().await;
    let stranger = format!("{}_stranger", tenants.database.name);
    let long = format!("{}{}", tenants.a, "x".repeat(63 - tenants.a.len()));
    let sql = format!("CREATE ROLE {stranger}; CREATE ROLE {long}; GRANT {long} TO relay");
    tenants.owner.batch_execute(&sql).await.unwrap();
    let before = tenants.standing().await;
    for role in [stranger.as_str(), "no such \"role\"", "none", "NONE", "postgres", &format!("{long}y")] {
        let unanswered = run(&tenants.session, &query("SELECT 1"), Some(role), None, "{}").await.expect_err(role);
        assert_eq!((unanswered.code, unanswered.passing), ("query_role", false), "{unanswered:?}");
        let grant = format!("GRANT \"{}\" TO \"relay\"", role.replace('"', "\"\""));
        assert!(unanswered.hint.ends_with(&grant), "{unanswered:?}");
    }
    assert_eq!(tenants.standing().await, before);
    tenants.owner.batch_execute(&format!("GRANT {stranger} TO relay")).await.unwrap();
    let answer = run(&tenants.session, &query("SELECT current_user AS me"), Some(&stranger), None, "{}").await.unwrap();
    assert_eq!(answer.rows, [format!(r#"{{"me":"{stranger}"}}"#)]);
}

#[tokio::test]
async fn without_the_right_to_temporary_objects_the_grant_is_told() {
    let tenants = Tenants::new().await;
    let (database, a) = (&tenants.database.name, &tenants.a);
    tenants.owner.batch_execute(&format!("REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC")).await.unwrap();
    let unanswered = tenants.refused("SELECT 1").await;
    assert_eq!(unanswered.code, "query_role");
    assert!(
        unanswered.hint.ends_with(&format!("GRANT TEMPORARY ON DATABASE the_database TO \"{a}\"")),
        "{unanswered:?}"
    );
    tenants.owner.batch_execute(&format!("GRANT TEMPORARY ON DATABASE {database} TO {a}")).await.unwrap();
    assert!(tenants.ask(&query("SELECT 1")).await.is_ok());
}
