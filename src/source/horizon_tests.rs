//! Properties of the rule over generated interleavings of sessions, clock, changes of the table and a relay, and proof that
//! its faulty variants are told apart.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

#[path = "horizon_tests/relay.rs"]
mod relay;
#[path = "horizon_tests/scans.rs"]
mod scans;
#[path = "horizon_tests/standby.rs"]
mod standby_tests;
#[path = "horizon_tests/steps.rs"]
mod steps;
#[path = "horizon_tests/variant.rs"]
mod variant;
#[path = "horizon_tests/world.rs"]
mod world;

use relay::{Outcome, Pace, Relay};
use variant::{FAULTY, Variant};
use world::World;

/// So many generated cases convict every faulty variant.
const CASES: usize = 20_000;

fn at(tick: i64) -> Timestamp {
    Timestamp::from_pg_micros(tick)
}

fn pace() -> impl Strategy<Value = Pace> {
    let start = prop_oneof![Just(0), 0..120_i64];
    (start, 0..30_i64, 0..6_i64, 0..3_i64).prop_map(|(start, every, spread, window)| Pace {
        start,
        every,
        spread,
        window,
    })
}

/// The window is wide only where the clock steps: small steps then add up to more than it.
fn outcome(world: &World, pace: Pace, rule: Rule, variant: Variant) -> Outcome {
    let window = if world.steps.is_empty() { pace.window } else { 60 };
    Relay::new(world, Pace { window, ..pace }, rule, variant).run()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    // Guarantee: horizon.model
    #[test]
    fn writers_rule_loses_no_row(world in world::world(), pace in pace()) {
        let outcome = outcome(&world, pace, Rule::Writers, Variant::Right);
        prop_assert_eq!((outcome.lost, outcome.stuck), (0, 0));
    }

    // Guarantee: horizon.model
    #[test]
    fn transactions_rule_loses_no_row(world in world::world(), pace in pace()) {
        let outcome = outcome(&world, pace, Rule::Transactions, Variant::Right);
        prop_assert_eq!((outcome.lost, outcome.stuck), (0, 0));
    }
}

// Guarantee: horizon.model-detects
#[test]
fn faulty_variants_lose_rows() {
    for variant in FAULTY {
        let rules = variant.rule().map_or(vec![Rule::Writers, Rule::Transactions], |rule| vec![rule]);
        for rule in rules {
            let mut runner = TestRunner::deterministic();
            let inputs = (world::world(), pace());
            let convicted = (1..=CASES).find(|_| {
                let (world, pace) = inputs.new_tree(&mut runner).expect("generates").current();
                outcome(&world, pace, rule, variant).lost > 0
            });
            println!(
                "{variant:?} under {}: {convicted:?}",
                if rule == Rule::Writers { "writers" } else { "transactions" }
            );
            assert!(convicted.is_some(), "{variant:?} loses no row: the model cannot tell it from the rule");
        }
    }
}

// Guarantee: horizon.clock-steps
#[test]
fn history_that_starts_over_after_step_loses_no_row() {
    let mut runner = TestRunner::deterministic();
    let inputs = (world::world(), pace());
    for case in 0..CASES {
        let (world, pace) = inputs.new_tree(&mut runner).expect("generates").current();
        let lost = outcome(&world, pace, Rule::Writers, Variant::StepForgotten).lost;
        assert_eq!(lost, 0, "case {case}: {world:?} {pace:?}");
    }
}

#[test]
fn generated_worlds_are_relayed_not_halted() {
    let mut runner = TestRunner::deterministic();
    let inputs = (world::world(), pace());
    let (mut rows, mut halted) = (0, 0);
    for _ in 0..500 {
        let (world, pace) = inputs.new_tree(&mut runner).expect("generates").current();
        let outcome = outcome(&world, pace, Rule::Writers, Variant::Right);
        rows += outcome.rows;
        halted += usize::from(outcome.halted);
    }
    assert!(rows > 2_000 && halted < 250, "{rows} rows, {halted} of 500 halted: the model shows too little");
}
