//! Every statement that stands in a file of its own is one that the server plans, with the privileges of the relay's role.

use std::fs;
use std::path::{Path, PathBuf};

use outbox_relay::database::Session;

use crate::support::{database, sessions};

/// Statements that only the owner of `outbox.message` runs.
const OWNERS: &[&str] = &["src/retention/sql/messages_lockers.sql"];

fn sql_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sql_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "sql") {
            found.push(path);
        }
    }
}

/// What keeps the server from planning a statement; none if it does.
async fn refusal(session: &Session, sql: &str) -> Option<String> {
    let parameters = match session.prepare(sql).await {
        Ok(statement) => statement.params().len(),
        Err(error) => return Some(format!("{error:?}")),
    };
    let arguments = match parameters {
        0 => String::new(),
        count => format!("({})", vec!["NULL"; count].join(", ")),
    };
    let explain = format!("PREPARE planned AS {sql}; EXPLAIN EXECUTE planned {arguments}; DEALLOCATE planned");
    let error = session.batch_execute(&explain).await.err()?;
    session.batch_execute("DEALLOCATE ALL").await.unwrap();
    Some(format!("{error:?}"))
}

#[tokio::test]
async fn every_sql_file_is_planned_by_the_server() {
    let database = database().await;
    let session = sessions(&database, "relay", "statements").open().await.unwrap();
    let owner = sessions(&database, "postgres", "statements").open().await.unwrap();
    let mut files = Vec::new();
    sql_files(Path::new("src"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    let mut refused = Vec::new();
    for file in files {
        let sql = fs::read_to_string(&file).unwrap();
        let owners = OWNERS.iter().any(|owners| Path::new(owners) == file);
        if let Some(error) = refusal(if owners { &owner } else { &session }, &sql).await {
            refused.push(format!("{}: {error}", file.display()));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    let planted = refusal(&session, "SELECT c.nmae FROM outbox.cursor AS c WHERE c.name = $1").await;
    assert!(
        planted.is_some_and(|error| error.contains("nmae")),
        "a statement of a column that is not there was planned"
    );
}
