//! Scheduled actions: what a sink prints of each.
//!
//! Pure. A template's name is first one of the action's own, then a column of its query's first row, then a member of its
//! payload. `payload` is all of it. Templates get lists, objects and numbers as such.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::TableName;
use super::action_query::Query;
use crate::batch::Batch;
use crate::message::{ColumnType, Field};
use crate::position::Timestamp;

/// `[relay.source.schedule]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedules {
    /// The table of actions.
    pub table: TableName,
    /// The most actions that a replica carries out at the same time.
    pub in_flight: usize,
    /// The most actions of one tenant that are carried out at the same time, over all replicas.
    pub per_tenant: usize,
    /// Schemas that are tenants, `*` standing for anything.
    pub schema: Option<String>,
    /// The role that a tenant's queries run as; `{{ tenant }}` stands for the tenant's name.
    pub role: Option<String>,
    /// Queries that a schedule may name.
    pub queries: BTreeMap<String, Query>,
}

impl Schedules {
    /// Where actions stand.
    #[must_use]
    pub fn table() -> TableName {
        TableName { schema: "outbox".to_owned(), name: "action".to_owned() }
    }

    /// The role that a tenant's queries run as; none when that needs a tenant, and there is none, or it is not one of the schemas
    /// that are: whoever writes a schedule shall not choose among all roles.
    #[must_use]
    pub fn role_of(&self, tenant: &str) -> Option<String> {
        let role = self.role.as_deref()?;
        let named = role.replace("{{ tenant }}", tenant).replace("{{tenant}}", tenant);
        let is_tenant = !tenant.is_empty() && (self.schema.is_none() || self.is_schema(tenant));
        (named == role || is_tenant).then_some(named)
    }

    /// Whether this is the name of a tenant's schema.
    #[must_use]
    pub fn is_schema(&self, tenant: &str) -> bool {
        self.schema.as_deref().is_some_and(|pattern| matches(pattern, tenant))
    }
}

/// Whether the name is one of the pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// What a statement can be given of an action, by name: `payload` and `rows` as JSON.
#[must_use]
pub fn columns() -> BTreeMap<String, ColumnType> {
    // The oids of built-in types and of their arrays never change (PostgreSQL's pg_type.dat).
    let types = [
        ("action_id", "bigint", 20, 1016),
        ("schedule", "text", 25, 1009),
        ("tenant", "text", 25, 1009),
        ("planned_at", "timestamp with time zone", 1184, 1185),
        ("payload", "jsonb", 3802, 3807),
        ("rows", "jsonb", 3802, 3807),
        ("row_count", "bigint", 20, 1016),
    ];
    let column = |(name, of, oid, array): (&str, &str, u32, u32)| {
        (name.to_owned(), ColumnType { name: of.to_owned(), oid, array: Some((array, ',')) })
    };
    types.into_iter().map(column).collect()
}

/// What is printed of an action.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// Its id.
    pub id: i64,
    /// Its schedule's name.
    pub schedule: &'a str,
    /// Whose it is.
    pub tenant: &'a str,
    /// The instant of its rule.
    pub planned_at: Timestamp,
    /// A JSON object.
    pub payload: &'a str,
    /// Its query's rows, each a JSON object; none without a query.
    pub rows: Option<&'a [String]>,
}

/// The action's values by name, each as JSON.
///
/// # Errors
/// When payload or rows are no JSON objects, which PostgreSQL would not have given.
pub fn data(action: &Printed<'_>) -> Result<BTreeMap<String, Box<RawValue>>, serde_json::Error> {
    let mut data: BTreeMap<String, Box<RawValue>> = serde_json::from_str(action.payload)?;
    if let Some(rows) = action.rows {
        if let Some(first) = rows.first() {
            data.extend(serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(first)?);
        }
        data.insert("rows".to_owned(), RawValue::from_string(format!("[{}]", rows.join(",")))?);
        data.insert("row_count".to_owned(), RawValue::from_string(rows.len().to_string())?);
    }
    let id = action.id.to_string();
    for (name, value) in [
        ("action_id", id.as_str()),
        ("schedule", action.schedule),
        ("tenant", action.tenant),
        ("planned_at", &action.planned_at.to_string()),
    ] {
        data.insert(name.to_owned(), RawValue::from_string(serde_json::to_string(value)?)?);
    }
    Ok(data)
}

/// The message of an action: its id, and the sink's fields.
///
/// # Errors
/// As for [`data`].
pub fn message(action: &Printed<'_>, fields: &[Field]) -> Result<Batch, serde_json::Error> {
    let mut data = data(action)?;
    if !fields.contains(&Field::Row) {
        data.entry("payload".to_owned()).or_insert(RawValue::from_string(action.payload.to_owned())?);
    }
    let (mut values, mut typed): (Vec<Option<String>>, Vec<Option<&str>>) = (Vec::new(), Vec::new());
    for field in fields {
        values.push(match field {
            Field::Row | Field::Debezium(None) => Some(serde_json::to_string(&data)?),
            Field::Columns(names) | Field::Debezium(Some(names)) => {
                let null = RawValue::from_string("null".to_owned())?;
                let some: BTreeMap<&str, &RawValue> =
                    names.iter().map(|name| (name.as_str(), &**data.get(name).unwrap_or(&null))).collect();
                Some(serde_json::to_string(&some)?)
            }
            Field::Text(name) | Field::Payload(name) => data.get(name).and_then(|value| text(value)),
            Field::Matches => Some("true".to_owned()),
        });
        typed.push(match field {
            Field::Text(name) => data.get(name).map(|value| value.get()).filter(|json| *json != "null"),
            Field::Row | Field::Columns(_) | Field::Debezium(_) | Field::Payload(_) | Field::Matches => None,
        });
    }
    let mut batch = Batch::typed(fields.len());
    let bytes = values.iter().map(Option::as_deref).chain(typed).map(|value| value.map(str::as_bytes));
    batch.push(action.planned_at, &action.id.to_string(), bytes);
    Ok(batch)
}

/// As PostgreSQL's `->>`: a string's own text, nothing for null, all else as it stands, so that numbers keep their digits.
fn text(value: &RawValue) -> Option<String> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).ok(),
        _ if text == "null" => None,
        _ => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::TemplateValue;

    fn printed<'a>(payload: &'a str, rows: Option<&'a [String]>) -> Printed<'a> {
        let planned_at = Timestamp::parse_rfc3339("2026-11-21T08:00:00Z").expect("valid");
        Printed { id: 7, schedule: "report", tenant: "tenant_a", planned_at, payload, rows }
    }

    #[test]
    fn a_name_is_the_actions_own_then_the_querys_then_the_payloads() {
        let rows = ["{\"total\":12345678901234567890.10,\"mail\":null}".to_owned(), "{\"total\":1}".to_owned()];
        let payload = "{\"tenant\":\"forged\",\"total\":1,\"to\":\"a\\\"b\",\"mail\":\"x\"}";
        let names = ["tenant", "total", "to", "row_count", "planned_at", "mail", "none"];
        let fields: Vec<Field> = names.iter().map(|name| Field::Text((*name).to_owned())).collect();
        let batch = message(&printed(payload, Some(&rows)), &fields).expect("valid");
        let message = batch.message(0);
        let values: Vec<_> = (0..fields.len())
            .map(|n| message.value(n).map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
            .collect();
        let expected = ["tenant_a", "12345678901234567890.10", "a\"b", "2", "2026-11-21T08:00:00.000000Z"];
        assert_eq!(values[..5], expected.map(|text| Some(text.to_owned())));
        assert_eq!(values[5..], [None, None]);
        assert_eq!(message.id, "7");
    }

    #[test]
    fn templates_get_rows_and_numbers_as_values() {
        let rows = ["{\"n\":1}".to_owned(), "{\"n\":null}".to_owned()];
        let names = ["rows", "row_count", "n", "to", "schedule", "none"];
        let fields: Vec<Field> = names.iter().map(|name| Field::Text((*name).to_owned())).collect();
        let batch = message(&printed("{\"to\":[\"a\"]}", Some(&rows)), &fields).expect("valid");
        let given = |n| match batch.message(0).given(n) {
            Some(TemplateValue::Json(json)) => Some(String::from_utf8_lossy(json).into_owned()),
            given => given.map(|given| panic!("{given:?}")),
        };
        let expected = ["[{\"n\":1},{\"n\":null}]", "2", "1", "[\"a\"]", "\"report\""];
        assert_eq!((0..5).map(given).collect::<Vec<_>>(), expected.map(|json| Some(json.to_owned())));
        assert_eq!(given(5), None);
        assert_eq!(batch.alone(0).message(0).given(1), Some(TemplateValue::Json(b"2")));
    }

    #[test]
    fn the_whole_action_is_one_object_with_the_rows_in_it() {
        let rows = ["{\"n\":1}".to_owned()];
        let batch =
            message(&printed("{}", Some(&rows)), &[Field::Row, Field::Columns(vec!["n".to_owned(), "x".to_owned()])])
                .expect("valid");
        let value = |n| String::from_utf8_lossy(batch.message(0).value(n).expect("there")).into_owned();
        assert!(value(0).contains("\"rows\":[{\"n\":1}]"), "{}", value(0));
        assert_eq!(value(1), "{\"n\":1,\"x\":null}");
    }

    #[test]
    fn a_pattern_matches_whole_names() {
        for (pattern, name, expected) in [
            ("tenant_*", "tenant_a", true),
            ("tenant_*", "tenant_", true),
            ("tenant_*", "xtenant_a", false),
            ("*_live", "a_live", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abX", false),
            ("one", "one", true),
            ("one", "one_more", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
