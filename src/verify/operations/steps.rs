//! One thing that has become of a cursor's position, and what it says of a row. Pure.

use super::{GivenUp, Said};
use crate::position::{Position, Timestamp};
use crate::source::shape::IdType;
use crate::verify::decide::Known;

/// A row that the topic lacks.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its instant.
    pub at: Timestamp,
    /// The type of the table's ids.
    pub ids: IdType,
    /// The newest note that its dead letter was given up.
    pub given_up: Option<&'a GivenUp>,
}

/// What has become of a cursor's position.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An operator has moved it.
    Moved { from: Option<Position>, to: Option<Position> },
    /// An operator has moved it over this row alone.
    Skipped(Position),
    /// An operator has made the cursor there.
    Began(Option<Position>),
    /// The relay has moved it back.
    WentBack(Option<Position>),
    /// It took over there what an operator had accepted, of which rows at or below that place are never sent.
    Adopted(Option<Position>),
    /// The same, noted by a replica of an older version: only the instant is known.
    AdoptedAt(Timestamp),
}

impl Row<'_> {
    /// Whether it comes after a place; none where only PostgreSQL can tell, which alone orders texts.
    fn is_after(&self, place: Option<&Position>) -> Option<bool> {
        let Some(Position { created_at, id }) = place else { return Some(true) };
        match id {
            _ if self.at != *created_at => Some(self.at > *created_at),
            None => Some(true),
            Some(id) if id == self.id => Some(false),
            Some(id) => self.ids.is_before(id, self.id),
        }
    }

    fn is_at(&self, place: &Position) -> bool {
        self.at == place.created_at && place.id.as_deref() == Some(self.id)
    }
}

impl Step {
    pub(super) fn says(&self, row: Row<'_>) -> Said {
        let to = match self {
            Self::Moved { to, .. } | Self::Began(to) | Self::WentBack(to) | Self::Adopted(to) => to.as_ref(),
            Self::Skipped(place) => Some(place),
            Self::AdoptedAt(_) => return Said::Nothing,
        };
        if row.is_after(to) == Some(true) {
            return Said::Due;
        }
        match self {
            // Where the order of one instant's rows is not known, all of them count as passed over.
            Self::Moved { from, .. } if row.is_after(from.as_ref()) != Some(false) => Said::Passed(Known::Skipped),
            Self::Skipped(place) if row.is_at(place) => Said::Passed(Known::Skipped),
            Self::Began(_) => Said::Passed(Known::BeforeStart),
            _ => Said::Nothing,
        }
    }

    /// Whether it has passed over exactly this row.
    pub(super) fn skips(&self, row: Row<'_>) -> bool {
        matches!(self, Self::Skipped(place) if row.is_at(place))
    }

    /// Whether this row may have been at or below the position then, unsent.
    pub(super) fn accepts(&self, row: Row<'_>) -> bool {
        match self {
            Self::Adopted(place) => row.is_after(place.as_ref()) != Some(true),
            Self::AdoptedAt(at) => row.at <= *at,
            _ => false,
        }
    }

    /// Whether rows were to come again by it. A move within one instant counts: a turn, too, takes it for one that leads back.
    pub(super) fn leads_back(&self) -> bool {
        match self {
            Self::Moved { from, to } => instant(to.as_ref()) <= instant(from.as_ref()),
            Self::Began(_) | Self::WentBack(_) => true,
            Self::Skipped(_) | Self::Adopted(_) | Self::AdoptedAt(_) => false,
        }
    }

    /// What it is called, and where the record of passed rows begins again, if it has ended that: what was passed before comes again, or
    /// was of something else.
    pub(super) fn ends_record(&self) -> Option<(&'static str, Timestamp)> {
        match self {
            Self::Moved { to, .. } if self.leads_back() => Some(("a `cursor seek` back", instant(to.as_ref()))),
            Self::WentBack(to) => Some(("a move back by the relay", instant(to.as_ref()))),
            Self::Adopted(place) => Some(("a `cursor adopt`", instant(place.as_ref()))),
            Self::AdoptedAt(at) => Some(("a `cursor adopt`", *at)),
            Self::Moved { .. } | Self::Skipped(_) | Self::Began(_) => None,
        }
    }

    /// Whether an operator has moved it back over this instant.
    pub(super) fn repeats(&self, at: Timestamp) -> bool {
        match self {
            Self::Moved { from, to } => instant(to.as_ref()) <= at && at <= instant(from.as_ref()),
            _ => false,
        }
    }
}

/// That of a place; none is before every row.
fn instant(place: Option<&Position>) -> Timestamp {
    place.map_or(Timestamp::NEG_INFINITY, |place| place.created_at)
}
