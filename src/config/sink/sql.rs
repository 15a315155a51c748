//! `[relay.sink.sql]`.

use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::value;
use crate::sink::sql::{Config, Each, Outline};

pub(in crate::config) const EACH: &[(&str, Each)] = &[("row", Each::Row), ("batch", Each::Batch)];

/// What changes or reads rows. Whatever else there is, COMMIT, SET or LOCK say, would be about the relay's transaction.
const FIRST_WORDS: [&str; 8] = ["INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", "VALUES", "CALL"];

pub(super) fn read(section: &Section<'_>) -> Option<Config> {
    let parameters = section.read("parameters", value::columns);
    let wrong_parameters = section.has("parameters") && parameters.is_none();
    let parameters = parameters.unwrap_or_default();
    let each = section.read("each", value::word(EACH, &[])).unwrap_or_default();
    let fix = "write for example \"INSERT INTO app.days (day) VALUES ($1::date) ON CONFLICT DO NOTHING\"";
    let statement = section.require("statement", value::parsed(statement), fix)?;
    if !wrong_parameters && let Some(wrong) = unequal(&Outline::of(&statement), parameters.len()) {
        section.problem(if section.has("parameters") { "parameters" } else { "statement" }, wrong);
    }
    Some(Config { statement, parameters, each })
}

fn statement(text: &str) -> Result<String, Wrong> {
    let outline = Outline::of(text);
    if !FIRST_WORDS.contains(&outline.first_word.as_str()) {
        let fix = format!("begin it with one of {}", FIRST_WORDS.join(", "));
        return Err(Wrong::new("not a statement that can run in the cursor's transaction", fix));
    }
    if outline.several {
        return Err(Wrong::new("more than one statement", "make them one by WITH, or a function that it calls"));
    }
    Ok(text.to_owned())
}

/// Whether `$1`, `$2` and so on are as many as the columns.
fn unequal(outline: &Outline, columns: usize) -> Option<Wrong> {
    if let Some(beyond) = outline.parameters.iter().find(|number| !(1..=columns).contains(number)) {
        let what = format!("the statement has ${beyond}, and {columns} columns are named");
        return Some(Wrong::new(what, "name a column for each of $1, $2 and so on, in this order"));
    }
    let unused = (1..=columns).find(|number| !outline.parameters.contains(number))?;
    let what = format!("{columns} columns are named, and the statement has no ${unused}");
    Some(Wrong::new(what, "name exactly the columns that are $1, $2 and so on, in this order"))
}
