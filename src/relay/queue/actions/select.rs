//! Which of the actions that are due are begun. Pure.
//!
//! Promise: a tenant never has more actions running than it may, a schedule never two, and what one tenant has waiting takes
//! no other's place.

use std::collections::{BTreeMap, BTreeSet};

use crate::jobs::actions::Candidate;

/// What is running, whoever has it.
#[derive(Debug, Default)]
pub(super) struct Running {
    tenants: BTreeMap<String, usize>,
    schedules: BTreeSet<(i64, String)>,
}

impl Running {
    pub(super) fn new(running: Vec<(String, i64)>) -> Self {
        let mut all = Self::default();
        for (tenant, schedule) in running {
            all.add(tenant, schedule);
        }
        all
    }

    fn add(&mut self, tenant: String, schedule: i64) {
        *self.tenants.entry(tenant.clone()).or_default() += 1;
        self.schedules.insert((schedule, tenant));
    }

    /// What belongs to nobody is bounded by its schedule alone.
    fn has_room(&self, candidate: &Candidate, per_tenant: usize) -> bool {
        let running = self.tenants.get(&candidate.tenant).copied().unwrap_or(0);
        let tenant = candidate.tenant.is_empty() || running < per_tenant;
        tenant && !self.schedules.contains(&(candidate.schedule, candidate.tenant.clone()))
    }

    /// Takes at most `room` of the candidates, first come, first served; their ids.
    pub(super) fn select(
        &mut self,
        candidates: impl IntoIterator<Item = Candidate>,
        per_tenant: usize,
        room: usize,
    ) -> Vec<i64> {
        let mut selected = Vec::new();
        for candidate in candidates {
            if selected.len() == room {
                break;
            }
            if self.has_room(&candidate, per_tenant) {
                selected.push(candidate.id);
                self.add(candidate.tenant, candidate.schedule);
            }
        }
        selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: i64, tenant: &str, schedule: i64) -> Candidate {
        Candidate { id, tenant: tenant.to_owned(), schedule }
    }

    // Guarantee: schedules.overlap
    #[test]
    fn a_tenant_has_at_most_its_share_and_a_schedule_one() {
        let mut running = Running::new(vec![("a".to_owned(), 1)]);
        let all = [candidate(1, "a", 2), candidate(2, "b", 3), candidate(3, "b", 3), candidate(4, "b", 4)];
        assert_eq!(running.select(all, 2, 10), [1, 2, 4]);
        assert_eq!(running.select([candidate(5, "a", 9), candidate(6, "c", 10)], 2, 10), [6]);
    }

    #[test]
    fn what_belongs_to_nobody_is_bounded_by_its_schedule_alone_and_all_by_the_room() {
        let mut running = Running::default();
        let all = (0..10).map(|id| candidate(id, "", id / 2));
        assert_eq!(running.select(all, 1, 3), [0, 2, 4]);
    }

    #[test]
    fn a_schedule_for_each_tenant_runs_for_all_of_them_at_once() {
        let mut running = Running::default();
        assert_eq!(running.select([candidate(1, "a", 7), candidate(2, "b", 7)], 1, 10), [1, 2]);
    }
}
