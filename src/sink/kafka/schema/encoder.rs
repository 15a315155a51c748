//! The schemas of one relay's records, by their topics.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::codec::Codec;
use super::failure;
use super::kept::Kept;
use super::misfit::Misfit;
use super::question::{Question, Which};
use super::registry::{Given, Registry};
use super::topics::{OfTopic, Topics};
use super::{RegistryConfig, SchemaFacts, SchemaFormat, SubjectName, WantedSchema};
use crate::sink::Failure;

/// Asked about to see whether the registry answers, where rows name the topics.
const NO_SUBJECT: &str = "outbox-relay.check-value";

/// The registry of a process. What it has given outlives the sinks that asked.
#[derive(Debug, Default)]
pub(in crate::sink::kafka) struct Registries(OnceLock<Arc<Registry>>);

impl Registries {
    fn of(&self, config: &Arc<RegistryConfig>) -> &Arc<Registry> {
        self.0.get_or_init(|| Registry::new(config))
    }
}

/// Why a row has no value.
#[derive(Debug)]
pub(in crate::sink::kafka) enum Unencoded {
    Refused(Failure),
    /// It takes at least so many bytes.
    Large(usize),
}

/// See the module.
#[derive(Debug)]
pub(in crate::sink::kafka) struct Encoder {
    format: SchemaFormat,
    /// What the configured file holds, from its first use on.
    file: Mutex<Option<Arc<str>>>,
    topics: Topics,
}

impl Encoder {
    pub(in crate::sink::kafka) fn new(format: &SchemaFormat) -> Self {
        Self { format: format.clone(), file: Mutex::default(), topics: Topics::default() }
    }

    #[cfg(test)]
    pub(super) fn format(&self) -> SchemaFormat {
        self.format.clone()
    }

    #[cfg(test)]
    pub(super) fn codec(&self, topic: &str) -> Option<Arc<Codec>> {
        self.topics.get(topic).map(|held| Arc::clone(&held.codec))
    }

    /// Whether topics have subjects of their own.
    pub(in crate::sink::kafka) const fn depends_on_topic(&self) -> bool {
        self.format.depends_on_topic()
    }

    /// Has the schema of a topic at hand. Waits for the registry only where none is known.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::sink::kafka) async fn prepare(&self, registries: &Registries, topic: &str) -> Result<(), Failure> {
        let registry = registries.of(&self.format.registry);
        let held = self.topics.get(topic);
        let kept = match &held {
            Some(held) => Arc::clone(&held.kept),
            None => registry.kept(self.question(topic)?),
        };
        let given = registry.current(&kept).await?;
        self.take(topic, kept, given, held.as_deref())
    }

    /// Has the schema in use that the registry has had since then: asks it, unless that was asked then or later.
    ///
    /// # Errors
    /// Why that is not known, or why nothing can be written by the later one.
    pub(in crate::sink::kafka) async fn renew(
        &self,
        registries: &Registries,
        topic: &str,
        since: Instant,
    ) -> Result<(), Failure> {
        let Some(held) = self.topics.get(topic) else { return Ok(()) };
        let given = registries.of(&self.format.registry).confirmed(&held.kept, since).await?;
        self.take(topic, Arc::clone(&held.kept), given, Some(&held))?;
        self.topics.get(topic).and_then(|now| now.unusable.clone()).map_or(Ok(()), Err)
    }

    /// What is said of a registry that gave no answer in the time that there was.
    pub(in crate::sink::kafka) fn late(&self) -> Failure {
        failure::unavailable(&self.format.registry.url, "it did not answer in time", None)
    }

    /// The value of a topic's record.
    pub(in crate::sink::kafka) fn encode(
        &self,
        topic: &str,
        payload: &[u8],
        most: usize,
    ) -> Result<Vec<u8>, Unencoded> {
        let Some(held) = self.topics.get(topic) else {
            let why = "its answer was forgotten, and is asked for again";
            return Err(Unencoded::Refused(failure::unavailable(&self.format.registry.url, why, None)));
        };
        held.codec.encode(held.id, payload, most).map_err(|misfit| match misfit {
            Misfit::Large(bytes) => Unencoded::Large(bytes),
            misfit @ Misfit::Value { .. } => {
                Unencoded::Refused(failure::mismatch(&held.kept.question.subject, held.id, &misfit))
            }
        })
    }

    /// What the registry says of a topic's schema; none without a topic, when it answers.
    ///
    /// # Errors
    /// What is wrong with the registry, or the schema.
    pub(in crate::sink::kafka) async fn inspect(
        &self,
        registries: &Registries,
        topic: Option<&str>,
    ) -> Result<Option<SchemaFacts>, Failure> {
        let registry = registries.of(&self.format.registry);
        let topic = match topic {
            Some(topic) => topic,
            None if !self.depends_on_topic() => "",
            None => {
                let question = Question { subject: NO_SUBJECT.to_owned(), which: Which::Latest };
                let asked = registry.ask(&question).await.map(drop);
                return asked
                    .or_else(|failure| if failure::is_missing(&failure) { Ok(()) } else { Err(failure) })
                    .map(|()| None);
            }
        };
        let question = self.question(topic)?;
        let Question { subject, which } = question.clone();
        let (given, is_registered) = match which {
            Which::Register(kind, text) => {
                let same = Question { subject: subject.clone(), which: Which::Same(kind, Arc::clone(&text)) };
                match registry.ask(&same).await {
                    Err(failure) if failure::is_missing(&failure) => {
                        registry.would_take(&question).await?;
                        let kind = kind.in_registry().to_owned();
                        let given =
                            Given { id: 0, version: None, kind, text: text.to_string(), references: Vec::new() };
                        (given, false)
                    }
                    asked => (asked?, true),
                }
            }
            Which::Latest | Which::Version(_) | Which::Same(..) => (registry.ask(&question).await?, true),
        };
        let codec = Codec::new(&self.format, &given).map_err(|what| failure::unusable(&subject, &what))?;
        let id = is_registered.then_some(given.id);
        let name = codec.name().map(str::to_owned);
        Ok(Some(SchemaFacts { subject, id, version: given.version, name, fields: codec.fields() }))
    }

    /// Takes what the registry has given, unless it is what is held.
    fn take(&self, topic: &str, kept: Arc<Kept>, given: Arc<Given>, held: Option<&OfTopic>) -> Result<(), Failure> {
        if held.is_some_and(|held| Arc::ptr_eq(&held.given, &given)) {
            return Ok(());
        }
        let made = match self.topics.codec(&given) {
            Some(codec) => Ok(codec),
            None => Codec::new(&self.format, &given).map(Arc::new),
        };
        let of_topic = match (made, held) {
            (Ok(codec), _) => OfTopic { kept, id: given.id, given, codec, unusable: None },
            (Err(what), None) => return Err(failure::unusable(&kept.question.subject, &what)),
            (Err(what), Some(held)) => {
                let failure = failure::unusable(&kept.question.subject, &what);
                let Failure { code, message, hint, .. } = &failure;
                tracing::error!(
                    code,
                    error = message,
                    hint,
                    "a later schema cannot be used; the one before it stays in use"
                );
                OfTopic { kept, given, codec: Arc::clone(&held.codec), id: held.id, unusable: Some(failure) }
            }
        };
        self.topics.insert(topic, of_topic);
        Ok(())
    }

    fn question(&self, topic: &str) -> Result<Question, Failure> {
        let which = match &self.format.wanted {
            WantedSchema::Latest => Which::Latest,
            WantedSchema::Version(version) => Which::Version(*version),
            WantedSchema::File { register, .. } => {
                let (kind, text) = (self.format.kind, self.text()?);
                if *register { Which::Register(kind, text) } else { Which::Same(kind, text) }
            }
        };
        let subject = match self.format.subject {
            SubjectName::Topic => format!("{topic}-value"),
            SubjectName::Record => self.record()?,
            SubjectName::TopicRecord => format!("{topic}-{}", self.record()?),
        };
        Ok(Question { subject, which })
    }

    /// The full name that subjects have.
    fn record(&self) -> Result<String, Failure> {
        if let Some(record) = &self.format.record {
            return Ok(record.clone());
        }
        Codec::name_in(&self.format, &self.text()?).map_err(|what| failure::unusable("that schema_file names", &what))
    }

    /// What the configured file holds.
    fn text(&self) -> Result<Arc<str>, Failure> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = &*file {
            return Ok(Arc::clone(text));
        }
        let WantedSchema::File { path, .. } = &self.format.wanted else {
            return Err(failure::unusable("of the relay", "its section names neither a record nor a schema_file"));
        };
        let read =
            crate::file::text(path).map_err(|error| failure::unreadable(path, "schema_file", &error.to_string()))?;
        Ok(Arc::clone(file.insert(read.into())))
    }
}
