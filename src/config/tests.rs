//! The configuration as its users meet it: good files, bad files, the reference file, and what is never printed.

use super::*;

#[cfg(feature = "iam")]
mod aws_iam;
mod bad;
mod bad_email;
mod bad_relays;
mod bad_sinks;
mod bad_sql;
mod delivers;
mod fixes;
mod garbled;
mod good;
mod lanes;
mod notify;
mod oauth2;
mod own_sinks;
mod reference;
mod rendered;
mod shards;

/// A file that is right, to be made wrong in one place.
const GOOD: &str = r#"[postgres]
url = "postgresql://relay@127.0.0.1:5432/app?sslmode=disable"

[kafka]
bootstrap_servers = "127.0.0.1:9092"

[[relay]]
name = "events"
[relay.source.stream]
table = "public.bookings"
[relay.sink.kafka]
topic = "bookings"
key = "customer"

[[relay]]
name = "sms"
start = "now"
[relay.source.stream]
table = "public.bookings"
[relay.sink.sms]
provider = "twilio"
account_sid = "AC1"
auth_token_file = "/run/token"
from = "+15550000000"
to = "{{ phone }}"
text = "Booking {{ id }}"
"#;

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn parse(text: &str) -> Result<Config, Problems> {
    Config::parse(text, "relay.toml", &Environment::new())
}

/// [`GOOD`] with one place replaced.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}
