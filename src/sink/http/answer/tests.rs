use super::*;

fn status(status: u16) -> Option<Failure> {
    classify(Answer::Status { status, retry_after: Some(Duration::from_secs(7)), verdict: None }, "http://h")
}

// Guarantee: failures.outage
#[test]
fn every_status_has_its_meaning() {
    use Class::{Fatal, Poison, Retry};
    for code in 200..=299 {
        assert_eq!(status(code), None);
    }
    for (codes, class, ambiguous) in [
        (vec![100, 101, 199, 600, 999], Retry, true),
        (vec![300, 301, 302, 303, 304, 307, 308, 399], Fatal, false),
        (vec![401, 403, 407], Fatal, false),
        (vec![429], Retry, false),
        (vec![408, 500, 501, 502, 503, 504, 599], Retry, true),
        (vec![400, 402, 404, 405, 409, 410, 413, 415, 422, 425, 451, 499], Poison, false),
    ] {
        for code in codes {
            let failure = status(code).expect("is no success");
            assert_eq!((failure.class, failure.ambiguous), (class, ambiguous), "{code}");
            assert_eq!(failure.code, format!("http_{code}"));
            // A key that is in use may become free: the sink decides.
            assert_eq!(failure.retry_after.is_some(), class == Retry || code == 409, "{code}");
        }
    }
}

// Guarantee: failures.ambiguous
#[test]
fn only_what_was_sent_is_ambiguous() {
    for (answer, ambiguous) in
        [(Answer::NotSent("refused".into()), false), (Answer::TimedOut, true), (Answer::Broken("reset".into()), true)]
    {
        let failure = classify(answer, "http://h").expect("is no success");
        assert_eq!((failure.class, failure.ambiguous), (Class::Retry, ambiguous));
    }
}

#[test]
fn a_providers_verdict_counts_for_4xx_only() {
    let verdict = Verdict { class: Class::Fatal, code: "x".into(), message: "m", hint: "h" };
    let of = |status| {
        classify(Answer::Status { status, retry_after: None, verdict: Some(verdict.clone()) }, "http://h")
            .map(|failure| (failure.class, failure.ambiguous))
    };
    assert_eq!(of(400), Some((Class::Fatal, false)));
    assert_eq!(of(429), Some((Class::Fatal, false)));
    assert_eq!(of(500), Some((Class::Retry, true)));
    assert_eq!(of(201), None);
}

#[test]
fn retry_after_is_read_capped_and_absurd_ones_are_ignored() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
    for (value, pause) in [
        ("1", Some(1)),
        (" 120 ", Some(120)),
        ("900", Some(900)),
        ("901", Some(900)),
        ("31536000", Some(900)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
        ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10)),
        ("Sun, 06 Nov 1994 23:49:47 GMT", Some(900)),
        ("Sun, 06 Nov 1994 08:49:36 GMT", None),
        ("0", None),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("1e3", None),
        ("99999999999999999999999", None),
        ("", None),
        ("soon", None),
        ("\u{661}", None),
    ] {
        assert_eq!(retry_after(value.as_bytes(), now), pause.map(Duration::from_secs), "{value}");
    }
    assert_eq!(retry_after(b"\xff", now), None);
}

proptest::proptest! {
    #[test]
    fn no_retry_after_panics_or_passes_the_cap(value in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
        let pause = retry_after(&value, SystemTime::now());
        assert!(pause.is_none_or(|pause| pause <= LONGEST_PAUSE && !pause.is_zero()));
    }
}

#[test]
fn pause_that_is_asked_for_is_told() {
    let told = |seconds| {
        let answer = Answer::Status { status: 429, retry_after: Some(Duration::from_secs(seconds)), verdict: None };
        classify(answer, "http://h").expect("a failure")
    };
    assert_eq!(told(900).message, "http://h answered 429 and asks for a pause of 900 s");
    assert!(told(900).hint.contains("a restart of it ends the pause"), "{}", told(900).hint);
    assert_eq!(told(1).message, "http://h answered 429");
}
