use super::*;

const ID: &str = "01989b3c-8c1e-7d4f-9a53-1f0e6a1d2b3c";

/// The members that are wrong, and what is told of each.
fn faults(body: &str) -> Vec<(String, String)> {
    let faults = Call::parse(body.as_bytes()).expect_err(body);
    faults.into_iter().map(|fault| (fault.pointer, fault.detail)).collect()
}

/// What is told of this one member.
fn told(member: &str, value: &str) -> String {
    let all = format!(r#"{{"dedupe_key":"k","user_id":"u","template":"t","{member}":{value}}}"#);
    let body = match member {
        "dedupe_key" => format!(r#"{{"user_id":"u","template":"t","dedupe_key":{value}}}"#),
        "user_id" => format!(r#"{{"user_id":{value},"template":"t"}}"#),
        _ => all,
    };
    match Call::parse(body.as_bytes()) {
        Ok(_) => "accepted".to_owned(),
        Err(faults) => {
            assert_eq!((faults.len(), &*faults[0].pointer), (1, &*format!("/{member}")), "{faults:?}");
            faults[0].detail.clone()
        }
    }
}

#[test]
fn every_member_is_read() {
    let body = format!(
        r#"{{"dedupe_key":"ada:welcome","user_id":"ada","template":"welcome","parameters":{{"n":12345678901234567890.10}},
            "request_id":"{ID}","not_before":"2026-11-21T09:00:00+01:00","dedupe_for":"24h","retry_failed":true}}"#
    );
    let call = Call::parse(body.as_bytes()).expect("right");
    assert_eq!(
        call,
        Call {
            dedupe_key: Some("ada:welcome".to_owned()),
            user_id: "ada".to_owned(),
            template: "welcome".to_owned(),
            parameters: Some(r#"{"n":12345678901234567890.10}"#.to_owned()),
            request_id: Some(ID.to_owned()),
            not_before: Timestamp::parse_rfc3339("2026-11-21T08:00:00Z").ok(),
            dedupe_for: Some(Duration::from_secs(86_400)),
            retry_failed: true,
        }
    );
    let least = Call::parse(br#"{"user_id":"u","template":"t"}"#).expect("right");
    assert_eq!((least.dedupe_key, least.parameters, least.retry_failed), (None, None, false));
}

#[test]
fn everything_that_is_wrong_is_told_at_once_and_by_name() {
    let told = faults(r#"{"user_id":5,"templet":"t","a/b":1,"user_id":"u","retry_failed":true}"#);
    let pointers: Vec<_> = told.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/templet", "/a~1b", "/user_id", "/user_id", "/template", "/retry_failed"]);
    assert_eq!(told[2].1, "stands there twice");
    assert_eq!(told[3].1, "a string is needed, this is a number");
    assert_eq!(told[4].1, "is missing");
}

#[test]
fn values_of_another_kind_are_refused() {
    for (member, value, detail) in [
        ("user_id", "\"\"", "is empty"),
        ("user_id", "null", "a string is needed, this is null"),
        ("user_id", &format!("\"{}\"", "u".repeat(1025)), "has 1025 bytes"),
        ("user_id", r#""a\u0000""#, "contains a NUL character"),
        ("user_id", r#""\ud800""#, "not a string: "),
        ("dedupe_key", "\"\"", "has 0 bytes"),
        ("dedupe_key", &format!("\"{}\"", "é".repeat(513)), "has 1026 bytes"),
        ("dedupe_key", &format!("\"{}\"", "é".repeat(512)), "accepted"),
        ("parameters", "[]", "an object is needed, this is an array"),
        ("parameters", "null", "an object is needed, this is null"),
        ("request_id", "\"1\"", "is no UUID"),
        ("request_id", &format!("\"{{{}}}\"", &ID[1..35]), "is no UUID"),
        ("not_before", "\"tomorrow\"", "is no RFC 3339 instant"),
        ("not_before", "\"infinity\"", "is no RFC 3339 instant"),
        ("dedupe_for", "24", "a string is needed, this is a number"),
        ("dedupe_for", "\"24\"", "is no duration"),
        ("dedupe_for", "\"0s\"", "is no duration"),
        ("dedupe_for", "\"01s\"", "is no duration"),
        ("dedupe_for", "\"+1s\"", "is no duration"),
        ("dedupe_for", "\"h\"", "is no duration"),
        ("dedupe_for", "\"\"", "is no duration"),
        ("dedupe_for", "\"1é\"", "is no duration"),
        ("dedupe_for", "\"10000s\"", "is no duration"),
        ("dedupe_for", "\"9999d\"", "accepted"),
        ("retry_failed", "\"true\"", "a boolean is needed, this is a string"),
    ] {
        let told = told(member, value);
        assert!(told.starts_with(detail), "{member} = {value}: {told}");
    }
}

#[test]
fn what_is_no_json_object_is_told_with_its_place() {
    for body in ["", "nonsense", "[]", "5", r#"{"user_id":"u""#, r#"{"user_id":"u"} x"#, "{\"user_id\":\u{1}}"] {
        let told = faults(body);
        assert!(
            told.len() == 1 && told[0].0.is_empty() && told[0].1.starts_with("not a JSON object: "),
            "{body}: {told:?}"
        );
    }
    assert!(Call::parse(b"{\"user_id\":\"\xff\"}").is_err(), "no UTF-8");
    assert!(Call::parse("[".repeat(1 << 20).as_bytes()).is_err(), "and no end of the stack");
    let deep = format!(r#"{{"user_id":"u","template":"t","parameters":{{"a":{}"#, "[".repeat(1 << 20));
    assert!(Call::parse(deep.as_bytes()).is_err());
}

#[test]
fn parameters_have_2000_levels_at_most() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"user_id":"u","template":"t","parameters":{{"a":{open}"]}}\\\"[{{"{close}}}}}"#)
    };
    assert!(Call::parse(nested(2_000).as_bytes()).is_ok());
    let told = faults(&nested(2_001));
    assert_eq!(told, [("/parameters".to_owned(), "has more than 2000 levels".to_owned())]);
    let wide = format!(r#"{{"user_id":"u","template":"t","parameters":{{"a":[{}[]]}}}}"#, "[],".repeat(5_000));
    assert!(Call::parse(wide.as_bytes()).is_ok());
}

#[test]
fn garbled_bodies_end_in_call_or_named_faults() {
    let (mut taken, mut refused) = (0, 0);
    for bytes in crate::garbled::Garbled::new("intake") {
        match Call::parse(&bytes) {
            Ok(call) => {
                taken += 1;
                assert!(!call.user_id.is_empty() && !call.template.contains('\0'), "{call:?}");
            }
            Err(faults) => {
                refused += 1;
                assert!(!faults.is_empty());
            }
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
}
