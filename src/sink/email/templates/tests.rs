use super::*;
use crate::batch::Batch;
use crate::position::Timestamp;
use crate::sink::email::{Security, Server, Source, Texts};
use std::time::{Duration, UNIX_EPOCH};

fn config() -> Config {
    let texts = Texts {
        subject: "Hello, {{ name }}".to_owned(),
        text: Some(Source::Inline("Dear {{ name }},\n.\nbye".to_owned())),
        html: Some(Source::Inline("<p title=\"{{ name }}\">{{ name }}</p>".to_owned())),
    };
    let from = Mailbox::parse("The Shöp <shop@example.com>").expect("a mailbox");
    Config {
        server: Server {
            host: "127.0.0.1".to_owned(),
            port: 25,
            security: Security::None,
            credentials: None,
            ca_file: None,
            hello_name: None,
        },
        timeout: Duration::from_secs(1),
        rate_per_second: None,
        key_memory: None,
        connections: 1,
        message_id_domain: from.domain().to_owned(),
        from,
        reply_to: None,
        to: "{{ email }}".to_owned(),
        template: None,
        templates: BTreeMap::from([("hello".to_owned(), texts)]),
    }
}

/// The mail of a row with these values of the columns `name` and `email`.
fn write(config: &Config, name: &str, email: &str) -> Result<Mail, Failure> {
    let templates = Templates::compile(config, "welcome").expect("compiles");
    let mut batch = Batch::new(templates.fields().len());
    let values: Vec<_> = templates
        .fields()
        .iter()
        .map(|field| match field {
            Field::Text(column) if column == "email" => Some(email.as_bytes()),
            _ => Some(name.as_bytes()),
        })
        .collect();
    batch.push(Timestamp::from_pg_micros(1), "1", values);
    templates.write(&batch.message(0), UNIX_EPOCH)
}

fn refused(config: &Config, name: &str, email: &str) -> String {
    let failure = write(config, name, email).expect_err("poison");
    assert_eq!((failure.class, failure.ambiguous), (Class::Poison, false));
    assert!(!failure.message.contains("evil"), "a row's values are not told: {failure:?}");
    failure.code
}

/// The lines of the header, folded ones put together.
fn header(mail: &Mail) -> Vec<String> {
    let text = String::from_utf8(mail.content.clone()).expect("ASCII");
    let head = text.split("\r\n\r\n").next().expect("a header").replace("\r\n ", " ").replace("\r\n\t", " ");
    head.split("\r\n").map(str::to_owned).collect()
}

#[test]
fn a_mail_has_its_headers_and_both_parts() {
    let mail = write(&config(), "Änn", "Ann <ann@example.com>").expect("a mail");
    assert_eq!((mail.from.as_str(), mail.to.as_str()), ("shop@example.com", "ann@example.com"));
    let header = header(&mail);
    for line in ["To: Ann <ann@example.com>", "Message-ID: <welcome/1@example.com>", "Auto-Submitted: auto-generated"] {
        assert!(header.iter().any(|each| each == line), "{header:#?}");
    }
    assert!(header.iter().any(|line| line.starts_with("Date: Thu, 01 Jan 1970 00:00:00")), "{header:#?}");
    assert!(header.iter().any(|line| line.starts_with("Subject: Hello, =?utf-8?")), "{header:#?}");
    let text = String::from_utf8(mail.content).expect("ASCII");
    assert!(text.contains("multipart/alternative") && text.contains("text/plain") && text.contains("text/html"));
    assert!(text.contains("<p title=3D\"=C3=84nn\">=C3=84nn</p>"), "{text}");
}

// Guarantee: secrets.email-injection
#[test]
fn no_value_gets_out_of_its_line_or_its_mailbox() {
    let config = config();
    for evil in [
        "evil\r\nBcc: evil@example.com",
        "evil\nX-Evil: 1",
        "evil\rX-Evil: 1",
        "evil\0",
        "evil\u{b}",
        "evil\u{85}Bcc: x",
        "evil\u{2028}Bcc: x",
        "\u{202e}live",
        "\u{2066}evil",
        "=?utf-8?q?evil=0D=0ABcc:_eve@example.com?=",
        "=?utf-8?b?DQpCY2M6IGV2aWxAZXhhbXBsZS5jb20=?=",
        "\r\n\r\n<script>evil</script>",
    ] {
        assert_eq!(refused(&config, evil, "ann@example.com"), "invalid_subject", "{evil:?}");
        assert_eq!(refused(&config, "Ann", &format!("{evil} <ann@example.com>")), "invalid_mailbox", "{evil:?}");
        assert_eq!(refused(&config, "Ann", &format!("ann@example.com{evil}")), "invalid_mailbox", "{evil:?}");
    }
    for evil in ["ann@example.com, evil@example.com", "evil", "\"evil,\" <ann@example.com>", "evil;x@example.com"] {
        assert_eq!(refused(&config, "Ann", evil), "invalid_mailbox", "{evil:?}");
    }
}

// Guarantee: secrets.email-injection
#[test]
fn whatever_a_row_holds_the_header_keeps_its_lines_and_the_whole_is_plain() {
    let config = config();
    let long_word = "x".repeat(2_000);
    let long_words = "Bcc: x@example.com ".repeat(200);
    let emoji = "\u{1f469}\u{200d}\u{1f680} ".repeat(300);
    for value in [
        "Bcc: eve@example.com",
        "2 + 2 =?",
        "a  b\"\\<>()[]:;,@",
        " leading and trailing ",
        "",
        " ",
        "%0d%0aBcc: x",
        "\u{560a}Bcc: x\u{560d}",
        "\u{ff0d}\u{200f}",
        "--boundary--",
        &long_words,
        &emoji,
    ] {
        let mail = write(&config, value, "ann@example.com").unwrap_or_else(|failure| panic!("{value:?}: {failure:?}"));
        assert!(mail::is_sendable(&mail.content), "{value:?}");
        let header = header(&mail);
        let names: Vec<&str> = header.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
        let due = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"];
        assert_eq!(names, due, "{value:?}");
    }
    assert_eq!(refused(&config, &long_word, "ann@example.com"), "invalid_mail", "a word longer than a line can be");
}

#[test]
fn a_body_may_hold_anything_and_none_of_it_reaches_the_wire_as_a_line_of_its_own() {
    let texts = Texts { subject: "x".to_owned(), text: Some(Source::Inline("{{ name }}".to_owned())), html: None };
    let config = Config { templates: BTreeMap::from([("t".to_owned(), texts)]), ..config() };
    for value in
        ["\n.\n", "\r\n.\r\n", "\r.\r", "a\n.\r\nMAIL FROM:<eve@example.com>", "\0\u{1b}", "\u{65e5}\u{672c}\n."]
    {
        let mail = write(&config, value, "ann@example.com").expect("a mail");
        assert!(mail::is_sendable(&mail.content), "{value:?}");
    }
}

#[test]
fn a_row_that_names_no_configured_template_is_poison() {
    let text = |text: &str| Texts {
        subject: "{{ name }}".to_owned(),
        text: Some(Source::Inline(text.to_owned())),
        html: None,
    };
    let templates = BTreeMap::from([("one".to_owned(), text("first")), ("two".to_owned(), text("second"))]);
    let config = Config { template: Some("{{ name }}".to_owned()), templates, ..config() };
    let mail = write(&config, "two", "ann@example.com").expect("a mail");
    assert!(String::from_utf8_lossy(&mail.content).contains("second"));
    for name in ["evil", "", "One", "one "] {
        assert_eq!(refused(&config, name, "ann@example.com"), "unknown_template", "{name:?}");
    }
    assert!(Templates::compile(&Config { template: None, ..config }, "r").is_err(), "several, and no choice");
}

#[test]
fn settings_that_cannot_work_are_told_together() {
    let texts = Texts {
        subject: "{{ name | nonesuch }}".to_owned(),
        text: Some(Source::File("/nonexistent/text".into())),
        html: Some(Source::Inline("{{ name | safe }}".to_owned())),
    };
    let config = Config { to: "{{".to_owned(), templates: BTreeMap::from([("t".to_owned(), texts)]), ..config() };
    let problems = Templates::compile(&config, "r").expect_err("broken");
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["to", "templates.t.subject", "templates.t.text_file", "templates.t.html"], "{problems:?}");
}

/// The CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("positive")
}

// Guarantee: secrets.template-limits
#[test]
fn mail_of_many_lines_takes_linear_time() {
    let mut config = config();
    config.templates.get_mut("hello").expect("there").text = Some(Source::Inline("{{ name }}".to_owned()));
    config.templates.get_mut("hello").expect("there").subject = "s".to_owned();
    config.templates.get_mut("hello").expect("there").html = None;
    for end in ["\n", "\r", "\r\n", " \n", ".\n", "=", "\u{fc}", "\t"] {
        let begun = cpu();
        let mail = write(&config, &end.repeat(512 << 10), "ann@example.com").expect("a mail");
        let took = cpu() - begun;
        assert!(mail.content.len() >= 512 << 10, "all of it is there");
        assert!(took < Duration::from_secs(4), "{end:?}: {took:?}");
    }
}

#[test]
fn each_end_of_line_becomes_cr_lf() {
    for (text, lines) in
        [("", ""), ("a", "a"), ("\r\r\n\n", "\r\n\r\n\r\n"), ("a\nb\rc\r\nd", "a\r\nb\r\nc\r\nd"), ("\n\r", "\r\n\r\n")]
    {
        assert_eq!(unified(text), lines, "{text:?}");
    }
}
