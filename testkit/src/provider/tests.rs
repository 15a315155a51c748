//! The provider answers as told, and writes down what it has accepted also when the sender never learns of it.

use super::*;

async fn put(provider: &Provider, key: &str) -> reqwest::Result<u16> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(500)).build()?;
    let request = client.put(format!("{}/notifications/delayed-7", provider.url())).header("Idempotency-Key", key);
    Ok(request.body("{\"id\":7}").send().await?.status().as_u16())
}

#[tokio::test]
async fn each_request_is_written_down_and_answered_as_told() {
    let decide = |request: &Request| match (request.key.as_str(), request.attempt) {
        ("r/refused", _) => Answer::Refuse(500),
        ("r/hangs", 1) => Answer::Hang,
        ("r/lost", 1) => Answer::Lose,
        ("r/late", _) => Answer::Late(Duration::from_millis(50)),
        _ => Answer::Accept,
    };
    let provider = Provider::start(decide).await.expect("a provider");
    assert_eq!(put(&provider, "r/refused").await.expect("an answer"), 500);
    assert!(put(&provider, "r/hangs").await.expect_err("no answer").is_timeout());
    assert_eq!(put(&provider, "r/hangs").await.expect("an answer"), 200);
    assert_eq!(put(&provider, "r/late").await.expect("an answer"), 200);
    let received = provider.received();
    let told: Vec<_> = received.iter().map(|one| (one.request.key.as_str(), one.request.attempt, one.answer)).collect();
    let late = Answer::Late(Duration::from_millis(50));
    assert_eq!(told[..2], [("r/refused", 1, Answer::Refuse(500)), ("r/hangs", 1, Answer::Hang)]);
    assert_eq!(told[2..], [("r/hangs", 2, Answer::Accept), ("r/late", 1, late)]);
    assert_eq!(received.iter().map(Received::is_accepted).collect::<Vec<_>>(), [false, true, true, true]);
    assert_eq!(received[1].took(), None, "it was never answered");
    assert!(received[3].took().is_some_and(|took| took >= Duration::from_millis(50)));
    assert_eq!((received[0].request.method.as_str(), received[0].request.path.as_str()), {
        ("PUT", "/notifications/delayed-7")
    });
    assert_eq!(received[0].request.body, "{\"id\":7}");
    assert!(put(&provider, "r/lost").await.expect_err("no answer").is_timeout());
    assert!(!provider.received()[4].is_accepted());
    provider.decide(|_| Answer::Accept);
    assert_eq!(put(&provider, "r/refused").await.expect("an answer"), 200);
    assert_eq!(provider.count(), 6);
}
