//! Whether the queries of schedules can run as their roles: PostgreSQL is asked what `SET ROLE` asks.

use crate::database::{Error, Session, quote_ident};
use crate::jobs::schedules;
use crate::relay::Config;
use crate::source::Schedules;
use crate::source::finding::{Finding, Level};

/// So many findings of tenants' roles are told.
const MOST: usize = 10;

/// Until version 15 a member may become the role; since then membership has an option for it.
const ROLES: &str = include_str!("../sql/check_roles.sql");

/// What is wrong with the role of the configuration, by which every query fails; or with the roles of tenants whose schedules
/// have a query, by which theirs do.
pub(super) async fn findings(session: &Session, relay: &Config, source: &Schedules) -> Result<Vec<Finding>, Error> {
    let Some(role) = source.role.as_deref().filter(|_| !source.queries.is_empty()) else { return Ok(Vec::new()) };
    // Without a tenant there is a role only if its name has none in it.
    if let Some(role) = source.role_of("") {
        return unfit(session, &[role], Level::Error).await;
    }
    let mut tenants = schedules::tenants_of_queries(session, &relay.name).await?;
    if let Some(pattern) = source.schema.as_deref().filter(|_| tenants.iter().any(|tenant| tenant == "*")) {
        tenants.extend(schedules::tenants(session, pattern).await?);
    }
    let mut roles: Vec<String> =
        tenants.iter().filter(|tenant| *tenant != "*").filter_map(|of| source.role_of(of)).collect();
    roles.sort_unstable();
    roles.dedup();
    let mut found = unfit(session, &roles, Level::Warn).await?;
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        let message = format!("{more} more roles of tenants cannot be used");
        let fix = format!("The key role is {role}: grant the relay's role each of them, as the SQL above does.");
        found.push(Finding::new(Level::Warn, "query_role", message).setting(fix));
    }
    Ok(found)
}

/// Those of these roles that the relay may not become, or that may not create what guards a query.
async fn unfit(session: &Session, roles: &[String], level: Level) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for row in session.query(ROLES, &[&roles]).await? {
        let (name, relay): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        let (exists, own): (bool, Option<bool>) = (row.try_get(2)?, row.try_get(3)?);
        let (member, temporary): (Option<bool>, Option<bool>) = (row.try_get(4)?, row.try_get(5)?);
        let (role, to) = (quote_ident(name), quote_ident(relay));
        let found = |why: String| {
            Finding::new(level, "query_role", format!("queries of schedules cannot run as role {name}: {why}"))
        };
        if !exists {
            let fix =
                format!("Correct role in [relay.source.schedule]; or create the role, and run: GRANT {role} TO {to};");
            findings.push(found("there is no such role".to_owned()).setting(fix));
        } else if own == Some(true) {
            let fix = "Write a role that may only read into [relay.source.schedule].";
            findings.push(found("it is the relay's own".to_owned()).setting(fix));
        } else if member != Some(true) {
            // A GRANT that does not name the option leaves a membership as it is.
            let option = if row.try_get::<_, Option<bool>>(7)? == Some(true) { " WITH SET TRUE" } else { "" };
            findings.push(found(format!("{relay} may not become it")).sql(format!("GRANT {role} TO {to}{option};")));
        } else if temporary != Some(true) {
            let database = quote_ident(row.try_get(6)?);
            let sql = format!("GRANT TEMPORARY ON DATABASE {database} TO {role};");
            findings.push(found("it may not create temporary objects".to_owned()).sql(sql));
        }
    }
    Ok(findings)
}
