//! A question to a service that is no receiver: one that gives tokens, or the credentials for them.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Request, StatusCode};

use super::connections::Connections;
use super::{access, answer, client};

/// What a service has answered.
pub(in crate::sink) struct Reply {
    /// Its status.
    pub(in crate::sink) status: StatusCode,
    /// Its headers.
    pub(in crate::sink) headers: HeaderMap,
    /// Its beginning; empty when it did not come in time.
    pub(in crate::sink) body: Vec<u8>,
}

/// Sends a request to `whom`. The head of the answer may take as long as `timeout`, and so may its body. `ca_file` verifies the
/// service's certificate, instead of the system's authorities.
///
/// A client for each question: questions are rare, and the authorities may be others by now. A receiver's are not the service's.
///
/// # Errors
/// Why there is no answer.
pub(in crate::sink) async fn call(
    request: Request,
    timeout: Duration,
    ca_file: Option<PathBuf>,
    whom: &str,
) -> Result<Reply, String> {
    let client = client::client(timeout, None, &access::Config::trusting(ca_file))?;
    let connections = Connections::new(client, timeout);
    let response = connections.execute(request).await.map_err(|answer| {
        let failure = answer::classify(answer, whom);
        failure.map_or_else(|| format!("{whom} did not answer"), |failure| failure.message)
    })?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = tokio::time::timeout(timeout, answer::body(response)).await.unwrap_or_default();
    Ok(Reply { status, headers, body })
}
