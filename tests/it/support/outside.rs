//! A process and its cursors seen from outside: its log, its listener, what stands in the schema.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tokio_postgres::Client;

use super::{PATIENCE, Process, eventually};

/// A relay of `public.bookings` that prints its rows; `more` is added below `[[relay]]`.
pub fn stdout_relay(name: &str, more: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\n{more}\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n"
    )
}

/// The lines of a process's log that are JSON.
pub fn lines(process: &Process) -> Vec<Value> {
    process.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits for a line of the log with this message, and answers it.
pub async fn line(process: &Process, message: &str) -> Value {
    // A log of all levels is too long to be read as JSON again and again.
    let quoted = serde_json::to_string(message).unwrap();
    let parsed = |line: &str| serde_json::from_str::<Value>(line).ok();
    let is_it = |line: &Value| line["message"].as_str() == Some(message);
    let found = || process.log().lines().filter(|line| line.contains(&quoted)).filter_map(parsed).find(is_it);
    eventually(PATIENCE * 2, || async { found().is_some() }).await;
    found().unwrap()
}

/// Where a process listens, as a URL.
pub async fn listener(process: &Process) -> String {
    let line = line(process, "outbox-relay starts").await;
    format!("http://{}", line["admin"].as_str().unwrap())
}

/// A client without a proxy, with a new connection for each request: a kept one would belong to the test that opened it. Made once,
/// because it reads all authorities, a tenth of a second of processor time.
pub fn client() -> reqwest::Client {
    static SHARED: OnceLock<reqwest::Client> = OnceLock::new();
    SHARED.get_or_init(|| reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()).clone()
}

/// GET: status and body; status 0 when nobody answers.
pub async fn get(url: &str) -> (u16, String) {
    match client().get(url).send().await {
        Ok(response) => (response.status().as_u16(), response.text().await.unwrap_or_default()),
        Err(_) => (0, String::new()),
    }
}

/// What `outbox.cursor_status` says of a cursor: state, halted, message id, last error.
pub async fn standing(owner: &Client, cursor: &str) -> Option<(String, bool, Option<String>, Value)> {
    let sql = "SELECT state, halted, message_id, COALESCE(last_error, 'null')::text FROM outbox.cursor_status \
               WHERE cursor = $1";
    let row = owner.query_opt(sql, &[&cursor]).await.unwrap()?;
    Some((row.get(0), row.get(1), row.get(2), serde_json::from_str(row.get(3)).unwrap()))
}

/// Whether a cursor is halted, and the turn that halted it has ended: it reports the halt before it commits the advance over the rows
/// before.
pub async fn is_halted(owner: &Client, cursor: &str) -> bool {
    let halted = standing(owner, cursor).await.is_some_and(|(_, halted, _, _)| halted);
    if halted {
        owner.execute("SELECT FROM outbox.cursor WHERE name = $1 FOR SHARE", &[&cursor]).await.unwrap();
    }
    halted
}

/// Waits until a cursor is halted; answers the message's id and the error.
#[track_caller]
pub fn halted<'a>(owner: &'a Client, cursor: &'a str) -> impl Future<Output = (Option<String>, Value)> + 'a {
    let halted = eventually(PATIENCE * 2, move || is_halted(owner, cursor));
    async move {
        halted.await;
        let (state, _, message_id, error) = standing(owner, cursor).await.unwrap();
        assert_eq!(state, "halted");
        assert!(error["at"].is_string() && error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
        (message_id, error)
    }
}

/// Waits until a cursor's halt is over.
#[track_caller]
pub fn fixed<'a>(owner: &'a Client, cursor: &'a str) -> impl Future<Output = ()> + 'a {
    eventually(PATIENCE * 2, move || async move {
        standing(owner, cursor).await.is_none_or(|(_, halted, _, error)| !halted && error.is_null())
    })
}

/// The ids that a process has printed for a relay, in order.
pub fn printed(process: &Process, relay: &str) -> Vec<String> {
    let lines = process.out();
    let rows = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter(|row| row["relay"] == relay).map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// The ids that a process has printed, with a star behind those that are marked late.
pub fn marked(process: &Process) -> Vec<String> {
    let rows = process.out();
    let rows = rows.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    rows.map(|row| if row["late"] == true { format!("{}*", id(&row)) } else { id(&row) }).collect()
}

/// `promtool check metrics`; panics with its complaint.
pub fn promtool(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool on PATH (Debian: package prometheus; `make test` installs it)");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// The finding of this code, of a `check -o json`.
pub fn finding<'a>(document: &'a Value, code: &str) -> Option<&'a Value> {
    document["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code)
}

/// A JSON document.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The keys of a JSON object.
pub fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
