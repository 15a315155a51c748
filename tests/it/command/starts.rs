use super::*;

// Guarantee: commands.environment
#[tokio::test]
async fn a_program_gets_no_variable_no_descriptor_and_no_privilege() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let _inheritable = rustix::io::dup(&file).unwrap();
    let variables = run(program("/usr/bin/env", &[]), b"{}").await.0.unwrap();
    let (name, mark) = variables.split_once('=').unwrap();
    assert!(name == "OUTBOX_RELAY_COMMAND" && !mark.contains(['=', '\n']), "its mark and nothing else: {variables}");
    // The fourth is that of the listing itself.
    assert_eq!(run(program("/bin/ls", &["/proc/self/fd"]), b"{}").await.0.unwrap(), "0\n1\n2\n3");
    assert_eq!(run(program("/bin/pwd", &[]), b"{}").await.0.unwrap(), "/");
    let privileges = run(program("/bin/grep", &["NoNewPrivs", "/proc/self/status"]), b"{}").await.0.unwrap();
    assert_eq!(privileges, "NoNewPrivs:\t1");
}

// Guarantee: commands.input
#[tokio::test]
async fn the_json_arrives_whole_and_its_end_is_seen() {
    let json = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(run(program("/usr/bin/wc", &["-c"]), json.as_bytes()).await.0.unwrap(), json.len().to_string());
    assert_eq!(run(program("/bin/cat", &[]), "{\"name\":\"Zoë\"}".as_bytes()).await.0.unwrap(), "{\"name\":\"Zoë\"}");
}

// Guarantee: commands.input
#[tokio::test]
async fn a_program_that_never_reads_its_input_is_in_its_right() {
    let json = vec![b' '; 1 << 20];
    assert_eq!(run(script("echo done"), &json).await.0.unwrap(), "done");
}

// Guarantee: commands.names
#[tokio::test]
async fn a_name_that_is_not_configured_starts_nothing_and_the_known_ones_are_told() {
    let failure = sink(script("echo")).run("/bin/sh", b"", Duration::from_secs(1), &|_| ()).await.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (Class::Poison, "unknown_command"));
    assert!(failure.message.ends_with("the command \"/bin/sh\", and this relay has it"), "{}", failure.message);
}

// Guarantee: commands.names
#[tokio::test]
async fn a_program_that_cannot_be_executed_is_told_at_the_start_and_at_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    for (path, told) in [
        (plain.as_path(), "cannot be executed by the relay's user"),
        (folder.path(), "is not a file"),
        (folder.path().join("gone").as_path(), "is not there"),
    ] {
        let config = Config { programs: BTreeMap::from([("it".to_owned(), program(path.to_str().unwrap(), &[]))]) };
        let invalid = CommandSink::new(&config).unwrap_err();
        assert_eq!(invalid.len(), 1);
        assert_eq!(invalid[0].key, "programs.it.program");
        assert!(invalid[0].problem.contains(told), "{}", invalid[0].problem);
    }
    let copy = folder.path().join("copy");
    std::fs::copy("/bin/true", &copy).unwrap();
    let sink = sink(program(copy.to_str().unwrap(), &[]));
    std::fs::remove_file(&copy).unwrap();
    let failure = sink.run("it", b"", Duration::from_secs(1), &|_| ()).await.unwrap_err();
    assert_eq!((failure.class, failure.code.as_str()), (Class::Fatal, "command_unavailable"));
}
