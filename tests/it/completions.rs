//! What the program makes for a shell and for `man`.

use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_outbox-relay");

// Guarantee: commands.completions
#[tokio::test]
async fn bash_completes_commands_of_commands() {
    let script = r#"
        source <("$1" completions bash)
        COMP_WORDS=(outbox-relay cursor w) COMP_CWORD=2
        _outbox__relay outbox-relay w cursor
        echo "${COMPREPLY[@]}""#;
    let output = Command::new("bash").args(["-euc", script, "-", PROGRAM]).output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "why\n", "{}", String::from_utf8_lossy(&output.stderr));
}

// Guarantee: commands.completions
#[tokio::test]
async fn manual_pages_are_written_where_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let man = dir.path().join("share/man1");
    // Neither asks for a configuration.
    let output = Command::new(PROGRAM).arg("man").arg(&man).current_dir(dir.path()).output().await.unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let page = std::fs::read_to_string(man.join("outbox-relay-cursor-why.1")).unwrap();
    assert!(page.contains(".SH SYNOPSIS") && page.contains("outbox-relay 0."), "{page}");
    let output = Command::new(PROGRAM).args(["man", "/proc/nowhere"]).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("/proc/nowhere cannot be written"), "{said}");
}
