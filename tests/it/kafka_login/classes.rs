//! What brokers ask of tokens beyond Kafka's own validator: classes of tests/kafka.

use tempfile::TempDir;

use crate::consumer::{java, kit};

/// One of them, compiled.
pub(super) fn compiled(name: &str) -> TempDir {
    let (folder, jar) = (tempfile::tempdir().unwrap(), kit().1.join("kafka-clients-4.3.0.jar"));
    let mut compiler = java();
    compiler.args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-Xlint:all", "-Werror", "--release", "17"]);
    compiler.arg("-cp").arg(jar).arg("-d").arg(folder.path()).arg(format!("tests/kafka/{name}.java"));
    let compiled = compiler.output().expect("Java 17 or newer (`make deps-test`)");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    folder
}
