//! When the next request may be sent.

use super::*;

#[tokio::test]
async fn the_receivers_change_for_a_pause_is_reported() {
    for status in [429, 503] {
        let (url, _) = answering(status, Some(("retry-after", "7200"))).await;
        assert_eq!(failure(url).await.retry_after, Some(answer::LONGEST_PAUSE));
    }
}

#[tokio::test]
async fn issuer_of_tokens_may_ask_for_a_pause_and_its_refusal_of_the_url_says_so() {
    let folder = tempfile::tempdir().expect("made");
    let client_secret_file = folder.path().join("secret");
    std::fs::write(&client_secret_file, "s3cret").expect("written");
    let pause = Some(answer::LONGEST_PAUSE);
    for (status, pause, hint) in [(429, pause, "is up"), (503, pause, "is up"), (404, None, "Check token_url of [s]")] {
        let (token_url, _) = answering(status, Some(("retry-after", "7200"))).await;
        let config = oauth2::Config {
            token_url,
            client_id: "relay".to_owned(),
            client_secret_file: client_secret_file.clone(),
            scope: None,
            audience: None,
            ca_file: None,
            client_auth: oauth2::ClientAuth::Basic,
        };
        let tokens = oauth2::Tokens::new(config, Duration::from_secs(5), "[s]");
        let failure = tokens.token().await.expect_err("no token");
        assert_eq!((failure.code.as_str(), failure.retry_after), ("token_unavailable", pause), "{status}");
        assert!(failure.hint.contains(hint), "{}", failure.hint);
    }
}

#[tokio::test]
async fn the_rate_ends_a_turn_without_a_failure() {
    let (url, seen) = answering(200, None).await;
    let config = Config { rate_per_second: Some(0.5), ..config(url) };
    let sink = HttpSink::new(&config, "relay").expect("compiles");
    assert_eq!(sink.min_interval(), Some(Duration::from_secs(2)));
    let mut publication = sink.begin(Mode::default()).expect("begins");
    assert_eq!(publication.push(&rows(&["1", "2"])).await, Flow::Stop);
    assert_eq!(publication.push(&rows(&["2"])).await, Flow::Stop);
    assert_eq!(publication.finish(), Published { acknowledged: 1, stopped: None, suspects: 1 });
    assert_eq!(seen.lock().expect("not poisoned").len(), 1);
}
