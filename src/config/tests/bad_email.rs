//! Sinks of email with one mistake each; see [`super::bad`].

use super::*;

#[test]
fn email_sinks() {
    const GOOD_MAIL: &str = "server = \"smtp.example.com\"\nfrom = \"Shop <shop@example.com>\"\nto = \"{{ email }}\"\n\
                             [relay.sink.email.templates.welcome]\nsubject = \"Hello\"\ntext = \"{{ name }}\"\n";
    let relay = |sink: &str, start: &str| {
        format!(
            "{GOOD}[[relay]]\nname = \"mail\"\n{start}[relay.source.stream]\ntable = \"a.b\"\n\
             [relay.sink.email]\n{sink}"
        )
    };
    assert!(parse(&relay(GOOD_MAIL, "start = \"now\"\n")).is_ok());
    let problems = parse(&relay(GOOD_MAIL, "")).expect_err("it reaches people").to_string();
    assert!(problems.contains("relay[mail].start: missing"), "{problems}");
    let second =
        "[relay.sink.email.templates.other]\nsubject = \"x\"\nhtml = \"y\"\n[relay.sink.email.templates.welcome]";
    for (from, to, key, what) in [
        ("server = \"smtp.example.com\"\n", "", "server", "missing"),
        ("smtp.example.com", "https://smtp.example.com", "server", "not a host"),
        ("smtp.example.com", "smtp.example.com:25", "server", "not a host"),
        ("server", "port = 0\nserver", "port", "out of bounds"),
        ("server", "security = \"ssl\"\nserver", "security", "not a word that is known"),
        (
            "server",
            "security = \"none\"\nserver",
            "security",
            "mails, and perhaps a password, would go over the network",
        ),
        ("server", "username = \"relay\"\nserver", "password_file", "missing beside username"),
        ("server", "password_file = \"/run/p\"\nserver", "username", "missing beside password_file"),
        ("server", "hello_name = \"a b\"\nserver", "hello_name", "not the name of a domain"),
        ("server", "connections = 0\nserver", "connections", "out of bounds"),
        ("server", "timeout = \"10s\"\nserver", "timeout", "above 3/5 of turn.deadline"),
        ("from = \"Shop <shop@example.com>\"\n", "", "from", "missing"),
        ("Shop <shop@example.com>", "Shop, Inc <shop@example.com>", "from", "not a mailbox: its name has"),
        ("Shop <shop@example.com>", "{{ from }}", "from", "not a mailbox"),
        ("server", "reply_to = \"a@b.example, c@d.example\"\nserver", "reply_to", "not a mailbox"),
        ("to = \"{{ email }}\"", "to = \"{{ email\"", "to", "not a template"),
        ("server", "message_id_domain = \"a@b\"\nserver", "message_id_domain", "not the name of a domain"),
        ("[relay.sink.email.templates.welcome]", second, "template", "missing: there are several templates"),
        ("server", "template = \"welcom\"\nserver", "template", "no template has this name"),
        ("templates.welcome", "templates.\"a b\"", "templates.a b", "not a name of a template"),
        ("subject = \"Hello\"", "", "templates.welcome.subject", "missing"),
        ("\"Hello\"", "\"Hello\\nyou\"", "templates.welcome.subject", "has a control character"),
        ("text = \"{{ name }}\"", "", "templates.welcome.text", "missing: a mail needs text or html"),
        ("text", "text_file = \"/a\"\ntext", "templates.welcome.text_file", "the part is given twice"),
        ("subject", "body = \"x\"\nsubject", "templates.welcome.body", "unknown key here"),
    ] {
        let text = relay(&GOOD_MAIL.replacen(from, to, 1), "start = \"now\"\n");
        let problems = parse(&text).expect_err(to);
        let [one] = problems.list() else { panic!("{to}: {problems}") };
        assert_eq!(one.key, format!("relay[mail].sink.email.{key}"), "{to}");
        assert!(one.what.starts_with(what), "{to}: {}", one.what);
    }
    let without = relay(GOOD_MAIL.split("[relay.sink.email.templates").next().unwrap_or_default(), "start = \"now\"\n");
    assert!(parse(&without).expect_err("no template").to_string().contains("missing: a mail needs a template"));
}
