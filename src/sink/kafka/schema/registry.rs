//! The registry: asked over HTTP, and what its answers mean.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;

use super::failure;
use super::kept::Kept;
use super::question::{Compatibility, Question, Reference, Refusal, Registered, Which};
use super::{OF_LOGINS, RegistryConfig, RegistryLogin};
use crate::secret::Secret;
use crate::sink::http::service::{Reply, Service};
use crate::sink::{Class, Failure, Subject};

const TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// A schema refers to no more others.
const MOST_REFERENCES: usize = 200;
/// So many questions are remembered with their answers: topics that rows name have a subject each.
const MOST: usize = 10_000;

/// A schema as the registry has given it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) id: u32,
    pub(super) version: Option<u32>,
    /// As registries name it.
    pub(super) kind: String,
    pub(super) text: String,
    /// Schemas that it refers to, by the names that it has for them.
    pub(super) references: Vec<(String, String)>,
}

impl Given {
    /// Whether the same is written by the other one, under whatever subject and id.
    pub(super) fn is_same_schema(&self, other: &Self) -> bool {
        self.text == other.text && self.kind == other.kind && self.references == other.references
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) config: Arc<RegistryConfig>,
    service: Service,
    kept: Mutex<HashMap<Question, Arc<Kept>>>,
}

impl Registry {
    pub(super) fn new(config: &Arc<RegistryConfig>) -> Arc<Self> {
        let service = Service::new(config.access.clone(), config.timeout, "[schema_registry.oauth2]");
        Arc::new(Self { config: Arc::clone(config), service, kept: Mutex::default() })
    }

    /// What is remembered of a question.
    pub(super) fn kept(&self, question: Question) -> Arc<Kept> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&question) {
            all.clear();
        }
        Arc::clone(all.entry(question).or_insert_with_key(|question| Arc::new(Kept::new(question.clone()))))
    }

    /// Asks, and waits for the answer with all that it refers to: as long as the configured time-out.
    ///
    /// # Errors
    /// What is wrong with the registry, or the schema.
    pub(super) async fn ask(&self, question: &Question) -> Result<Given, Failure> {
        let late = |_| Err(self.unavailable("it did not answer in time"));
        tokio::time::timeout(self.config.timeout, self.given(question)).await.unwrap_or_else(late)
    }

    async fn given(&self, question: &Question) -> Result<Given, Failure> {
        let registered: Registered = self.asked(question, &question.path(), question.body()).await?;
        let Registered { id, version, schema, kind, references } = registered;
        if let Some((kind, text)) = question.text() {
            let (kind, text) = (kind.in_registry().to_owned(), text.to_string());
            return Ok(Given { id, version, kind, text, references: Vec::new() });
        }
        let text = schema.ok_or_else(|| self.unavailable("its answer has no schema"))?;
        let kind = kind.unwrap_or_else(|| "AVRO".to_owned());
        let references = self.references(references.unwrap_or_default()).await?;
        Ok(Given { id, version, kind, text, references })
    }

    /// All that a schema refers to, and those to others.
    async fn references(&self, mut next: Vec<Reference>) -> Result<Vec<(String, String)>, Failure> {
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        while let Some(reference) = next.pop() {
            if !seen.insert(reference.clone()) {
                continue;
            }
            let question = Question { subject: reference.subject, which: Which::Version(reference.version) };
            if seen.len() > MOST_REFERENCES {
                return Err(failure::unusable(&question.subject, "more than 200 schemas refer to each other"));
            }
            let registered: Registered = self.asked(&question, &question.path(), None).await?;
            let text = registered.schema.ok_or_else(|| self.unavailable("its answer has no schema"))?;
            next.extend(registered.references.unwrap_or_default());
            found.push((reference.name, text));
        }
        Ok(found)
    }

    /// Whether the question's subject would take its text. One that is not there takes any.
    ///
    /// # Errors
    /// Why it would not, or what is wrong with the registry.
    pub(super) async fn would_take(&self, question: &Question) -> Result<(), Failure> {
        let late = |_| Err(self.unavailable("it did not answer in time"));
        let path = question.compatibility_path();
        let asked = self.asked(question, &path, question.body());
        let asked: Result<Compatibility, _> =
            tokio::time::timeout(self.config.timeout, asked).await.unwrap_or_else(late);
        match asked {
            Ok(Compatibility { is_compatible: true, .. }) => Ok(()),
            Ok(Compatibility { messages, .. }) => {
                // Some registries say so, and no more.
                let why =
                    if messages.is_empty() { "the registry gives no reason".to_owned() } else { messages.join("; ") };
                Err(failure::rejected(&question.subject, &format!("it is not compatible: {why}")))
            }
            Err(failure) if failure::is_missing(&failure) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn asked<T: DeserializeOwned>(
        &self,
        question: &Question,
        path: &str,
        body: Option<String>,
    ) -> Result<T, Failure> {
        let request = self.request(path, body)?;
        let reply = self.service.ask(request, &self.config.url).await.map_err(|failure| self.unanswered(failure))?;
        if !(200..300).contains(&reply.status) {
            return Err(self.refused(question, &reply));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|error| self.unavailable(&format!("it answered {} with something else: {error}", reply.status)))
    }

    fn request(&self, path: &str, body: Option<String>) -> Result<Request, Failure> {
        let url = format!("{}{path}", self.config.url);
        let url = Url::parse(&url).map_err(|error| failure::denied(&self.config.url, &error.to_string()))?;
        let mut request = Request::new(if body.is_some() { Method::POST } else { Method::GET }, url);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(TYPE));
        if let Some(authorization) = self.authorization()? {
            headers.insert(AUTHORIZATION, authorization);
        }
        if let Some(body) = body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(TYPE));
            *request.body_mut() = Some(body.into());
        }
        Ok(request)
    }

    /// From files that are read each time: a rotated secret needs no restart.
    fn authorization(&self) -> Result<Option<HeaderValue>, Failure> {
        let read = |file: &std::path::PathBuf, key| -> Result<SecretString, Failure> {
            let secret = Secret::File(file.clone()).read();
            let secret = secret.map_err(|error| failure::unreadable(file, key, &error.to_string()))?;
            if secret.expose_secret().is_empty() {
                return Err(failure::unreadable(file, key, "it is empty"));
            }
            Ok(secret)
        };
        let (text, file, key) = match &self.config.login {
            RegistryLogin::None => return Ok(None),
            RegistryLogin::Basic { username, password_file } => {
                let key = "[schema_registry] password_file";
                let password = read(password_file, key)?;
                let pair = STANDARD.encode(format!("{username}:{}", password.expose_secret()));
                (format!("Basic {pair}"), password_file, key)
            }
            RegistryLogin::Token(file) => {
                let key = "[schema_registry] token_file";
                (format!("Bearer {}", read(file, key)?.expose_secret()), file, key)
            }
        };
        let header = HeaderValue::try_from(text);
        let mut header = header.map_err(|_| failure::unreadable(file, key, "no header can hold what is in it"))?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    pub(super) fn unavailable(&self, why: &str) -> Failure {
        failure::unavailable(&self.config.url, why, None)
    }

    /// Of a question without an answer. What is wrong with a token has words of its own.
    fn unanswered(&self, failure: Failure) -> Failure {
        if OF_LOGINS.contains(&failure.code.as_str()) {
            return failure.about(Subject::Elsewhere);
        }
        match failure.class {
            Class::Fatal => failure::denied(&self.config.url, &failure.message),
            Class::Retry | Class::Poison => self.unavailable(&failure.message),
        }
    }

    fn refused(&self, question: &Question, reply: &Reply) -> Failure {
        let refusal: Refusal = serde_json::from_slice(&reply.body).unwrap_or_default();
        let said = if refusal.message.is_empty() { "it says no more" } else { &refusal.message };
        let answered = format!("it answered {}: {}", reply.status, failure::words(said));
        match reply.status {
            404 if refusal.is_missing() => failure::missing(&question.subject, said),
            300..=399 | 401 | 403 | 407 => failure::denied(&self.config.url, &answered),
            // Proxies answer by these, too, of whatever is asked: a registry has a code of its own.
            400 | 409 | 413 | 422 if refusal.error_code != 0 => failure::rejected(&question.subject, said),
            _ => failure::unavailable(&self.config.url, &answered, reply.retry_after),
        }
    }
}
