use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::cursor::unknown;
use crate::sink::Class;

/// What a receiver makes of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Accepted,
    /// Provably not accepted.
    NotSent,
    /// No clear answer; it may have been accepted.
    Silent,
}

fn failure(class: Class, ambiguous: bool) -> Failure {
    Failure { ambiguous, ..Failure::of(class, "c", "m", "h") }
}

fn ended(acknowledged: usize, stopped: Option<Failure>) -> Published {
    Published { acknowledged, stopped, suspects: 1 }
}

/// A turn's sending of `rows` messages, as every sink does it: one after the other, until one is not accepted.
fn sent(rows: usize, answers: &mut impl Iterator<Item = Answer>) -> Published {
    for row in 0..rows {
        match answers.next().unwrap_or(Answer::Accepted) {
            Answer::Accepted => {}
            Answer::NotSent => return ended(row, Some(failure(Class::Retry, false))),
            Answer::Silent => return ended(row, Some(failure(Class::Retry, true))),
        }
    }
    ended(rows, None)
}

proptest! {
    // Guarantee: at-most-once.unclear
    #[test]
    fn no_row_is_sent_again_that_may_have_arrived_and_each_is_accepted_or_listed(
        rows in 0..60_usize,
        most in 1..12_usize,
        answers in prop::collection::vec(
            prop_oneof![4 => Just(Answer::Accepted), 1 => Just(Answer::NotSent), 1 => Just(Answer::Silent)], 0..200),
    ) {
        let mut answers = answers.into_iter();
        let (mut position, mut accepted, mut unknown) = (0, Vec::new(), BTreeSet::new());
        while position < rows {
            let published = sent(most.min(rows - position), &mut answers);
            let doubt = in_doubt(&published);
            accepted.extend(position..position + published.acknowledged);
            if doubt.is_some() {
                unknown.insert(position + published.acknowledged);
            }
            position += published.acknowledged + usize::from(doubt.is_some());
        }
        prop_assert!(accepted.windows(2).all(|pair| pair[0] < pair[1]), "once, and in order");
        let fates: BTreeSet<usize> = accepted.iter().copied().chain(unknown.iter().copied()).collect();
        prop_assert_eq!(fates.len(), accepted.len() + unknown.len(), "none is both");
        prop_assert_eq!(fates, (0..rows).collect::<BTreeSet<_>>());
    }
}

#[test]
fn only_an_ambiguous_failure_leaves_a_row_in_doubt_and_nobody_can_put_it_aside() {
    assert!(in_doubt(&ended(3, None)).is_none());
    for class in [Class::Retry, Class::Poison, Class::Fatal] {
        assert!(in_doubt(&ended(0, Some(failure(class, false)))).is_none(), "{class:?}");
    }
    let classes = [Class::Retry, Class::Poison, Class::Fatal]
        .map(|class| in_doubt(&ended(0, Some(failure(class, true)))).map(|failure| (failure.class, failure.hint)));
    let hint = || unknown::HINT.to_owned();
    assert_eq!(classes, [Class::Retry, Class::Retry, Class::Fatal].map(|class| Some((class, hint()))));
}
