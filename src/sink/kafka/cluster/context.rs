//! What the client reports: deliveries, errors, statistics, and that it wants a token.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};

use crate::sink::Failure;
use crate::sink::kafka::complaint::Complaint;
use crate::sink::kafka::confirmed::Confirmed;
use crate::sink::kafka::ledger::Ledger;
use crate::sink::kafka::login::Login;
use crate::sink::kafka::statistics::Reading;

/// Receives the client's reports.
#[derive(Debug, Default)]
pub(in crate::sink::kafka) struct Context {
    pub(in crate::sink::kafka) ledger: Ledger,
    pub(in crate::sink::kafka) confirmed: Mutex<Confirmed>,
    pub(in crate::sink::kafka) reading: Reading,
    pub(in crate::sink::kafka) complaint: Complaint,
    pub(in crate::sink::kafka) login: Login,
}

impl Context {
    pub(in crate::sink::kafka) fn confirmed(&self) -> MutexGuard<'_, Confirmed> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failure that an error of the client is.
    pub(in crate::sink::kafka) fn failure(&self, error: &KafkaError) -> Failure {
        self.login.judged(self.complaint.failure(error))
    }
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        let given = self.login.give()?;
        // What it complained of was another one's.
        self.complaint.forget();
        Ok(given)
    }

    fn stats_raw(&self, json: &[u8]) {
        self.reading.take(json);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "Kafka client");
        self.complaint.hear(error, reason);
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, row: usize) {
        let error = match result {
            Ok(_) => None,
            Err((error, _)) => Some(error.rdkafka_error_code().unwrap_or(rdkafka::error::RDKafkaErrorCode::Fail)),
        };
        self.ledger.report(row, error);
    }
}
