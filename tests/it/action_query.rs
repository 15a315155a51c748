//! The query of an action: it reads what the tenant may read, changes nothing, and leaves no trace in the session.

use std::time::Duration;

use outbox_relay::database::Session;
use outbox_relay::source::action_query::{Query, Reported, Unanswered, run};
use tokio_postgres::Client;

use crate::support::{Database, database, sessions};

mod limits;
mod roles;
mod writes;

fn query(sql: &str) -> Query {
    Query {
        name: "open_orders".to_owned(),
        sql: sql.to_owned(),
        timeout: Duration::from_secs(60),
        when: None,
        max_rows: 1000,
    }
}

/// A database with two tenants, and a session as the relay opens it.
struct Tenants {
    database: Database,
    owner: Client,
    session: Session,
    a: String,
    b: String,
}

impl Tenants {
    /// Roles are the cluster's, so their names are made of the database's. Each owns its schema, with orders in it.
    async fn new() -> Self {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let [a, b] = ["a", "b"].map(|name| format!("{}_{name}", database.name));
        for tenant in [&a, &b] {
            let sql = format!(
                "CREATE ROLE {tenant}; GRANT {tenant} TO relay; CREATE SCHEMA {tenant} AUTHORIZATION {tenant}; \
                 SET ROLE {tenant}; \
                 CREATE TABLE {tenant}.orders (id bigint, tenant text DEFAULT '{tenant}', total numeric); \
                 CREATE SEQUENCE {tenant}.counter; \
                 INSERT INTO {tenant}.orders VALUES (9007199254740993, DEFAULT, 98765432109876543210.50), (2, DEFAULT, 1.00); \
                 RESET ROLE"
            );
            owner.batch_execute(&sql).await.unwrap();
        }
        let session = sessions(&database, "relay", "test").open().await.unwrap();
        // Loaded at its first use, the language brings settings of its own.
        session.batch_execute("DO 'BEGIN END'").await.unwrap();
        Self { database, owner, session, a, b }
    }

    /// Makes a function of tenant a, as that tenant.
    async fn function(&self, name: &str, body: &str) {
        let a = &self.a;
        let sql = format!(
            "SET ROLE {a}; CREATE FUNCTION {a}.{name}() RETURNS integer LANGUAGE plpgsql AS $f$ BEGIN {body}; RETURN 1; END $f$; \
             RESET ROLE"
        );
        self.owner.batch_execute(&sql).await.unwrap();
    }

    /// As tenant a.
    async fn ask(&self, query: &Query) -> Result<Reported, Unanswered> {
        run(&self.session, query, Some(&self.a), Some(&self.a), r#"{"least": 2}"#).await
    }

    async fn refused(&self, sql: &str) -> Unanswered {
        self.ask(&query(sql)).await.expect_err(sql)
    }

    /// All that a user of the session could notice.
    async fn standing(&self) -> String {
        let sql = "SELECT current_user || session_user || (SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) \
                   FROM pg_catalog.pg_settings) || (SELECT count(*) FROM pg_catalog.pg_prepared_statements)::text \
                   || (SELECT count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory' \
                       AND pid = pg_catalog.pg_backend_pid())::text \
                   || (SELECT count(*) FROM pg_catalog.pg_proc WHERE proname = 'outbox_query')::text \
                   || (SELECT count(*) FROM pg_catalog.pg_cursors)::text \
                   || COALESCE(pg_catalog.current_setting('app.tenant', true), '')";
        let rows = self.session.simple_query(sql).await.unwrap();
        rows.iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
            .unwrap()
    }
}
