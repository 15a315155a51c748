//! Servers that give more answers than they were asked for, or another line's.

use super::*;

// Guarantee: failures.smtp-step
#[tokio::test]
async fn a_refusal_that_came_before_its_line_is_no_word_about_a_row() {
    let script: [(Script, &str); 5] = [
        (|line| line.starts_with("MAIL").then_some("250 fine\r\n550 5.1.1 no such user"), "smtp_broken"),
        (|line| line.starts_with("RCPT").then_some("250 fine\r\n554 5.5.1 no"), "smtp_broken"),
        (|line| line.starts_with("RCPT").then_some("250 fine\r\n354 go ahead"), "smtp_broken"),
        (|line| line.starts_with("EHLO").then_some("250-x\r\n250 AUTH PLAIN\r\n535 5.7.8 no"), "smtp_broken"),
        (|line| line.starts_with("MAIL").then_some("250 fine\r\n421 4.3.2 closing"), "smtp_rcpt_421"),
    ];
    for (script, code) in script {
        assert_eq!(failure(script).await, (Class::Retry, false, code.to_owned()));
    }
}

// Guarantee: failures.smtp-step
#[tokio::test]
async fn a_refusal_behind_which_the_server_says_more_is_no_word_about_a_row() {
    let too_many: [Script; 4] = [
        // The look before MAIL comes before the second answer, or after it.
        |line| match line.split(' ').next() {
            Some("AUTH") => Some("235 2.7.0 yes|250 and more"),
            Some("MAIL") => Some("550 5.1.1 no such user"),
            _ => None,
        },
        // What a client sees whose look before MAIL came too early.
        |line| line.starts_with("RCPT").then_some("550 5.1.1 no such user|250 fine"),
        |line| line.starts_with("RCPT").then_some("550 5.7.1 not you|503 5.5.1 MAIL first"),
        |line| (line == "DATA").then_some("554 5.5.1 no|354 go ahead"),
    ];
    for script in too_many {
        assert_eq!(failure(script).await, (Class::Retry, false, "smtp_broken".to_owned()));
    }
    // Servers end a connection behind a refusal, or say that they do.
    let ends: [Script; 2] = [
        |line| line.starts_with("RCPT").then_some("550 5.1.1 no such user|421 4.7.0 too many errors|close"),
        |line| line.starts_with("RCPT").then_some("550 5.1.1 no such user|close"),
    ];
    for script in ends {
        assert_eq!(failure(script).await, (Class::Poison, false, "smtp_rcpt_550".to_owned()));
    }
}

// Guarantee: failures.smtp-step
#[tokio::test]
async fn behind_an_answer_too_many_the_next_mail_has_a_dialogue_of_its_own() {
    let (port, seen) = server(|line| (line == ".").then_some("250 taken\r\n250 and more")).await;
    let sink = sink(&config(port));
    assert_eq!(publish(&sink, &["1", "2"]).await, Published { acknowledged: 2, stopped: None, suspects: 1 });
    assert_eq!((seen.connections(), seen.count("RSET"), seen.count("MAIL")), (2, 0, 2));
}

#[tokio::test]
async fn a_dialogue_that_the_server_has_lost_the_thread_of_is_not_used_again() {
    let (port, seen) = server(|line| line.starts_with("RCPT").then_some("503 5.5.1 MAIL first")).await;
    let sink = sink(&config(port));
    for _ in 0..2 {
        let failure = publish(&sink, &["1"]).await.stopped.expect("refused");
        assert_eq!((failure.class, failure.ambiguous, failure.code.as_str()), (Class::Retry, false, "smtp_rcpt_503"));
        assert!(failure.is_outage(), "it is not about the row: {failure:?}");
    }
    assert_eq!(seen.connections(), 2);
}
