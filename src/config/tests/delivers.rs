//! What makes two configurations of a relay deliver otherwise.

use super::*;
use crate::relay::engine::config_hash;

/// The hash of the only relay: an email relay whose template stands in this file, and one to Kafka.
fn hashes(kafka: &str, email: &str) -> Vec<String> {
    let text = format!(
        "[postgres]\nurl = \"postgresql://a@h/d\"\n{kafka}\n[[relay]]\nname = \"m\"\nstart = \"now\"\n\
         [relay.source.stream]\ntable = \"public.m\"\n{email}"
    );
    parse(&text)
        .expect("valid")
        .relays
        .iter()
        .map(|relay| config_hash::of(relay).unwrap_or_else(|error| error.to_string()))
        .collect()
}

#[test]
fn hash_follows_what_is_delivered_and_nothing_else() {
    let kafka = "[kafka]\nbootstrap_servers = \"a:1,b:1\"\n[[relay]]\nname = \"k\"\n[relay.source.stream]\ntable = \"public.k\"\n\
                 [relay.sink.kafka]\ntopic = \"t\"\nkey = \"c\"\npayload = { row = true }\n";
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "Hello").expect("written");
    let email = format!(
        "[relay.sink.email]\nserver = \"s\"\nfrom = \"a@b.c\"\nto = \"{{{{ to }}}}\"\n[relay.sink.email.templates.t]\n\
         subject = \"S\"\ntext_file = \"{}\"\n",
        file.path().display()
    );
    let before = hashes(kafka, &email);
    assert!(before.iter().all(|hash| hash.len() == 16) && before[0] != before[1], "{before:?}");
    for (kafka, email) in [
        (kafka.replace("\"a:1,b:1\"", "\"b:1, a:1\" # the same"), email.clone()),
        (
            kafka.replace("name = \"k\"\n", "name = \"k\"\nstart = \"now\"\non_config_change = \"go_on\"\n"),
            email.clone(),
        ),
        (kafka.replace("name = \"k\"\n", "name = \"k\"\nfreshness = \"1s\"\n"), email.clone()),
        (format!("{kafka}[relay.poll]\nmax = \"1s\"\n[relay.turn]\nrows = 7\n"), email.clone()),
        (kafka.to_owned(), email.replace("server = \"s\"\n", "server = \"s\"\ntimeout = \"1s\"\nconnections = 2\n")),
        (kafka.replace("name = \"k\"\n", "name = \"k\"\nshards = 2\n"), email.clone()),
    ] {
        let after = hashes(&kafka, &email);
        assert_eq!((after.first(), after.last()), (before.first(), before.last()), "{kafka}{email}");
    }
    for changed in [
        kafka.replace("{ row = true }", "{ column = \"p\" }"),
        kafka.replace("\"t\"", "\"u\""),
        kafka.replace("public.k", "public.l"),
        kafka.replace("a:1,b:1", "c:1"),
        kafka.replace("name = \"k\"\n", "name = \"k\"\nguarantee = \"at_most_once\"\n"),
        kafka.replace("name = \"k\"\n", "name = \"k\"\non_poison = \"dead_letter\"\n"),
    ] {
        let after = hashes(&changed, &email);
        assert!(after[0] != before[0] && after[1] == before[1], "{changed}");
    }
    std::fs::write(file.path(), "Good day").expect("written");
    assert_ne!(hashes(kafka, &email)[1], before[1], "another template");
    let path = file.path().display().to_string();
    file.close().expect("removed");
    let said = format!("templates.t.text_file: {path} cannot be read: ");
    assert!(hashes(kafka, &email)[1].starts_with(&said), "no digest: {:?}", hashes(kafka, &email));
}
