//! The program has the command line of `outbox-relay`, and a sink more. What it delivers is tested in `tests/it/own_sink`.
#![allow(clippy::unwrap_used, reason = "tests: a panic is a failure")]

use std::process::Command;

const CONFIG: &str = r#"
[postgres]
url = "postgresql://relay@127.0.0.1:5432/app"

[[relay]]
name = "bookings"
start = "now"
[relay.source.stream]
table = "public.bookings"
[relay.sink.custom]
kind = "unix_socket"
path = "/run/receiver.sock"
"#;

#[test]
fn its_section_of_a_configuration_is_understood_and_a_wrong_key_is_not() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-sink.toml");
    for (text, code, told) in [
        (CONFIG.to_owned(), 0, "target: unix:/run/receiver.sock"),
        (CONFIG.replace("path", "pth"), 2, "unknown field `pth`"),
    ] {
        std::fs::write(&file, text).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_own-sink"));
        let output = program.arg("--config").arg(&file).args(["config", "show", "--redacted"]).output().unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(told), "{printed}");
    }
}
