//! What the cluster has just said of topics: a thousand relays that start with one topic need not all ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sink::Failure;
use crate::sink::kafka::{Cluster, TopicFacts, describe_topic};

/// An answer counts for as long as this: a relay is checked again later than that.
const FRESH: Duration = Duration::from_secs(2);

type Answer = Result<TopicFacts, Failure>;
/// The last answer, and when it came; held while somebody asks.
type Said = tokio::sync::Mutex<Option<(Instant, Answer)>>;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::relay) struct Topics(Mutex<HashMap<String, Arc<Said>>>);

impl Topics {
    /// The next question about the topic goes to the cluster.
    pub(in crate::relay) fn forget(&self, topic: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }

    /// What the cluster says of a topic, or has said a moment ago; whoever asks while another does waits for the same answer.
    pub(in crate::relay) async fn describe(&self, cluster: &Arc<Cluster>, topic: &str, patience: Duration) -> Answer {
        let said =
            Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(topic.to_owned()).or_default());
        let mut said = said.lock().await;
        if let Some((at, answer)) = said.as_ref()
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        let answer = describe_topic(cluster, topic, patience).await;
        *said = Some((Instant::now(), answer.clone()));
        answer
    }
}
