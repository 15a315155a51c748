//! `[kafka.oauth2]`: the extensions of its log-ins.

use super::bad::{Case, judge};
use super::*;

const SERVERS: &str = "bootstrap_servers = \"127.0.0.1:9092\"";
const ISSUER: &str = "token_url = \"https://i/t\", client_id = \"c\", client_secret_file = \"/s\"";

/// A `[kafka]` with these extensions.
fn kafka(extensions: &str) -> String {
    format!("{SERVERS}\noauth2 = {{ {ISSUER}, extensions = {extensions} }}")
}

#[test]
fn extensions_that_brokers_cannot_take_are_refused_by_name() {
    let case = |extensions: &str, what: &'static str| -> Case {
        let text: &'static str = kafka(extensions).leak();
        (SERVERS, text, "kafka.oauth2.extensions", what)
    };
    let property = |name: &str| -> Case {
        let text: &'static str = format!("{SERVERS}\nproperties = {{ \"{name}\" = \"a=b\" }}").leak();
        let key: &'static str = format!("kafka.properties.{name}").leak();
        (SERVERS, text, key, "tokens are fetched by the relay")
    };
    judge(&[
        case("{ logical_cluster = \"lkc-1\" }", "\"logical_cluster\" is no name of an extension"),
        case("{ \"\" = \"lkc-1\" }", "\"\" is no name of an extension"),
        case("{ auth = \"Bearer x\" }", "auth is the token's own place"),
        case("{ logicalCluster = \"\" }", "the value of logicalCluster is empty"),
        case("{ logicalCluster = \"lkc\\u0001\" }", "the value of logicalCluster is empty, or has other characters"),
        case("{ logicalCluster = 1 }", "logicalCluster is an integer"),
        case("\"logicalCluster=lkc-1\"", "a table is needed here"),
        property("sasl.oauthbearer.extensions"),
        property("sasl.oauthbearer.token.endpoint.url"),
    ]);
}

#[test]
fn extensions_are_kept_and_shown_as_they_are_read() {
    let config = parse(&with(SERVERS, &kafka("{ logicalCluster = \"lkc-1\", identityPoolId = \"pool-1\" }")));
    let config = config.expect("valid");
    let kafka = config.kafka.as_ref().expect("configured");
    assert_eq!(kafka.extensions["logicalCluster"], "lkc-1");
    assert_eq!(kafka.extensions["identityPoolId"], "pool-1");
    assert_eq!(parse(&config.redacted()).expect("valid").kafka, config.kafka);
}
