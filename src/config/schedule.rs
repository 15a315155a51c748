//! `[relay.source.schedule]`, and what goes with it.

use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::{queries, value};
use crate::source::Schedules;

const DEFAULT_IN_FLIGHT: u64 = 32;
const DEFAULT_PER_TENANT: u64 = 1;

pub(super) fn read(section: &Section<'_>) -> Schedules {
    let in_flight = section.read("in_flight", value::integer(1..=1_000)).unwrap_or(DEFAULT_IN_FLIGHT);
    let per_tenant = section.read("per_tenant_concurrency", value::integer(1..=1_000)).unwrap_or(DEFAULT_PER_TENANT);
    let schema = section.read("schema", value::parsed(schema));
    let role = section.read("role", value::parsed(role));
    let queries = queries::read(section);
    if !queries.is_empty() && !section.has("role") {
        let fix = "write role = \"{{ tenant }}\" for a role of each tenant's name, or one role that may only read";
        section.missing("role", "missing: queries run as a role of their own, never as the relay's", fix);
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Schedules {
        table: Schedules::table(),
        in_flight: number(in_flight),
        per_tenant: number(per_tenant),
        schema,
        role,
        queries,
    }
}

/// Every schema would be a tenant's, the system's own too.
fn schema(text: &str) -> Result<String, Wrong> {
    let fix = "write what the names of tenants' schemas have in common, for example \"tenant_*\"";
    if text.chars().all(|c| c == '*') {
        return Err(Wrong::new("every schema", fix));
    }
    if text.len() > 63 || text.starts_with("pg_") || text.contains('\0') {
        return Err(Wrong::new("no pattern of schemas that tenants can have", fix));
    }
    Ok(text.to_owned())
}

fn role(text: &str) -> Result<String, Wrong> {
    let rest = text.replace("{{ tenant }}", "").replace("{{tenant}}", "");
    if rest.contains("{{") || rest.contains("}}") || text.len() > 100 || text.contains('\0') {
        return Err(Wrong::new("not a role", "write a role's name, in which {{ tenant }} stands for the tenant's"));
    }
    Ok(text.to_owned())
}

/// As it was understood.
pub(super) fn write(lines: &mut TomlLines, schedules: &Schedules) {
    lines.section("[relay.source.schedule]");
    lines.raw("in_flight", schedules.in_flight);
    lines.raw("per_tenant_concurrency", schedules.per_tenant);
    if let Some(schema) = &schedules.schema {
        lines.text("schema", schema);
    }
    if let Some(role) = &schedules.role {
        lines.text("role", role);
    }
    queries::write(lines, &schedules.queries);
}

/// What a schedule says itself, or what no action has.
pub(super) fn judge(relay: &Section<'_>) {
    let own = "each schedule says itself what follows, by its column on_interrupted";
    for (key, what, fix) in [
        ("guarantee", own, "remove it"),
        (
            "on_poison",
            "an action that is refused has failed, and holds no other up",
            "remove it; see `outbox-relay action list`",
        ),
        ("dead_letter_topic", "actions have no dead letters: they stay in outbox.action", "remove it"),
    ] {
        if relay.has(key) {
            relay.problem(key, Wrong::new(what, fix));
        }
    }
}
