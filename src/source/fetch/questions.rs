//! The statements of one fetch, prepared and sent together.

use std::collections::BTreeSet;
use std::time::Instant;

use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;
use tokio_postgres::{RowStream, Statement};

use super::columns::Columns;
use super::sweep::Sweep;
use super::types::{self, Types};
use super::{FetchError, Giver, Request};
use crate::database::Loan;
use crate::late::Opened;
use crate::position::Position;
use crate::source::family::Family;
use crate::source::shape::After;

/// The partitions of the table $1 as the next plan reads them: a catalog function sees a partition that was attached after
/// the transaction's snapshot was taken, and so does the planner.
const TREE: &str = "SELECT ARRAY(SELECT t.relid::oid FROM pg_catalog.pg_partition_tree($1::oid::regclass) AS t)";

/// The statements that read pages.
pub(super) struct Pager {
    first: Statement,
    next: Statement,
    /// Reads the partitions; none for a table without descendants.
    tree: Option<Statement>,
    columns: Columns,
}

impl Pager {
    async fn prepare(reader: &Loan, request: &Request<'_>) -> Result<Self, FetchError> {
        let columns = |statement: &Statement| Columns::new(request, statement).ok_or(FetchError::FamilyChanged);
        let next = reader.prepare_cached(&request.texts.page).await?;
        let known = columns(&next)?;
        let first = match After::of(request.after) {
            After::Row => next.clone(),
            after => {
                let first = reader.prepare_cached(&request.texts.first(request.shape, request.fields, after)).await?;
                // Each was prepared at a moment of its own.
                if columns(&first)? != known {
                    return Err(FetchError::FamilyChanged);
                }
                first
            }
        };
        let tree = match request.shape.descendants.len() {
            1 => None,
            _ => Some(reader.prepare_cached(TREE).await?),
        };
        Ok(Self { first, next, tree, columns: known })
    }

    /// A further page: at most `rows` rows after a position of this fetch, unless a partition was attached since the snapshot.
    /// The rows of such a partition that lie before the position would be passed.
    pub(super) async fn next_page(
        &self,
        reader: &Loan,
        request: &Request<'_>,
        last: Option<&Position>,
        rows: usize,
    ) -> Result<RowStream, FetchError> {
        let root: [&(dyn ToSql + Sync); 1] = [&request.shape.root];
        let tree = async {
            match &self.tree {
                Some(statement) => Ok(Some(reader.query_one(statement, &root).await?)),
                None => Ok(None),
            }
        };
        let page = async { Ok::<_, FetchError>(self.page(reader, request, last, rows).await?) };
        let (tree, page) = tokio::try_join!(biased; tree, page)?;
        let partitions: BTreeSet<u32> = match tree {
            Some(row) => row.try_get::<_, Vec<u32>>(0)?.into_iter().collect(),
            None => BTreeSet::new(),
        };
        // Of tables that inherit the function knows nothing: the next turn finds a new one.
        if partitions.is_subset(&request.shape.descendants) { Ok(page) } else { Err(FetchError::FamilyChanged) }
    }

    /// What the rows of both are made of.
    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// At most `rows` rows after a position of this fetch, or after the one that it began at.
    pub(super) async fn page(
        &self,
        reader: &Loan,
        request: &Request<'_>,
        last: Option<&Position>,
        rows: usize,
    ) -> Result<RowStream, tokio_postgres::Error> {
        let limit = i64::try_from(rows).unwrap_or(i64::MAX);
        let (statement, after) = match last {
            Some(last) => (&self.next, Some(last)),
            None => (&self.first, request.after),
        };
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&request.horizon, &limit];
        if let Some(position) = after {
            parameters.push(&position.created_at);
            if let Some(id) = &position.id {
                parameters.push(id);
            }
        }
        reader.query_raw(statement, parameters).await
    }
}

/// All that is asked, prepared.
pub(super) struct Questions<'a> {
    pub(super) family: Family<'a>,
    types: Option<Types>,
    sweep: Option<Sweep<'a>>,
    pub(super) pager: Pager,
}

/// What is known before the first row.
pub(super) struct Opening {
    pub(super) snapshot: String,
    /// The rows of the first page, and how many were asked for.
    pub(super) page: Option<(usize, RowStream)>,
    /// Whether all late rows are known.
    pub(super) is_whole: bool,
}

impl<'a> Questions<'a> {
    pub(super) async fn prepare(reader: &Loan, request: &Request<'a>) -> Result<Self, FetchError> {
        let pager = Pager::prepare(reader, request).await?;
        let family = Family::prepare(reader, request).await?;
        let types = if request.typed { Types::prepare(reader, request.shape, request.fields).await? } else { None };
        let sweep = Sweep::prepare(reader, request).await?;
        Ok(Self { family, types, sweep, pager })
    }

    /// Begins the transaction, takes the table's lock, so that its name cannot move on, and then the snapshot; checks that it
    /// is the right table, tells what came late, and asks for the first page. `last_asked` is dropped when nothing more can be
    /// asked before the page has been read. None when late rows were looked for for too long: the connection is still at it.
    pub(super) async fn open(
        &self,
        reader: &Loan,
        request: &Request<'_>,
        first: Option<usize>,
        batches: &mut Giver,
        last_asked: oneshot::Sender<()>,
    ) -> Result<Option<Opening>, FetchError> {
        let Self { family, types, sweep, pager } = self;
        let begun = Instant::now();
        // The transaction's end follows at once where nothing can be asked behind the page.
        let last_asked = sweep.as_ref().map(|_| last_asked);
        let page = async {
            match first.filter(|_| !family.has_news()) {
                Some(rows) => pager.page(reader, request, None, rows).await.map(|stream| Some((rows, stream))),
                None => Ok(None),
            }
        };
        // Sent at once, run one after the other: nothing of the page is looked at before the answers to the others. The error
        // that is none: late rows were looked for for too long, and what comes behind waits for that.
        let asked = tokio::try_join!(
            biased;
            async { reader.batch_execute(&request.texts.begin).await.map_err(|error| Some(error.into())) },
            async { family.ask(reader, request).await.map_err(Some) },
            async {
                match sweep {
                    Some(sweep) => sweep.first(reader).await.map_err(Some)?.ok_or(None),
                    None => Ok(false),
                }
            },
            async { types::stand(reader, types.as_ref()).await.map_err(|error| Some(error.into())) },
            async { page.await.map_err(|error| Some(error.into())) },
        );
        let ((), facts, is_late, stand, page) = match (asked, sweep) {
            (Ok(answers), _) => answers,
            (Err(None), Some(sweep)) => {
                // What is new of the table is judged behind that: without a judgement, the cursor must not come to know it.
                let is_new = family.has_news() || request.root.is_some_and(|root| root != request.shape.root);
                if is_new {
                    return Err(FetchError::Late(request.budget.time));
                }
                batches.open(sweep.too_long()?);
                return Ok(None);
            }
            (Err(error), _) => return Err(error.unwrap_or(FetchError::FamilyChanged)),
        };
        if !stand {
            return Err(FetchError::FamilyChanged);
        }
        let snapshot = family.judge(reader, request, facts).await?;
        let mut page = page;
        let (opened, stuck) = self.late(reader, &snapshot, (is_late, begun), &mut page).await?;
        let is_whole = opened.is_whole();
        let page = match (page, first) {
            (None, Some(rows)) if is_whole => Some((rows, pager.page(reader, request, None, rows).await?)),
            // They are not published.
            (page, _) => page.filter(|_| is_whole),
        };
        if !stuck {
            drop(last_asked);
        }
        batches.open(opened);
        Ok((!stuck).then_some(Opening { snapshot, page, is_whole }))
    }

    /// What came late; with it, whether the connection is still at it. The page is dropped where more is to be asked for.
    async fn late(
        &self,
        reader: &Loan,
        snapshot: &str,
        (is_late, begun): (bool, Instant),
        page: &mut Option<(usize, RowStream)>,
    ) -> Result<(Opened, bool), FetchError> {
        let Some(sweep) = &self.sweep else {
            return Ok((Opened { snapshot: snapshot.to_owned(), ..Opened::default() }, false));
        };
        if is_late || !sweep.is_asked(snapshot) {
            // What was asked for behind it is asked for again: its rows would have to be read first.
            *page = None;
        }
        sweep.opened(reader, snapshot, is_late, begun).await
    }
}
