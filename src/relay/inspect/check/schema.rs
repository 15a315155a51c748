//! Whether the registry has the schema of a relay's records, and whether the columns of its table fit it.

use std::sync::Arc;

use super::secrets;
use crate::sink::kafka::{
    self, Cluster, Format, Payload, RegistryConfig, RegistryLogin, SchemaFacts, SchemaField, SchemaFormat, WantedSchema,
};
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;

/// Asks the registry, which registers nothing for it; `shape` is of the table where it can be read.
pub(super) async fn findings(
    cluster: Option<&Arc<Cluster>>,
    config: &kafka::Config,
    shape: Option<&Shape>,
) -> Vec<Finding> {
    let (Format::Schema(format), Some(cluster)) = (&config.format, cluster) else { return Vec::new() };
    let mut found: Vec<Finding> = in_clear(&format.registry).into_iter().collect();
    let topic = (!config.templated()).then_some(config.topic.as_str());
    match kafka::describe_schema(cluster, format, topic).await {
        Ok(None) => {
            let message = "the schema registry answers; schemas depend on the row: each is looked for when it is used";
            found.push(Finding::new(Level::Ok, "schema", message));
        }
        Ok(Some(facts)) => {
            found.push(described(format, &facts));
            if let (Some(fields), Some(shape)) = (&facts.fields, shape) {
                found.extend(columns(format, &config.payload, fields, shape));
            }
        }
        Err(failure) => {
            // A code that has no finding of its own is told by the words.
            let (code, message) = match kafka::schema_code(&failure) {
                Some(code) => (code, failure.message),
                None => ("schema", format!("{} ({})", failure.message, failure.code)),
            };
            found.push(Finding::new(Level::Error, code, message).setting(format!("{}.", failure.hint)));
        }
    }
    found
}

fn described(format: &SchemaFormat, facts: &SchemaFacts) -> Finding {
    let SchemaFacts { subject, id, version, name, .. } = facts;
    let of = name.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
    let message = match (id, version) {
        (Some(id), Some(version)) => format!("subject {subject} has version {version} (id {id}){of}"),
        (Some(id), None) => format!("subject {subject} has the schema{of} (id {id})"),
        (None, _) => {
            let file = match &format.wanted {
                WantedSchema::File { path, .. } => path.display().to_string(),
                WantedSchema::Latest | WantedSchema::Version(_) => String::new(),
            };
            format!("subject {subject} takes the schema{of} of {file}: the relay registers it when it starts")
        }
    };
    Finding::new(Level::Ok, "schema", message)
}

/// Compares by name only; what a column's values are is seen at each row.
fn columns(format: &SchemaFormat, payload: &Payload, fields: &[SchemaField], shape: &Shape) -> Vec<Finding> {
    let columns: Vec<&String> = match payload {
        Payload::Row => shape.columns.keys().collect(),
        Payload::Columns(columns) => columns.iter().collect(),
        // What the document in it has is the application's.
        Payload::Column(_) => return Vec::new(),
    };
    let mut found = Vec::new();
    let missing =
        fields.iter().filter(|field| field.is_required && !columns.iter().any(|column| field.is_named(column)));
    let missing: Vec<&str> = missing.map(|field| field.name.as_str()).collect();
    if !missing.is_empty() {
        let message = format!(
            "no column for {} of the schema, which has no default: each row would be refused",
            missing.join(", ")
        );
        let fix = "Give the fields defaults in the schema, or publish the columns: payload = { columns = [\"…\"] }.";
        found.push(Finding::new(Level::Error, "schema_field_without_column", message).setting(fix));
    }
    let unknown = columns.iter().filter(|column| !fields.iter().any(|field| field.is_named(column)));
    let unknown: Vec<&str> = unknown.map(|column| column.as_str()).collect();
    if !unknown.is_empty() && !format.ignores_unknown {
        let message = format!("no field of the schema for {}: each row would be refused", unknown.join(", "));
        let fix = "List the columns that the schema has: payload = { columns = [\"…\"] }; or register a schema that has them; or write \
                   unknown = \"ignore\".";
        found.push(Finding::new(Level::Error, "schema_column_without_field", message).setting(fix));
    }
    found
}

/// Whether credentials for the registry can be read on their way.
fn in_clear(registry: &RegistryConfig) -> Option<Finding> {
    let logs_in = registry.login != RegistryLogin::None || registry.access.oauth2.is_some();
    let message = "the credentials for the schema registry go over the network in clear";
    let fix = "Write https:// in [schema_registry] url.";
    (logs_in && secrets::is_readable_on_its_way(&registry.url))
        .then(|| Finding::new(Level::Warn, "registry_plain_text", message).setting(fix))
}
