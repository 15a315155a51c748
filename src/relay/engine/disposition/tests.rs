//! The table once more, as rows: every failure of every sender must mean what its row says.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Disposition, ForCircuit, ForMessage, ForRelay, Sender, disposition};
use crate::relay::{OnPoison, OnUnknown};
use crate::sink::{Class, Failure, Subject};

// In each table the first row that fits decides: `*` fits all, `!a` all but a. `waits:COUNTS:AFTER` says how many attempts it
// counts as, and as after how many it waits; n: the job's.

const STREAM: &str = "
    on_poison   several passed class  outcome subject   | message  relay      circuit
    *           *       yes    fatal  unknown *         | unknown  halts      closes
    *           *       yes    *      unknown receiver  | unknown  backs_off  outage
    *           *       yes    *      unknown *         | unknown  backs_off  closes
    *           *       *      retry  *       receiver  | blocks   backs_off  outage
    *           *       *      retry  *       *         | blocks   backs_off  closes
    *           yes     *      poison *       *         | isolated unaffected unchanged
    dead_letter no      *      poison *       *         | fails    recovers   closes
    halt        no      *      poison *       *         | blocks   halts      closes
    *           *       *      fatal  *       *         | blocks   halts      closes
";

const REDRIVE: &str = "
    passed class  outcome subject   | message  relay      circuit
    yes    fatal  unknown *         | unknown  halts      closes
    yes    *      unknown receiver  | unknown  backs_off  outage
    yes    *      unknown *         | unknown  backs_off  closes
    *      retry  *       receiver  | blocks   backs_off  outage
    *      retry  *       *         | blocks   backs_off  closes
    *      poison *       *         | fails    unaffected unchanged
    *      fatal  *       *         | blocks   halts      closes
";

const PENDING: &str = "
    on_poison   several passed once class  outcome subject   | message   relay      circuit
    *           yes     *      *    poison *       *         | isolated  unaffected unchanged
    *           *       yes    *    fatal  unknown *         | unknown   halts      closes
    halt        no      yes    *    poison unknown *         | unknown   halts      closes
    dead_letter no      yes    *    poison unknown *         | unknown   recovers   closes
    *           *       yes    *    retry  unknown *         | unknown   backs_off  outage
    dead_letter no      *      *    poison *       *         | fails     recovers   closes
    halt        no      *      *    poison *       *         | waits:1:n halts      closes
    *           *       *      *    fatal  *       *         | waits:0:- halts      closes
    *           *       *      *    retry  known   key       | waits:1:n continues  closes
    *           *       *      *    retry  known   *         | waits:0:0 backs_off  outage
    *           *       no     no   retry  unknown receiver  | waits:1:n backs_off  outage
    *           *       no     *    retry  unknown *         | waits:1:n continues  closes
";

const REQUEST: &str = "
    on_poison   on_unknown  before once attempts class  outcome subject  asks | message            relay     circuit
    *           dead_letter *      *    *        retry  unknown receiver *    | unknown            backs_off outage
    *           dead_letter *      *    *        *      unknown *        yes  | unknown            backs_off outage
    *           dead_letter *      *    *        *      unknown *        *    | unknown            recovers  closes
    *           *           *      *    0        retry  known   receiver *    | waits:1:0          backs_off outage
    *           *           *      *    !0       retry  known   receiver *    | waits:0:0          backs_off outage
    *           *           *      *    0        retry  known   *        yes  | waits:1:0          backs_off outage
    *           *           *      *    !0       retry  known   *        yes  | waits:0:0          backs_off outage
    *           *           *      *    0        retry  known   *        *    | waits:1:0          continues closes
    *           *           *      *    !0       retry  known   *        *    | waits:0:0          continues closes
    *           resend      *      yes  *        retry  unknown *        no   | waits:1:n          continues closes
    *           ask         *      yes  *        retry  unknown *        no   | waits:1:n:outlasts continues closes
    *           resend      *      *    *        retry  unknown receiver *    | waits:1:n          backs_off outage
    *           ask         *      *    *        retry  unknown receiver *    | waits:1:n:outlasts backs_off outage
    *           resend      *      *    *        retry  unknown *        yes  | waits:1:n          backs_off outage
    *           ask         *      *    *        retry  unknown *        yes  | waits:1:n:outlasts backs_off outage
    *           resend      *      *    *        retry  unknown *        *    | waits:1:n          continues closes
    *           ask         *      *    *        retry  unknown *        *    | waits:1:n:outlasts continues closes
    *           ask         yes    *    *        poison unknown key      yes  | waits:1:n:outlasts backs_off outage
    *           ask         yes    *    *        poison unknown key      *    | waits:1:n:outlasts continues closes
    *           !dead_letter yes   *    *        poison *       key      yes  | waits:1:n          backs_off outage
    *           !dead_letter yes   *    *        poison *       key      *    | waits:1:n          continues closes
    dead_letter *           yes    *    *        poison *       *        yes  | unknown            backs_off outage
    dead_letter *           yes    *    *        poison *       *        *    | unknown            recovers  closes
    dead_letter *           no     *    *        poison *       *        yes  | fails              backs_off outage
    dead_letter *           no     *    *        poison *       *        *    | fails              recovers  closes
    halt        *           *      *    *        poison *       *        *    | blocks             halts     closes
    *           *           *      *    *        fatal  *       *        *    | blocks             halts     closes
";

const ACTION: &str = "
    retries interrupted attempts class  outcome | message   relay      circuit
    no      *           *        fatal  unknown | fails     rechecks   unchanged
    no      no          *        *      unknown | fails     continues  unchanged
    no      yes         *        *      unknown | fails     unaffected unchanged
    *       no          *        poison *       | fails     continues  unchanged
    *       yes         *        poison *       | fails     unaffected unchanged
    *       no          !7       fatal  *       | waits:1:4 rechecks   unchanged
    *       no          7        fatal  *       | waits:1:n rechecks   unchanged
    *       yes         *        fatal  *       | waits:0:- rechecks   unchanged
    *       no          *        retry  unknown | waits:1:n continues  unchanged
    *       no          !7       retry  known   | waits:1:n continues  unchanged
    *       no          7        retry  known   | waits:1:4 continues  unchanged
    *       yes         *        retry  *       | waits:0:- unaffected unchanged
";

type Facts = BTreeMap<&'static str, String>;

const BOTH: [bool; 2] = [false, true];
const POLICIES: [(OnPoison, &str); 2] = [(OnPoison::Halt, "halt"), (OnPoison::DeadLetter, "dead_letter")];
const ATTEMPTS: [i32; 3] = [0, 2, 7];

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Every failure, with what a row can say of it.
fn failures() -> Vec<(Failure, Facts)> {
    let mut all = Vec::new();
    let subjects = [
        (Subject::Receiver, "receiver"),
        (Subject::Message, "message"),
        (Subject::KeyInUse, "key"),
        (Subject::Missing, "missing"),
        (Subject::TooSlow, "slow"),
        (Subject::Elsewhere, "elsewhere"),
    ];
    for class in [Class::Retry, Class::Poison, Class::Fatal] {
        for (ambiguous, outcome) in [(false, "known"), (true, "unknown")] {
            for (subject, word) in subjects {
                for retry_after in [None, Some(Duration::from_secs(30))] {
                    let failure = Failure { ambiguous, retry_after, ..Failure::of(class, "x", "", "").about(subject) };
                    let mut facts = Facts::from([("class", class.as_str().to_owned()), ("outcome", outcome.into())]);
                    facts.extend([("subject", word.into()), ("asks", yes(retry_after.is_some()))]);
                    all.push((failure, facts));
                }
            }
        }
    }
    all
}

fn streams() -> Vec<(Sender, Facts)> {
    let mut all = Vec::new();
    for (on_poison, policy) in POLICIES {
        for several in BOTH {
            for passed in BOTH {
                let facts = [("on_poison", policy.into()), ("several", yes(several)), ("passed", yes(passed))];
                all.push((Sender::Stream { on_poison, several, passed }, Facts::from(facts)));
            }
        }
    }
    all
}

fn redrives() -> Vec<(Sender, Facts)> {
    BOTH.map(|passed| (Sender::Redrive { passed }, Facts::from([("passed", yes(passed))]))).into()
}

fn pending() -> Vec<(Sender, Facts)> {
    let mut all = Vec::new();
    for (sender, facts) in streams() {
        let Sender::Stream { on_poison, several, passed } = sender else { unreachable!("a stream") };
        for once in BOTH {
            for attempts in ATTEMPTS {
                let mut facts = facts.clone();
                facts.extend([("once", yes(once)), ("attempts", attempts.to_string())]);
                all.push((Sender::Pending { on_poison, several, passed, once, attempts }, facts));
            }
        }
    }
    all
}

fn requests() -> Vec<(Sender, Facts)> {
    let mut all = Vec::new();
    let unknown = [(OnUnknown::Resend, "resend"), (OnUnknown::Ask, "ask"), (OnUnknown::DeadLetter, "dead_letter")];
    for (on_poison, policy) in POLICIES {
        for (on_unknown, then) in unknown {
            for ambiguous_before in BOTH {
                for once in BOTH {
                    for attempts in ATTEMPTS {
                        let mut facts = Facts::from([("on_poison", policy.into()), ("on_unknown", then.into())]);
                        facts.extend([("before", yes(ambiguous_before)), ("once", yes(once))]);
                        facts.insert("attempts", attempts.to_string());
                        let sender = Sender::Request { on_poison, on_unknown, ambiguous_before, once, attempts };
                        all.push((sender, facts));
                    }
                }
            }
        }
    }
    all
}

fn actions() -> Vec<(Sender, Facts)> {
    let mut all = Vec::new();
    for retries in BOTH {
        for interrupted in BOTH {
            for attempts in ATTEMPTS {
                let mut facts = Facts::from([("retries", yes(retries)), ("interrupted", yes(interrupted))]);
                facts.insert("attempts", attempts.to_string());
                all.push((Sender::Action { retries, interrupted, attempts }, facts));
            }
        }
    }
    all
}

/// In the words of a row.
fn words(found: Disposition) -> String {
    let message = match found.message {
        ForMessage::Blocks => "blocks".to_owned(),
        ForMessage::Isolated => "isolated".to_owned(),
        ForMessage::Fails => "fails".to_owned(),
        ForMessage::Unknown => "unknown".to_owned(),
        ForMessage::Waits(wait) => {
            let after = wait.after.map_or_else(|| "-".to_owned(), |after| after.to_string());
            let outlasts = if wait.outlasts { ":outlasts" } else { "" };
            format!("waits:{}:{after}{outlasts}", wait.attempts())
        }
    };
    let relay = match found.relay {
        ForRelay::Unaffected => "unaffected",
        ForRelay::Recovers => "recovers",
        ForRelay::Continues => "continues",
        ForRelay::BacksOff => "backs_off",
        ForRelay::Rechecks => "rechecks",
        ForRelay::Halts => "halts",
    };
    let circuit = match found.circuit {
        ForCircuit::Unchanged => "unchanged",
        ForCircuit::Outage => "outage",
        ForCircuit::Closes => "closes",
    };
    format!("{message} {relay} {circuit}")
}

fn fits(pattern: &str, value: &str) -> bool {
    pattern == "*" || pattern == value || pattern.strip_prefix('!').is_some_and(|but| but != value)
}

/// What is wrong: a combination that means something else than its row says, or a row that decides none.
fn wrong(table: &str, senders: &[(Sender, Facts)]) -> Vec<String> {
    let mut rows = table.lines().filter_map(|line| line.split_once('|'));
    let columns: Vec<&str> = rows.next().expect("a head").0.split_whitespace().collect();
    let rows: Vec<(Vec<&str>, &str)> = rows.map(|(cells, then)| (cells.split_whitespace().collect(), then)).collect();
    let (mut wrong, mut used) = (Vec::new(), vec![false; rows.len()]);
    for (sender, facts) in senders {
        for (failure, of_failure) in failures() {
            let facts: Facts = facts.clone().into_iter().chain(of_failure).collect();
            let decides = |(cells, _): &(Vec<&str>, &str)| {
                assert_eq!(cells.len(), columns.len(), "{cells:?}");
                columns.iter().zip(cells).all(|(column, pattern)| fits(pattern, &facts[column]))
            };
            let Some(row) = rows.iter().position(decides) else {
                wrong.push(format!("no row for {facts:?}"));
                continue;
            };
            used[row] = true;
            let attempts = facts.get("attempts").map_or("", String::as_str);
            let says = rows[row].1.split_whitespace().collect::<Vec<_>>().join(" ");
            let says = says.replace(":n", &format!(":{attempts}"));
            let found = words(disposition(*sender, &failure));
            if found != says {
                wrong.push(format!("{sender:?} {facts:?}: {found}, and the row says: {says}"));
            }
        }
    }
    let idle = rows.iter().zip(used).filter(|(_, used)| !used);
    wrong.extend(idle.map(|((cells, _), _)| format!("decides nothing: {cells:?}")));
    wrong
}

// Guarantee: schedules.outage
// Guarantee: requests.silence
#[test]
fn every_failure_means_what_its_row_says() {
    let tables =
        [(STREAM, streams()), (REDRIVE, redrives()), (PENDING, pending()), (REQUEST, requests()), (ACTION, actions())];
    let combinations: usize = tables.iter().map(|(_, senders)| senders.len() * failures().len()).sum();
    assert_eq!(combinations, (8 + 2 + 48 + 72 + 12) * 72);
    for (table, senders) in tables {
        let wrong = wrong(table, &senders);
        assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[test]
fn planted_wrong_row_is_found() {
    let planted = STREAM.replacen("poison *       *         | isolated", "poison *       *         | blocks  ", 1);
    assert_ne!(planted, STREAM);
    assert!(!wrong(&planted, &streams()).is_empty());
    let missing: String = ACTION
        .lines()
        .filter(|line| !line.contains("retry  unknown"))
        .fold(String::new(), |all, line| all + line + "\n");
    let wrong_rows = wrong(&missing, &actions());
    assert!(!wrong_rows.is_empty() && wrong_rows.iter().all(|wrong| wrong.starts_with("no row for")), "{wrong_rows:?}");
    let twice = REDRIVE.to_owned() + "    *      fatal  *       *         | blocks   halts      closes\n";
    assert_eq!(wrong(&twice, &redrives()).len(), 1, "a row that decides nothing");
}
