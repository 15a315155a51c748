//! What a scan reads of the world, each client at a tick of its own; right, or with one fault.

use super::*;

impl Relay<'_> {
    /// Transactions that have begun, by `from`, and whose locks are not released, each with its client and process.
    pub(super) fn transactions(
        &self,
        ticks: &[i64],
        from: impl Fn(&Transaction) -> i64,
    ) -> Vec<(String, usize, Option<i32>)> {
        let mut found = Vec::new();
        for (n, (client, tick)) in self.world.clients.iter().zip(ticks).enumerate() {
            for (number, transaction) in client.transactions.iter().enumerate() {
                if from(transaction) <= *tick && *tick < transaction.unlock {
                    let running = transaction.prepared.is_none_or(|prepared| *tick < prepared);
                    found.push((format!("{n}/{number}"), n, running.then_some(n as i32)));
                }
            }
        }
        found
    }

    pub(super) fn writers(&self, activity: &[i64], locks: &[i64], with_starts: bool) -> ScanResult {
        let first = self.scanned.is_empty();
        let mut writers = self.transactions(locks, |transaction| transaction.lock);
        if self.variant == Variant::PreparedTakenForRunning {
            writers.iter_mut().for_each(|(_, client, pid)| *pid = Some(*client as i32));
        }
        let starts = self.world.clients.iter().zip(activity).enumerate().map(|(n, (client, tick))| {
            let (started, _) = reported(self.world, client, *tick);
            Start { pid: n as i32, application: None, started: started.filter(|_| !client.hidden && !client.silent) }
        });
        ScanResult::Writers {
            starts: if with_starts { starts.collect() } else { Vec::new() },
            writers: writers
                .into_iter()
                .filter(|_| !(first && self.variant == Variant::UnknownSkipped))
                .map(|(transaction, _, pid)| Writer { transaction, pid })
                .collect(),
        }
    }

    pub(super) fn sessions(&self, activity: &[i64], locks: &[i64]) -> ScanResult {
        let left_out =
            |client: usize| self.variant == Variant::RelayRoleLeftOut && self.world.clients[client].relay_role;
        let sessions = self.world.clients.iter().zip(activity).enumerate().filter_map(|(n, (client, tick))| {
            // With login triggers a session counts from its beginning, as PostgreSQL 18 reports it.
            let counts = self.world.login_trigger && self.variant != Variant::LoginTriggerIgnored;
            let begun = if counts { client.connected.0 } else { client.opened };
            let connected = begun <= *tick && *tick < client.connected.1;
            (connected && !left_out(n)).then(|| Session {
                pid: n as i32,
                application: None,
                activity: self.activity(client, *tick),
            })
        });
        let mut running = self.transactions(locks, |transaction| transaction.begin);
        let opening = |(n, tick): (usize, &i64)| self.world.clients[n].is_opening(*tick).then_some(n);
        running
            .extend(locks.iter().enumerate().filter_map(opening).map(|n| (format!("{n}/opening"), n, Some(n as i32))));
        running.retain(|(_, client, pid)| !left_out(*client) || pid.is_none());
        if self.variant == Variant::PreparedByFirstSeen {
            // As one of a session that cannot be read.
            running
                .iter_mut()
                .filter(|(.., pid)| pid.is_none())
                .for_each(|(_, client, pid)| *pid = Some(1_000 + *client as i32));
        }
        let began = |client: usize| Some(self.world.clock(self.world.clients[client].connected.0));
        ScanResult::Sessions {
            sessions: sessions.collect(),
            running: running
                .into_iter()
                .map(|(transaction, client, pid)| {
                    let reported = pid.filter(|pid| *pid < 1_000).filter(|_| !transaction.ends_with("opening"));
                    let session_began = reported.and_then(|_| began(client));
                    let login_trigger = self.world.login_trigger && self.variant != Variant::LoginTriggerIgnored;
                    Running { transaction, pid, session_began, login_trigger }
                })
                .collect(),
        }
    }

    fn activity(&self, client: &Client, tick: i64) -> Activity {
        let (transaction, message) = reported(self.world, client, tick);
        match self.variant {
            Variant::FirstSeenUnderTransactions => Activity::Hidden,
            _ if client.hidden => Activity::Hidden,
            Variant::SilentSkipped if client.silent => Activity::Reported { transaction: None, message: None },
            _ if client.silent => Activity::Silent,
            Variant::MessageIgnored => Activity::Reported { transaction, message: None },
            _ => Activity::Reported { transaction, message },
        }
    }
}

/// What the session reports: when its transaction began, and when the message in progress came.
pub(super) fn reported(world: &World, client: &Client, tick: i64) -> (Option<Timestamp>, Option<Timestamp>) {
    let open = |transaction: &&Transaction| transaction.begin <= tick && tick < transaction.left();
    let transaction = client.transactions.iter().find(open).map(|transaction| world.clock(transaction.message));
    let message = client.messages.iter().find(|(came, ended)| *came <= tick && tick < *ended);
    (transaction, message.map(|(came, _)| world.clock(*came)))
}
