//! What stands in for the encoder in a program that was built without it. The configuration refuses its formats there.

use std::time::Instant;

use super::{SchemaFacts, SchemaFormat};
use crate::sink::{Class, Failure};

#[derive(Debug, Default)]
pub(in crate::sink::kafka) struct Registries {}

#[derive(Debug)]
pub(in crate::sink::kafka) enum Unencoded {
    Refused(Failure),
    #[expect(dead_code, reason = "the encoder has it")]
    Large(usize),
}

#[derive(Debug)]
pub(in crate::sink::kafka) struct Encoder;

fn missing() -> Failure {
    let hint = "Use a program that was built with the cargo feature schema-registry";
    Failure::of(Class::Fatal, "schema_unusable", "this program was built without schema registries", hint)
}

impl Encoder {
    pub(in crate::sink::kafka) fn new(_: &SchemaFormat) -> Self {
        Self
    }

    pub(in crate::sink::kafka) const fn depends_on_topic(&self) -> bool {
        false
    }

    pub(in crate::sink::kafka) async fn prepare(&self, _: &Registries, _: &str) -> Result<(), Failure> {
        Err(missing())
    }

    pub(in crate::sink::kafka) async fn renew(&self, _: &Registries, _: &str, _: Instant) -> Result<(), Failure> {
        Err(missing())
    }

    pub(in crate::sink::kafka) fn late(&self) -> Failure {
        missing()
    }

    pub(in crate::sink::kafka) fn encode(&self, _: &str, _: &[u8], _: usize) -> Result<Vec<u8>, Unencoded> {
        Err(Unencoded::Refused(missing()))
    }

    pub(in crate::sink::kafka) async fn inspect(
        &self,
        _: &Registries,
        _: Option<&str>,
    ) -> Result<Option<SchemaFacts>, Failure> {
        Err(missing())
    }
}
