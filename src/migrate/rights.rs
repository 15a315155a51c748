//! The rights that GRANT statements give, read from the statements themselves: what is printed is what is verified.

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

macro_rules! held {
    ($held:literal, $owner:literal, $from:literal) => {
        concat!(
            "SELECT pg_catalog.has_",
            $held,
            ", pg_catalog.pg_get_userbyid(",
            $owner,
            ")::text FROM ",
            $from,
            " LIMIT 1"
        )
    };
}
const SCHEMA: &str = held!(
    "schema_privilege($1::text, n.oid, $2)",
    "n.nspowner",
    "pg_catalog.pg_namespace AS n WHERE n.nspname = $3::text"
);
/// The schema `outbox` has one function of a name.
const FUNCTION: &str = held!(
    "function_privilege($1::text, p.oid, $2)",
    "p.proowner",
    "pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace \
     WHERE n.nspname = $3::text AND p.proname = $4::text"
);
const RELATION: &str = held!(
    "table_privilege($1::text, c.oid, $2)",
    "c.relowner",
    "pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE n.nspname = $3::text AND c.relname = $4::text"
);
const COLUMN: &str = held!(
    "column_privilege($1::text, c.oid, $5, $2)",
    "c.relowner",
    "pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE n.nspname = $3::text AND c.relname = $4::text"
);

/// One privilege of one role on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Right {
    /// For example `SELECT`.
    pub(super) privilege: String,
    /// The column that it is for; none for the whole object.
    pub(super) column: Option<String>,
    kind: ObjectKind,
    /// The object, as the statement writes it.
    pub(super) object: String,
    /// The role's name.
    pub(super) role: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectKind {
    Schema,
    Function,
    Relation,
}

impl Right {
    /// The object with its kind, where a name alone does not show it.
    pub(super) fn on(&self) -> String {
        match self.kind {
            ObjectKind::Schema => format!("schema {}", self.object),
            ObjectKind::Function => format!("function {}", self.object),
            ObjectKind::Relation => self.object.clone(),
        }
    }

    /// Whether the role has it now, by whatever grant; and the role that owns the object, if there is such an object.
    ///
    /// By the catalog: a name as regclass cannot be read where the schema may not be used.
    pub(super) async fn held(&self, client: &Client) -> Result<(bool, Option<String>), tokio_postgres::Error> {
        let name = self
            .object
            .split_once('(')
            .filter(|_| self.kind == ObjectKind::Function)
            .map_or(&*self.object, |named| named.0);
        let (schema, name) = split_once(name, ".").unwrap_or(("", name));
        let (schema, name) = (unquoted(schema), unquoted(name));
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&self.role, &self.privilege];
        let sql = match (self.kind, &self.column) {
            (ObjectKind::Schema, _) => {
                parameters.push(&name);
                SCHEMA
            }
            (ObjectKind::Function, _) => {
                parameters.extend([&schema as &(dyn ToSql + Sync), &name]);
                FUNCTION
            }
            (ObjectKind::Relation, None) => {
                parameters.extend([&schema as &(dyn ToSql + Sync), &name]);
                RELATION
            }
            (ObjectKind::Relation, Some(column)) => {
                parameters.extend([&schema as &(dyn ToSql + Sync), &name, column]);
                COLUMN
            }
        };
        Ok(match client.query_opt(sql, &parameters).await? {
            Some(row) => (row.try_get(0)?, Some(row.try_get(1)?)),
            None => (false, None),
        })
    }
}

/// The statements of a text that has no string literals.
pub(super) fn statements(sql: &str) -> impl Iterator<Item = &str> {
    split(sql, ';').into_iter().filter(|statement| !statement.is_empty())
}

/// The rights that a statement gives; none when it is no GRANT of privileges on objects.
pub(super) fn rights(statement: &str) -> Vec<Right> {
    let parts = || {
        let rest = statement.strip_prefix("GRANT ")?;
        let (privileges, rest) = split_once(rest, " ON ")?;
        let (objects, role) = split_once(rest, " TO ")?;
        Some((privileges, objects, unquoted(role)))
    };
    let Some((privileges, objects, role)) = parts() else { return Vec::new() };
    let (kind, objects) = match objects.split_once(' ') {
        Some(("SCHEMA", name)) => (ObjectKind::Schema, name),
        Some(("FUNCTION", signatures)) => (ObjectKind::Function, signatures),
        _ => (ObjectKind::Relation, objects),
    };
    let mut found = Vec::new();
    for object in split(objects, ',') {
        for granted in split(privileges, ',') {
            let (privilege, columns) = match granted.split_once(" (") {
                Some((privilege, columns)) => (privilege, split(columns.trim_end_matches(')'), ',')),
                None => (granted, Vec::new()),
            };
            let right = |column| Right {
                privilege: privilege.to_owned(),
                column,
                kind,
                object: object.to_owned(),
                role: role.clone(),
            };
            if columns.is_empty() {
                found.push(right(None));
            }
            found.extend(columns.into_iter().map(|column| right(Some(unquoted(column)))));
        }
    }
    found
}

/// The byte positions outside of quotes and parentheses.
fn bare(text: &str) -> impl Iterator<Item = usize> {
    let (mut quoted, mut depth) = (false, 0_i32);
    text.char_indices().filter_map(move |(at, letter)| {
        match letter {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        (!quoted && depth == 0).then_some(at)
    })
}

fn split_once<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let at = bare(text).find(|at| text[*at..].starts_with(word))?;
    Some((&text[..at], &text[at + word.len()..]))
}

/// The parts of a text between these signs.
fn split(text: &str, sign: char) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    for at in bare(text).filter(|at| text[*at..].starts_with(sign)) {
        found.push(text[from..at].trim());
        from = at + 1;
    }
    found.push(text[from..].trim());
    found
}

/// The name that an identifier of SQL means.
fn unquoted(identifier: &str) -> String {
    let inner = identifier.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map_or_else(|| identifier.to_owned(), |inner| inner.replace("\"\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::super::{app_grants, mark_grants, relay_grants};
    use super::*;

    fn told(sql: &str) -> Vec<String> {
        let told = |right: Right| {
            let column = right.column.as_ref().map(|column| format!("({column})")).unwrap_or_default();
            format!("{}{column} on {} to {}", right.privilege, right.on(), right.role)
        };
        statements(sql).flat_map(rights).map(told).collect()
    }

    #[test]
    fn rights_are_read_from_their_statements() {
        assert_eq!(told("GRANT USAGE ON SCHEMA outbox TO relay;"), ["USAGE on schema outbox to relay"]);
        assert_eq!(
            told("GRANT SELECT, UPDATE (a, \"B\"\",c\") ON x.\"we ON, TO\"\"ird\", y TO \"r\"\"o TO le\";"),
            [
                "SELECT on x.\"we ON, TO\"\"ird\" to r\"o TO le",
                "UPDATE(a) on x.\"we ON, TO\"\"ird\" to r\"o TO le",
                "UPDATE(B\",c) on x.\"we ON, TO\"\"ird\" to r\"o TO le",
                "SELECT on y to r\"o TO le",
                "UPDATE(a) on y to r\"o TO le",
                "UPDATE(B\",c) on y to r\"o TO le",
            ]
        );
        assert_eq!(
            told("GRANT EXECUTE ON FUNCTION o.f(text, integer), o.g() TO r;"),
            ["EXECUTE on function o.f(text, integer) to r", "EXECUTE on function o.g() to r"]
        );
        assert!(told("CREATE TABLE t (a text)").is_empty());
    }

    #[test]
    fn every_statement_of_the_grants_gives_rights() {
        let sql = relay_grants("r", &[("public", "a,b")]) + &mark_grants("r", &[(("s", "t"), "c")]) + &app_grants("a");
        for statement in statements(&sql) {
            assert!(!rights(statement).is_empty(), "{statement}");
        }
        assert!(told(&sql).contains(&"UPDATE(c) on \"s\".\"t\" to r".to_owned()));
    }
}
