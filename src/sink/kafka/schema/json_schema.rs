//! JSON Schema: the payload as it is, once the schema has found nothing against it.

use std::collections::HashMap;
use std::error::Error;

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

use super::misfit::Misfit;

/// Before the name of a schema that another one refers to without a base of its own.
const BASE: &str = "json-schema:///";
/// A text at which a `pattern` goes back more often does not fit: else one row could take seconds.
const MOST_BACKTRACKS: usize = 10_000;

/// A schema, ready to judge by.
#[derive(Debug)]
pub(super) struct JsonSchema {
    validator: Validator,
    title: Option<String>,
}

impl JsonSchema {
    /// Of a schema, and of those that it refers to, by the names that it uses for them.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(text: &str, references: &[(&str, &str)]) -> Result<Self, String> {
        let schema = parsed(text)?;
        let mut known = HashMap::new();
        for (name, text) in references {
            known.insert((*name).to_owned(), parsed(text).map_err(|error| format!("reference {name}: {error}"))?);
        }
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKS);
        let options = jsonschema::options().with_retriever(Known(known)).with_pattern_options(patterns);
        // As registries take it where a schema does not say.
        let options = if schema.get("$schema").is_none() { options.with_draft(Draft::Draft7) } else { options };
        let validator = options.build(&schema).map_err(|error| format!("it is no JSON Schema: {error}"))?;
        let title = schema.get("title").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { validator, title })
    }

    /// The schema's title, which stands for the name of a record.
    pub(super) fn name(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Appends a payload.
    pub(super) fn encode(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
        let what = "the payload is no JSON, or has more than 128 values inside each other, or a number beyond double precision";
        let value: Value = serde_json::from_slice(payload).map_err(|_| Misfit::new(what))?;
        if let Err(error) = self.validator.validate(&value) {
            let misfit = Misfit::new(error.masked_with("the value").to_string());
            // As the other formats name a field.
            let path = error.instance_path().as_str();
            let parts: Vec<&str> = path.split('/').skip(1).collect();
            let named = |misfit: Misfit, part: &&str| misfit.in_field(&part.replace("~1", "/").replace("~0", "~"));
            return Err(parts.iter().rev().fold(misfit, named));
        }
        out.extend_from_slice(payload);
        Ok(())
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))
}

/// The schemas that the registry has given for one; nothing is fetched from anywhere else.
struct Known(HashMap<String, Value>);

impl Retrieve for Known {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let uri = uri.as_str();
        let name = uri.strip_prefix(BASE).unwrap_or(uri);
        let found = self.0.get(uri).or_else(|| self.0.get(name));
        found.cloned().ok_or_else(|| format!("the registry gives no reference named {name}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKING: &str = r##"{"title":"Booking","type":"object","required":["id"],"additionalProperties":false,"properties":{
        "id":{"type":"integer","minimum":1},"note":{"type":["string","null"],"maxLength":3},
        "tags":{"type":"array","items":{"enum":["a","b"]}},"a/b":{"type":"boolean"}}}"##;

    fn encoded(schema: &JsonSchema, row: &str) -> Result<String, String> {
        let mut out = Vec::new();
        let made = schema.encode(row.as_bytes(), &mut out).map_err(|misfit| misfit.to_string());
        made.map(|()| String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn row_that_fits_stays_byte_for_byte_and_another_one_names_its_field() {
        let schema = JsonSchema::new(BOOKING, &[]).expect("a schema");
        assert_eq!(schema.name(), Some("Booking"));
        let row = "{ \"id\":12345678901234567890 , \"note\":null,\"tags\":[\"a\"]}";
        assert_eq!(encoded(&schema, row), Ok(row.to_owned()));
        for (row, field) in [
            ("{}", ""),
            ("{\"id\":\"1\"}", "field id: "),
            ("{\"id\":0}", "field id: "),
            ("{\"id\":1.5}", "field id: "),
            ("{\"id\":1,\"note\":\"secret\"}", "field note: "),
            ("{\"id\":1,\"tags\":[\"a\",\"secret\"]}", "field tags.1: "),
            ("{\"id\":1,\"a/b\":7}", "field a/b: "),
            ("{\"id\":1,\"colour\":1}", ""),
            ("[]", ""),
            ("", ""),
        ] {
            let said = encoded(&schema, row).expect_err(row);
            assert!(said.starts_with(field) && !said.contains("secret"), "{row}: {said}");
        }
        assert!(encoded(&schema, "{\"id\":1,\"colour\":1}").expect_err("unknown").contains("colour"));
        assert!(encoded(&schema, "{}").expect_err("missing").contains("id"));
    }

    #[test]
    fn references_are_those_of_the_registry_and_no_others() {
        let main = |name: &str| format!("{{\"type\":\"object\",\"properties\":{{\"at\":{{\"$ref\":\"{name}\"}}}}}}");
        let place = "{\"type\":\"object\",\"required\":[\"zip\"]}";
        for name in ["place.json", "https://example.org/place.json"] {
            let schema = JsonSchema::new(&main(name), &[(name, place)]).expect("found");
            assert!(encoded(&schema, "{\"at\":{\"zip\":1}}").is_ok());
            assert!(encoded(&schema, "{\"at\":{}}").expect_err("missing").starts_with("field at: "));
        }
        let said = JsonSchema::new(&main("https://127.0.0.1/x.json"), &[]).expect_err("unknown");
        assert!(said.contains("no reference named"), "{said}");
        for text in ["{", "{\"type\":\"strange\"}", "[]", "7"] {
            assert!(JsonSchema::new(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn pattern_that_goes_back_without_end_refuses_its_row_in_time() {
        // The reference to a group keeps it from the engine that never goes back; the number of ways grows like Fibonacci's.
        let schema = JsonSchema::new(r#"{"properties":{"a":{"pattern":"^(?:(a)\\1?)+b$"}}}"#, &[]).expect("a schema");
        assert!(encoded(&schema, "{\"a\":\"aaab\"}").is_ok());
        let said = encoded(&schema, &format!("{{\"a\":\"{}\"}}", "a".repeat(24))).expect_err("too often");
        assert!(said.starts_with("field a: ") && said.contains("backtracking"), "{said}");
    }

    #[test]
    fn number_beyond_double_precision_is_named_as_a_reason() {
        let said = encoded(&JsonSchema::new("{}", &[]).expect("a schema"), "{\"a\":1e999}").expect_err("too large");
        assert!(said.contains("a number beyond double precision"), "{said}");
    }

    #[test]
    fn draft_is_the_one_that_the_schema_says() {
        let of = |draft: &str| {
            format!(
                "{{{draft}\"properties\":{{\"a\":{{\"$ref\":\"#/definitions/x\",\"type\":\"string\"}}}},\"definitions\":{{\"x\":{{}}}}}}"
            )
        };
        // Beside a reference nothing counts in draft 7.
        assert!(encoded(&JsonSchema::new(&of(""), &[]).expect("a schema"), "{\"a\":1}").is_ok());
        let newer = of("\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",");
        assert!(encoded(&JsonSchema::new(&newer, &[]).expect("a schema"), "{\"a\":1}").is_err());
    }
}
