use super::*;

fn reply(step: Step, code: u16) -> (Class, bool, String) {
    let failure = judge(step, &Trouble::Reply { code, enhanced: Some("4.2.0".to_owned()) }, "mail:25");
    (failure.class, failure.ambiguous, failure.code)
}

// Guarantee: failures.smtp-codes
#[test]
fn a_refusal_means_what_its_step_makes_of_it() {
    use Class::{Fatal, Poison, Retry};
    for (step, code, class, word) in [
        (Step::Greeting, 554, Retry, "smtp_greeting_554"),
        (Step::Hello, 502, Retry, "smtp_ehlo_502"),
        (Step::StartTls, 454, Retry, "smtp_starttls_454"),
        (Step::Auth, 454, Retry, "smtp_auth_454"),
        (Step::Auth, 535, Fatal, "smtp_auth_535"),
        (Step::Mail, 451, Retry, "smtp_mail_451"),
        (Step::Mail, 530, Fatal, "smtp_mail_530"),
        (Step::Mail, 550, Fatal, "smtp_mail_550"),
        (Step::Mail, 503, Retry, "smtp_mail_503"),
        (Step::Mail, 552, Poison, "smtp_mail_552"),
        (Step::Rcpt, 450, Retry, "smtp_rcpt_450"),
        (Step::Rcpt, 550, Poison, "smtp_rcpt_550"),
        (Step::Rcpt, 421, Retry, "smtp_rcpt_421"),
        (Step::Rcpt, 502, Retry, "smtp_rcpt_502"),
        (Step::Rcpt, 503, Retry, "smtp_rcpt_503"),
        (Step::Data, 451, Retry, "smtp_data_451"),
        (Step::Data, 503, Retry, "smtp_data_503"),
        (Step::Data, 554, Poison, "smtp_data_554"),
        (Step::Content, 552, Poison, "smtp_content_552"),
        (Step::Dot, 452, Retry, "smtp_content_452"),
        (Step::Dot, 421, Retry, "smtp_content_421"),
        (Step::Dot, 503, Retry, "smtp_content_503"),
        (Step::Dot, 554, Poison, "smtp_content_554"),
    ] {
        assert_eq!(reply(step, code), (class, false, word.to_owned()));
    }
}

// Guarantee: failures.smtp-relay
#[test]
fn a_server_that_does_not_relay_for_us_is_fatal_and_costs_no_row() {
    let class = |step, code, enhanced: &str| {
        judge(step, &Trouble::Reply { code, enhanced: Some(enhanced.to_owned()) }, "mail:25").class
    };
    assert_eq!(class(Step::Rcpt, 554, "5.7.1"), Class::Fatal, "relay access denied");
    assert_eq!(class(Step::Rcpt, 550, "5.7.26"), Class::Fatal);
    assert_eq!(class(Step::Rcpt, 503, "5.7.1"), Class::Fatal, "it says what it does not permit");
    assert_eq!(class(Step::Rcpt, 503, "5.5.1"), Class::Retry, "a sign-in is missing, or the server is out of step");
    assert_eq!(class(Step::Rcpt, 450, "4.7.1"), Class::Retry, "greylisting");
    assert_eq!(class(Step::Rcpt, 550, "5.1.1"), Class::Poison);
    assert_eq!(class(Step::Dot, 550, "5.7.1"), Class::Poison, "of the mail's content");
    assert_eq!(class(Step::Dot, 503, "5.7.1"), Class::Retry, "not of the content, but of the lines before");
    assert_eq!(class(Step::Data, 550, "5.7.1"), Class::Fatal, "it has not seen the content");
    for step in [Step::Rcpt, Step::Data, Step::Dot] {
        assert_eq!(class(step, 550, "5.4.5"), Class::Retry, "a quota of the sender");
    }
}

// Guarantee: failures.smtp-codes
#[test]
fn only_what_ends_behind_the_last_line_without_an_answer_is_unknown() {
    let lost = Trouble::Lost("reset".to_owned());
    for trouble in [lost, Trouble::TimedOut, Trouble::NoSmtp("no number")] {
        for step in [Step::Connect, Step::Greeting, Step::Auth, Step::Mail, Step::Rcpt, Step::Data, Step::Content] {
            let failure = judge(step, &trouble, "mail:25");
            assert_eq!((failure.class, failure.ambiguous), (Class::Retry, false), "{step:?} {trouble:?}");
        }
        let failure = judge(Step::Dot, &trouble, "mail:25");
        assert_eq!((failure.class, failure.ambiguous), (Class::Retry, true), "{trouble:?}");
        assert!(failure.code.ends_with("_after_data"), "{}", failure.code);
    }
}
