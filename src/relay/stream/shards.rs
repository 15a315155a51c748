//! Shards of a relay: the newest row of each, and where the cursor of an idle one moves.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::types::ToSql;

use crate::cursor::Standing;
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::relay::Config;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::poll::{Look, Newest};
use crate::source::shape::Shape;
use crate::source::shard::Shard;

/// A shard without rows of its own follows the table's others when it is this far behind them: until then, rows that all
/// have passed are held for it (`outbox.hold`).
const FOLLOWS: Duration = Duration::from_secs(3_600);

/// Where a shard's cursor that has nothing to read should follow to: the table's newest row that is safe to read, when the
/// cursor is far behind it. A turn moves it there, and only after it has read that no row of the shard lies before.
pub(in crate::relay) fn follows(ready: &PreparedStream, standing: &Standing, look: &Look) -> Option<Position> {
    ready.config.shard.as_ref()?;
    let newest = look.newest.as_ref().filter(|_| !look.is_behind(standing))?;
    let far = standing.position.as_ref().is_none_or(|at| newest.created_at.since(at.created_at) > FOLLOWS);
    far.then(|| newest.clone())
}

/// Whether rows are told apart by a column that is there, the same and of the same type that the relay was checked with.
pub(in crate::relay) fn keeps_key(ready: &PreparedStream, shape: &Shape) -> bool {
    let key = ready.config.shard.as_ref().map(|shard| &shard.key);
    let of = &ready.shape;
    key.is_none_or(|key| {
        shape.columns.contains_key(key)
            && shape.columns.get(key) == of.columns.get(key)
            && shape.column_numbers.get(key) == of.column_numbers.get(key)
    })
}

/// What a turn that found nothing makes of [`follows`]: only forward from the position that it has locked, because another
/// replica may have moved it since the look, and only below the horizon.
pub(in crate::relay) fn follow_to(
    to: Option<Position>,
    position: Option<&Position>,
    horizon: Timestamp,
) -> Option<Position> {
    to.filter(|to| to.created_at < horizon && position.is_none_or(|at| at.created_at < to.created_at))
}

/// The newest rows of all shards of a table, read again only when the table's own newest row is another, or some are not safe
/// to read yet: below what is safe nothing changes any more.
#[derive(Debug, Default)]
pub(in crate::relay) struct Shards {
    /// The table's newest row when they were read, all of them safe to read.
    of: Option<Position>,
    /// Where the last of the cursors stood then: of what lies before it nothing is known.
    from: Option<Timestamp>,
    newest: HashMap<String, Newest>,
}

impl Shards {
    /// The look, with the newest rows of these relays' shards.
    pub(in crate::relay) async fn complete<'a>(
        &mut self,
        look: Look,
        session: &Session,
        shape: &Shape,
        relays: impl Iterator<Item = &'a Config>,
        deadline: Duration,
    ) -> Result<Look, Error> {
        let shards = relays.filter_map(|relay| Some((relay.name.as_str(), relay.shard.as_ref()?)));
        // A relay whose key is gone is checked again, and says so: it keeps none of the others from their rows.
        let shards: Vec<(&str, &Shard)> = shards.filter(|(_, shard)| shape.columns.contains_key(&shard.key)).collect();
        if shards.is_empty() {
            return Ok(look);
        }
        let settled = look.latest == look.newest && look.sighting.horizon.at.is_finite();
        let from = last(&look, &shards);
        // A cursor that was moved back has rows in front of it that were behind all cursors.
        let reaches = self.from.is_some_and(|known| known <= from);
        let known = reaches && self.newest.len() == shards.len() && settled && self.of == look.newest;
        if !known {
            let reading = read(session, shape, &shards, &look, from);
            self.newest = tokio::time::timeout(deadline, reading).await.map_err(|_| Error::Timeout(deadline))??;
            self.of = look.newest.clone();
            self.from = Some(from).filter(|_| settled);
        }
        Ok(Look { shards: self.newest.clone(), ..look })
    }
}

/// Where the last of these cursors stands.
fn last(look: &Look, shards: &[(&str, &Shard)]) -> Timestamp {
    let position = |(name, _): &(&str, &Shard)| look.standing(name).and_then(|standing| standing.position.as_ref());
    let at = |shard| position(shard).map_or(Timestamp::NEG_INFINITY, |position| position.created_at);
    shards.iter().map(at).min().unwrap_or(Timestamp::NEG_INFINITY)
}

/// Two rows of each shard, by one statement for all shards of a relay.
async fn read(
    session: &Session,
    shape: &Shape,
    shards: &[(&str, &Shard)],
    look: &Look,
    from: Timestamp,
) -> Result<HashMap<String, Newest>, Error> {
    let mut found: HashMap<String, Newest> = HashMap::new();
    let (now, horizon) = (look.sighting.clock(), look.sighting.horizon.at);
    for (name, first) in shards {
        if found.contains_key(*name) {
            continue;
        }
        // What came after the look is not known to be safe: where it found all safe, nothing above the horizon counts.
        let safe =
            if horizon.is_finite() { newest(session, shape, first, [horizon, from]).await? } else { HashMap::new() };
        let latest =
            if look.latest == look.newest { safe.clone() } else { newest(session, shape, first, [now, from]).await? };
        for (name, shard) in shards.iter().filter(|(_, shard)| shard.of == first.of && shard.key == first.key) {
            let newest =
                Newest { latest: latest.get(&shard.number).cloned(), newest: safe.get(&shard.number).cloned() };
            found.insert((*name).to_owned(), newest);
        }
    }
    Ok(found)
}

async fn newest(
    session: &Session,
    shape: &Shape,
    shard: &Shard,
    [below, from]: [Timestamp; 2],
) -> Result<HashMap<u32, Position>, Error> {
    let statement = session.prepare_cached(&shape.newest_of_shards_sql(shard)).await?;
    let parameters: [&(dyn ToSql + Sync); 2] = [&below, &from];
    let mut found = HashMap::new();
    for row in session.query(&statement, &parameters).await? {
        let number: i64 = row.try_get(0)?;
        let position = Position { created_at: row.try_get(1)?, id: row.try_get(2)? };
        found.insert(u32::try_from(number).unwrap_or_default(), position);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Position {
        Position { created_at: Timestamp::from_pg_micros(micros), id: Some("1".to_owned()) }
    }

    #[test]
    fn idle_shard_follows_only_forward_and_below_horizon() {
        let horizon = Timestamp::from_pg_micros(100);
        let follow = |position: Option<i64>, to| follow_to(Some(at(to)), position.map(at).as_ref(), horizon);
        assert_eq!(follow(Some(40), 50), Some(at(50)));
        assert_eq!(follow(None, 50), Some(at(50)));
        assert_eq!(follow(Some(60), 50), None, "another replica has moved it on");
        assert_eq!(follow(Some(50), 50), None, "rows of the same instant may still be unread");
        assert_eq!(follow(Some(40), 100), None, "at the horizon");
        assert_eq!(follow_to(None, None, horizon), None);
    }
}
