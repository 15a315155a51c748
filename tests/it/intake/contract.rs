//! The document of the intake, and schemathesis, which holds the intake to it.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::database;
use crate::support::front::{Front, TOKEN, answer, welcome};
use crate::support::outside::client;

const SCHEMATHESIS: &str = "target/openapi/bin/schemathesis";

// Guarantee: intake.contract
#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served_without_a_token_as_it_stands_in_docs() {
    let database = database().await;
    let front = Front::start(&database, "").await;
    let served = answer(client().get(format!("{}/openapi.json", front.url))).await.unwrap();
    assert_eq!((served.status, served.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    let committed: Value = serde_json::from_str(&std::fs::read_to_string("docs/openapi.json").unwrap()).unwrap();
    assert_eq!(served.body, committed);
    assert_eq!(committed["openapi"], "3.1.0");
}

// Guarantee: intake.contract
/// Right and wrong calls made from the document, alone and one after the other: each answer has a status, a type, headers
/// and a body that the document gives; what it forbids is refused, what it allows is not.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_to_calls_made_from_the_document_is_one_of_the_document() {
    assert!(
        std::path::Path::new(SCHEMATHESIS).exists(),
        "{SCHEMATHESIS} is missing: scripts/openapi-tools (`make test`) installs it"
    );
    let database = database().await;
    let owner = welcome(&database).await;
    let front = Front::start(&database, "").await;
    // The one template that is known here, so that calls reach the ledger.
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string("docs/openapi.json").unwrap()).unwrap();
    document["components"]["schemas"]["Call"]["properties"]["template"] = json!({ "enum": ["welcome"] });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    // It keeps notes where it is started.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = tokio::process::Command::new(root.join(SCHEMATHESIS))
        .current_dir(dir.path())
        .arg("--config-file")
        .arg(root.join("tests/openapi/schemathesis.toml"))
        .args(["run", "--no-color", "--url", &front.url])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .arg(&file)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // All that it can look at was looked at, and it has really asked.
    assert!(said.contains("Tested: 4"), "every operation");
    let made: i64 = owner.query_one("SELECT count(*) FROM outbox.request", &[]).await.unwrap().get(0);
    assert!(made >= 10, "{made} requests were made; most right calls bring the key of one that is there");
}
