//! One HTTP request per message, in order, one at a time.

use std::collections::BTreeMap;
use std::time::Duration;

/// `[relay.sink.http]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// The URL, a template; values are percent-encoded.
    pub url: String,
    /// Header names to templates.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Body,
    /// The longest wait for an answer.
    pub timeout: Duration,
    /// The most requests a second, per cursor.
    pub rate_per_second: Option<f64>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The whole row as JSON.
    Row,
    /// A template.
    Template(String),
    /// Form fields, each a template (the SMS preset uses it).
    Form(Vec<(String, String)>),
}

use super::{Flow, Published};
use crate::batch::Batch;
use crate::message::Field;
/// (being built)
#[derive(Debug)]
pub struct HttpSink {}
/// (being built)
#[derive(Debug)]
pub struct HttpPublication<'a>(std::marker::PhantomData<&'a ()>);
impl HttpSink {
    /// (being built)
    pub fn new(_config: &Config, _relay: &str) -> Result<Self, super::template::TemplateError> {
        Err(super::template::TemplateError)
    }
    pub(super) fn min_interval(&self) -> Option<Duration> {
        None
    }
    pub(super) fn fields(&self) -> &[Field] {
        &[]
    }
    pub(super) fn begin(&self) -> HttpPublication<'_> {
        HttpPublication(std::marker::PhantomData)
    }
}
impl HttpPublication<'_> {
    pub(super) async fn push(&mut self, _batch: &Batch) -> Flow {
        Flow::Stop
    }
    pub(super) fn finish(self) -> Published {
        Published { acknowledged: 0, stopped: None }
    }
}
