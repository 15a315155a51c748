//! A trigger that has the last word on a column, in every relation that rows of a table can come in through. Pure.
//!
//! Row triggers run in the order of their names, and those that are not `ENABLE ALWAYS` are skipped under
//! `session_replication_role = replica`. So a guard counts only as the last that could change the row, enabled always, in
//! each relation on its own: a partition can have triggers, and states of triggers, that its parent does not have.

use crate::database::{quote_ident, quote_literal};

/// The longest identifier, in bytes.
const LONGEST: usize = 63;

/// What stands before a row is stored in one relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The relation's oid.
    pub relation: u32,
    /// Its name, quoted where needed.
    pub name: String,
    /// The relation that it is a partition of; 0 when it is none.
    pub parent: u32,
    /// The last trigger that could change the column before a row is stored; the wanted one also where it is disabled.
    pub last: Option<String>,
    /// That trigger is the wanted one, and runs on every way to change the column.
    pub fits: bool,
    /// That trigger is `ENABLE ALWAYS`.
    pub always: bool,
    /// The names of all triggers of the relation.
    pub taken: Vec<String>,
    /// Some trigger runs before a row is updated: one that is bound to `UPDATE OF` the column sleeps when it changes the
    /// column in an update of others.
    pub update_trigger: bool,
    /// The last trigger is disabled: it runs in no session.
    pub disabled: bool,
}

/// A trigger that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedTrigger<'a> {
    /// Its name, unless another trigger sorts after that.
    pub name: &'static str,
    /// `INSERT OR UPDATE` or `UPDATE`.
    pub events: &'static str,
    /// The column that it guards.
    pub column: &'a str,
    /// What it calls, as SQL.
    pub call: &'a str,
}

impl Guard {
    /// The wanted trigger has the last word, in every session.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.fits && self.always
    }
}

/// The SQL after which the trigger has the last word in all of these relations; none when no name sorts after those that
/// are there.
#[must_use]
pub fn closing(guards: &[&Guard], wanted: &WantedTrigger<'_>) -> Option<String> {
    let name = quote_ident(&free_name(guards, wanted.name)?);
    // Where another trigger runs on updates, the guard must run on all of them.
    let bound = !guards.iter().any(|guard| guard.update_trigger);
    let of = if bound { format!(" OF {}", quote_ident(wanted.column)) } else { String::new() };
    let mut sql = Vec::new();
    for guard in guards.iter().filter(|guard| !guard.holds()) {
        // What is done to a partitioned table's trigger is done to those that its partitions have from it.
        let reached = |above: &&Guard| !above.holds() && (!above.fits || guard.fits && above.last == guard.last);
        if ancestors(guards, guard).any(|above| reached(&above)) {
            continue;
        }
        let relation = &guard.name;
        let trigger = match (&guard.last, guard.fits) {
            (Some(last), true) => quote_ident(last),
            _ => {
                sql.push(format!(
                    "CREATE TRIGGER {name} BEFORE {}{of} ON {relation} FOR EACH ROW EXECUTE FUNCTION {};",
                    wanted.events, wanted.call
                ));
                name.clone()
            }
        };
        sql.push(format!("ALTER TABLE {relation} ENABLE ALWAYS TRIGGER {trigger};"));
    }
    Some(sql.join(" "))
}

/// The relations that this one is a partition of, the nearest first.
fn ancestors<'a>(guards: &'a [&'a Guard], guard: &Guard) -> impl Iterator<Item = &'a Guard> {
    let find = |oid: u32| guards.iter().copied().find(|above| above.relation == oid);
    std::iter::successors(find(guard.parent), move |above| find(above.parent))
}

/// A name that no relation has a trigger of, and that sorts after all that could change the row.
fn free_name(guards: &[&Guard], wanted: &str) -> Option<String> {
    let last = guards.iter().filter_map(|guard| guard.last.as_deref()).max().unwrap_or_default();
    let longer = (0..=LONGEST - wanted.len()).map(|more| "z".repeat(more) + wanted);
    let after = (1..).map(|number| format!("{last}_{number}")).take(guards.len() + 1);
    longer.chain(after).find(|name| {
        let free = !guards.iter().any(|guard| guard.taken.contains(name));
        name.len() <= LONGEST && name.as_str() > last && free
    })
}

/// The argument list of a trigger function that takes the column's name.
#[must_use]
pub fn argument(column: &str) -> String {
    format!("({})", quote_literal(column).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: WantedTrigger<'static> =
        WantedTrigger { name: "zz_guard", events: "UPDATE", column: "key", call: "outbox.refuse_key_update('key')" };

    fn guard(relation: u32, parent: u32) -> Guard {
        Guard { relation, parent, name: format!("t{relation}"), ..Guard::default() }
    }

    fn sql(guards: &[Guard]) -> String {
        closing(&guards.iter().collect::<Vec<_>>(), &WANTED).unwrap_or_default()
    }

    #[test]
    fn partitions_get_the_trigger_from_their_parent() {
        let found = sql(&[guard(1, 0), guard(2, 1), guard(3, 2)]);
        assert_eq!(found.matches("CREATE TRIGGER").count(), 1, "{found}");
        assert!(found.ends_with("ALTER TABLE t1 ENABLE ALWAYS TRIGGER \"zz_guard\";"), "{found}");
        let found = sql(&[guard(1, 0), guard(2, 0)]);
        assert_eq!(found.matches("CREATE TRIGGER").count(), 2, "children by inheritance have their own: {found}");
    }

    #[test]
    fn trigger_that_is_there_is_only_enabled() {
        let fits = |relation, parent| Guard { last: Some("g".into()), fits: true, ..guard(relation, parent) };
        assert_eq!(sql(&[fits(1, 0), fits(2, 1)]), "ALTER TABLE t1 ENABLE ALWAYS TRIGGER \"g\";");
        let own = Guard { last: Some("zz_other".into()), update_trigger: true, ..guard(2, 1) };
        let found = sql(&[fits(1, 0), own]);
        assert!(found.contains("CREATE TRIGGER \"zzz_guard\" BEFORE UPDATE ON t2 "), "{found}");
        assert_eq!(sql(&[Guard { always: true, ..fits(1, 0) }]), "");
        let disabled = Guard { disabled: true, taken: vec!["g".into()], ..fits(1, 0) };
        assert_eq!(sql(&[disabled]), "ALTER TABLE t1 ENABLE ALWAYS TRIGGER \"g\";");
    }

    #[test]
    fn names_sort_last_and_are_free() {
        let named = |last: &str, taken: &[&str]| {
            let taken = taken.iter().map(|&name| name.to_owned()).collect();
            free_name(&[&Guard { last: Some(last.into()), taken, ..guard(1, 0) }], WANTED.name)
        };
        assert_eq!(named("a", &[]).as_deref(), Some("zz_guard"));
        assert_eq!(named("a", &["zz_guard"]).as_deref(), Some("zzz_guard"));
        assert_eq!(named("zzz_h", &[]).as_deref(), Some("zzzz_guard"));
        assert_eq!(named("~", &[]).as_deref(), Some("~_1"));
        assert_eq!(named(&"~".repeat(LONGEST), &[]), None);
    }
}
