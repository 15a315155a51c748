//! The question for the newest rows of many tables, by few statements.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use futures_util::future::try_join_all;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::relay::stream::poll::Look;
use crate::source::shape::Shape;

/// Tables of so many relations are asked for by one statement: all of them are locked while it runs, and their indexes, and a
/// server has room for so many locks. A table of more partitions is asked for alone, as by its own look.
const TOGETHER: usize = 64;

/// Of each table, its newest row.
pub(super) type Answer = Vec<Option<Position>>;

/// The question as it was prepared. A table that was asked for once is asked for with the others from then on, also while
/// it does not rest, so that the statements stay the same; when few are wanted of many, each is asked for alone.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// Each table by its statement.
    tables: HashMap<String, Member>,
    /// The session is not kept alive: one that is forgotten must not count as a connection any more.
    prepared: Option<(Weak<Session>, Vec<Statement>)>,
}

/// A table's part in the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    number: usize,
    relations: usize,
}

impl Question {
    /// Asks for the newest rows that are not in the future at the database's time `now`.
    pub(super) async fn ask(
        &mut self,
        session: &Arc<Session>,
        shapes: &[&Shape],
        now: Timestamp,
    ) -> Result<Answer, Error> {
        if shapes.len() == 1 || shapes.len() * 4 < self.tables.len() {
            return try_join_all(shapes.iter().map(|shape| Look::newest_of(session, shape, now))).await;
        }
        let relations = |shape: &Shape| shape.descendants.len() + 1;
        let numbers: Vec<usize> =
            shapes.iter().map(|shape| self.number(shape.newest_sql(), relations(shape))).collect();
        let statements = self.prepare(session).await?;
        let now: [&(dyn ToSql + Sync); 1] = [&now];
        let answers = try_join_all(statements.iter().map(|statement| session.query(statement, &now))).await?;
        let mut found = HashMap::new();
        for row in answers.iter().flatten() {
            let number: i32 = row.try_get(0)?;
            found.insert(number, Position { created_at: row.try_get(1)?, id: row.try_get(2)? });
        }
        // Two groups may read one table.
        let newest = |number: usize| i32::try_from(number).ok().and_then(|number| found.get(&number).cloned());
        Ok(numbers.into_iter().map(newest).collect())
    }

    fn number(&mut self, sql: String, relations: usize) -> usize {
        let next = Member { number: self.tables.len(), relations };
        let member = self.tables.entry(sql).or_insert_with(|| {
            self.prepared = None;
            next
        });
        member.number
    }

    async fn prepare(&mut self, session: &Arc<Session>) -> Result<&[Statement], Error> {
        if self.prepared.as_ref().is_none_or(|(of, _)| !Weak::ptr_eq(of, &Arc::downgrade(session))) {
            let all: Vec<String> = self.groups().iter().map(|tables| together(tables)).collect();
            // Not among those that the session keeps indefinitely: another table makes others of them.
            let statements = try_join_all(all.iter().map(|sql| session.prepare(sql))).await?;
            self.prepared = Some((Arc::downgrade(session), statements));
        }
        Ok(self.prepared.as_ref().map_or(&[], |(_, statements)| statements.as_slice()))
    }

    /// The tables by statement, in the order of their numbers.
    fn groups(&self) -> Vec<Vec<(&str, usize)>> {
        let mut tables: Vec<_> = self.tables.iter().collect();
        tables.sort_unstable_by_key(|(_, member)| member.number);
        let mut groups: Vec<Vec<(&str, usize)>> = Vec::new();
        let mut room = 0;
        for (sql, member) in tables {
            if member.relations > room {
                groups.push(Vec::new());
                room = TOGETHER;
            }
            room = room.saturating_sub(member.relations);
            if let Some(group) = groups.last_mut() {
                group.push((sql, member.number));
            }
        }
        groups
    }
}

/// One statement for these tables: number, instant and id of each one's newest row.
fn together(tables: &[(&str, usize)]) -> String {
    let mut all = String::new();
    for (sql, number) in tables {
        let union = if all.is_empty() { "" } else { " UNION ALL " };
        let _ = write!(all, "{union}SELECT {number}::integer, n.at, n.id FROM ({sql}) AS n (at, id)");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_numbers_and_another_table_is_another_statement() {
        let mut question = Question::default();
        assert_eq!(["a", "b", "a", "c", "b"].map(|sql| question.number(sql.to_owned(), 1)), [0, 1, 0, 2, 1]);
        assert_eq!(
            together(&[("SELECT 1", 0), ("SELECT 2", 1)]),
            "SELECT 0::integer, n.at, n.id FROM (SELECT 1) AS n (at, id) UNION ALL \
             SELECT 1::integer, n.at, n.id FROM (SELECT 2) AS n (at, id)"
        );
    }

    #[test]
    fn a_statement_locks_few_relations_and_a_table_of_many_partitions_stands_alone() {
        let mut question = Question::default();
        for (sql, relations) in [("a", 1), ("b", 40), ("c", 1_000), ("d", 1), ("e", 63), ("f", 1)] {
            question.number(sql.to_owned(), relations);
        }
        let groups: Vec<Vec<&str>> =
            question.groups().iter().map(|group| group.iter().map(|(sql, _)| *sql).collect()).collect();
        assert_eq!(groups, [vec!["a", "b"], vec!["c"], vec!["d", "e"], vec!["f"]]);
    }
}
