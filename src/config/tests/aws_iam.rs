//! `[kafka.aws_iam]`.

use super::bad::{Case, judge};
use super::*;

const SERVERS: &str = "bootstrap_servers = \"127.0.0.1:9092\"";

#[test]
fn keys_that_cannot_be_and_settings_that_contradict_are_refused() {
    // The section, and what else stands in [kafka].
    let case = |keys: &str, more: &str, key: &'static str, what: &'static str| -> Case {
        let text: &'static str = format!("{SERVERS}\naws_iam = {{ {keys} }}\n{more}").leak();
        (SERVERS, text, key, what)
    };
    let with = |property: &str, key: &'static str, what: &'static str| {
        case("region = \"eu-west-1\"", &format!("properties = {{ {property} }}"), key, what)
    };
    let issuer = "oauth2 = { token_url = \"https://i/t\", client_id = \"c\", client_secret_file = \"/s\" }";
    let region = |more: &str| format!("region = \"eu-west-1\", {more}");
    judge(&[
        case("", "", "kafka.aws_iam.region", "missing"),
        case("region = \"Frankfurt\"", "", "kafka.aws_iam.region", "no region of AWS"),
        case("region = \"eu-west-1.evil.example\"", "", "kafka.aws_iam.region", "no region of AWS"),
        case(&region("role_arn = \"relay\""), "", "kafka.aws_iam.role_arn", "no ARN of a role"),
        case(&region("role_arn = \"arn:aws:iam::1:role/r\""), "", "kafka.aws_iam.role_arn", "no ARN of a role"),
        case(&region("session_name = \"a b\""), "", "kafka.aws_iam.session_name", "no name of a session"),
        case(&region("profile = \"\""), "", "kafka.aws_iam.profile", "empty"),
        case(&region("secret_access_key = \"hunter2\""), "", "kafka.aws_iam.secret_access_key", "unknown key"),
        case("region = \"eu-west-1\"", issuer, "kafka.aws_iam", "clients log in in one way"),
        with("\"security.protocol\" = \"ssl\"", "kafka.aws_iam", "no token is sent by"),
        with("\"sasl.mechanism\" = \"AWS_MSK_IAM\"", "kafka.aws_iam", "[kafka.aws_iam] counts for OAUTHBEARER only"),
        with("\"sasl.username\" = \"relay\"", "kafka.aws_iam", "sasl.username counts for nothing beside tokens"),
        (
            SERVERS,
            "bootstrap_servers = \"b-1.example.com:9098\"\naws_iam = { region = \"eu-west-1\" }\n\
             properties = { \"security.protocol\" = \"sasl_plaintext\" }",
            "kafka.aws_iam",
            "the token would go over the network in clear",
        ),
        (
            SERVERS,
            "bootstrap_servers = \"b:9098\"\nproperties = { \"sasl.mechanism\" = \"AWS_MSK_IAM\" }",
            "kafka.properties.sasl.mechanism",
            "this log-in needs tokens",
        ),
    ]);
}

#[test]
fn region_is_that_of_the_environment_unless_it_is_written_and_all_is_shown_as_it_is_read() {
    let role = "role_arn = \"arn:aws-us-gov:iam::123456789012:role/apps/relay\"";
    let text = |keys: &str| with(SERVERS, &format!("{SERVERS}\naws_iam = {{ {keys} }}"));
    let of = |text: &str, variables: &[(&str, &str)]| Config::parse(text, "relay.toml", &environment(variables));
    let variables = [("AWS_REGION", ""), ("AWS_DEFAULT_REGION", "us-gov-west-1")];
    let config = of(&text(&format!("{role}, profile = \"p\", session_name = \"orders\"")), &variables).expect("valid");
    let kafka = config.kafka.as_ref().expect("configured");
    assert_eq!(kafka.aws_iam.as_ref().expect("configured").region, "us-gov-west-1");
    assert_eq!(
        ["sasl.mechanism", "security.protocol"].map(|name| kafka.properties[name].as_str()),
        ["OAUTHBEARER", "sasl_ssl"]
    );
    assert_eq!(parse(&config.redacted()).expect("valid").kafka, config.kafka);
    let variables = [("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "us-gov-west-1")];
    for (keys, region) in [("region = \"eu-north-1\"", "eu-north-1"), ("", "eu-west-1")] {
        let kafka = of(&text(keys), &variables).expect("valid").kafka.expect("configured");
        assert_eq!(kafka.aws_iam.expect("configured").region, region);
    }
    let said = |variables: &[(&str, &str)]| of(&text(""), variables).expect_err("refused").to_string();
    let missing = said(&[]);
    assert!(missing.contains("AWS_REGION or AWS_DEFAULT_REGION"), "{missing}");
    let wrong = said(&[("AWS_REGION", "Frankfurt")]);
    assert!(wrong.contains("the variable AWS_REGION is no region of AWS"), "{wrong}");
}
