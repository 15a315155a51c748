//! How many rows a turn looks for that would be refused, to pass them as dead letters together.
//!
//! Pure. None while no row is refused: looking costs time. Each is an insert of the advance, one after the other, which must end in time.

/// The most of one turn.
const MOST: usize = 128;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterLimit {
    now: usize,
    most: usize,
}

impl Default for LetterLimit {
    fn default() -> Self {
        Self { now: 0, most: MOST }
    }
}

impl LetterLimit {
    /// So many in the next turn.
    pub(in crate::relay) const fn now(self) -> usize {
        self.now
    }

    /// A turn has passed rows as dead letters: the next one may meet more of them.
    #[must_use]
    pub(in crate::relay) fn passed(self) -> Self {
        let most = (self.most + usize::from(self.now >= self.most)).min(MOST);
        Self { now: (self.now * 2).max(2).min(most), most }
    }

    /// A turn has passed none.
    #[must_use]
    pub(in crate::relay) fn none(self) -> Self {
        Self { now: 0, ..self }
    }

    /// The advance with so many dead letters has failed: perhaps they took too long. The next turn has one.
    #[must_use]
    pub(in crate::relay) fn not_advanced(self, letters: usize) -> Self {
        let most = if letters > 1 { (letters / 2).min(self.most) } else { self.most };
        Self { now: 0, most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_double_until_they_are_too_many_for_an_advance() {
        let mut limit = LetterLimit::default();
        let seen = [(); 9].map(|()| {
            limit = limit.passed();
            limit.now()
        });
        assert_eq!(seen, [2, 4, 8, 16, 32, 64, 128, 128, 128]);
        assert_eq!(limit.none().passed().now(), 2);
        limit = limit.not_advanced(129);
        assert_eq!(limit.now(), 0);
        (0..20).for_each(|_| limit = limit.passed());
        assert!((64..80).contains(&limit.now()), "little by little from there: {}", limit.now());
        for letters in [70, 35, 17, 8, 4, 2, 1] {
            limit = limit.not_advanced(letters);
        }
        assert_eq!(limit.passed().now(), 1, "one is never too many");
    }
}
