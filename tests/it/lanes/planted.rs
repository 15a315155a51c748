//! The checker of the storms convicts a model of each fault, and acquits one that has none.

use super::checker::{Allowed, Fault, Verdict, at_least_once, at_most_once};
use super::model::{self, IN_FLIGHT, Model, Plant};

const SEEDS: u64 = 10;
const ROUNDS: usize = 40;

fn judged(plant: Plant, seed: u64, with_kills: bool) -> Verdict {
    let mut model = Model::new(plant, seed);
    model.run(ROUNDS, with_kills);
    let allowed = Allowed { repeated: model.kills * IN_FLIGHT, ..Allowed::default() };
    at_least_once(&model.committed(), model.arrivals(), allowed)
}

// Guarantee: checker.lanes
#[test]
fn relay_with_lanes_and_parked_keys_is_convicted_of_each_fault() {
    for (plant, fault) in [
        (Plant::LaneOvertakesItself, Fault::Overtaken),
        (Plant::TwoOfALane, Fault::Overtaken),
        (Plant::ForgetsAhead, Fault::Repeated),
        (Plant::RecordsBeforeItIsSent, Fault::Lost),
        (Plant::PassesAGap, Fault::Lost),
        (Plant::NewRowPassesParked, Fault::Overtaken),
        (Plant::NewRowPassesReleased, Fault::Overtaken),
        (Plant::FreesKeyTooEarly, Fault::Lost),
        (Plant::ReleasesBackward, Fault::Overtaken),
        (Plant::ForgetsParked, Fault::Lost),
        (Plant::KeepsReleased, Fault::Repeated),
    ] {
        for (seed, with_kills) in (0..SEEDS).flat_map(|seed| [(seed, false), (seed, true)]) {
            let found = judged(plant, seed, with_kills).faults();
            assert!(found.contains(&fault), "{plant:?}, seed {seed}, kills {with_kills}: {found:?}");
        }
    }
}

// Guarantee: checker.lanes
#[test]
fn relay_with_lanes_and_parked_keys_without_a_fault_is_acquitted() {
    for seed in 0..SEEDS * 5 {
        judged(Plant::Nothing, seed, false).acquits(seed);
        judged(Plant::Nothing, seed, true).acquits(seed);
    }
}

fn judged_once(plant: model::once::Plant, seed: u64) -> Verdict {
    let mut model = model::once::Model::new(plant, seed);
    model.run(ROUNDS);
    let allowed = Allowed { listed: model.kills * IN_FLIGHT * model::once::RESERVED, ..Allowed::default() };
    at_most_once(&model.committed(), model.arrivals(), &model.listed, allowed)
}

// Guarantee: checker.lanes
#[test]
fn relay_with_lanes_under_at_most_once_is_convicted_of_each_fault() {
    use model::once::Plant;
    for (plant, fault) in [
        (Plant::LaneOvertakesItself, Fault::Overtaken),
        (Plant::SendsUnclearAgain, Fault::Twice),
        (Plant::ListsNothingUnclear, Fault::Lost),
        (Plant::ForgetsReservation, Fault::Twice),
        (Plant::ListsNoReservation, Fault::Lost),
        (Plant::ListsAll, Fault::Listed),
        (Plant::ForgetsAhead, Fault::Twice),
    ] {
        for seed in 0..SEEDS {
            let found = judged_once(plant, seed).faults();
            assert!(found.contains(&fault), "{plant:?}, seed {seed}: {found:?}");
        }
    }
}

// Guarantee: checker.lanes
#[test]
fn relay_with_lanes_under_at_most_once_without_a_fault_is_acquitted() {
    for seed in 0..SEEDS * 5 {
        judged_once(model::once::Plant::Nothing, seed).acquits(seed);
    }
}
