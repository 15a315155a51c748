//! The judge convicts of each fault alone, and acquits without it.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_micros(second * 1_000_000)
}

fn entry(relay: &str, id: &str, status: &str) -> Entry {
    Entry { relay: relay.to_owned(), about: format!("about {id}"), id: id.to_owned(), status: status.to_owned() }
}

fn message(id: &str, accepted: bool, answered: bool) -> Message {
    Message { id: id.to_owned(), body: "hello".to_owned(), at: at(10), accepted, answered }
}

fn told(id: &str, status: &str, second: i64) -> Told {
    let already_sent = status == "completed";
    Told { about: format!("about {id}"), id: id.to_owned(), status: status.to_owned(), already_sent, at: at(second) }
}

fn ids(ids: &[&str]) -> HashSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// A play: two mails, one of them in doubt and sent again; two texts, one of them lost and listed.
struct Play {
    ledger: Ledger,
    told: Vec<Told>,
    later: Vec<Told>,
    mails: Vec<Message>,
    texts: Vec<Message>,
}

impl Play {
    fn honest() -> Self {
        let entries = vec![
            entry("mails", "m1", "completed"),
            entry("mails", "m2", "completed"),
            entry("texts", "t1", "completed"),
            entry("texts", "t2", "unknown"),
        ];
        Self {
            told: entries.iter().flat_map(|entry| vec![told(&entry.id, "pending", 5); 3]).collect(),
            later: entries.iter().map(|entry| told(&entry.id, &entry.status, 50)).collect(),
            ledger: Ledger { entries, unknown: ids(&["t2"]), ambiguous: ids(&["m2", "t2"]) },
            mails: vec![message("m1", true, true), message("m2", true, false), message("m2", true, true)],
            texts: vec![message("t1", true, true), message("t2", false, false)],
        }
    }

    fn judged(&self) -> (Asked, Sent, Sent, Verdict) {
        let both: Vec<&Message> = self.mails.iter().chain(&self.texts).collect();
        let asked = self.ledger.asked(self.told.len(), &self.told, &self.later, &both);
        let (mails, texts) = (self.ledger.sent("mails", &self.mails), self.ledger.sent("texts", &self.texts));
        let verdict = verdict(&asked, &mails, &texts);
        (asked, mails, texts, verdict)
    }
}

#[test]
fn mails_under_one_key_with_one_body_and_texts_that_came_once_or_are_listed_pass() {
    let (asked, mails, texts, verdict) = Play::honest().judged();
    assert_eq!(asked, Asked { calls: 12, keys: 4, requests: 4, ..Asked::default() });
    let mail = Sent { requests: 2, completed: 2, accepted: 2, repeated: 1, in_doubt: 1, ..Sent::default() };
    assert_eq!(mails, mail);
    let text = Sent { requests: 2, completed: 1, unknown: 1, accepted: 1, missing: 1, in_doubt: 1, ..Sent::default() };
    assert_eq!((texts, verdict), (text, Verdict::Pass));
}

#[test]
fn nothing_asked_for_proves_nothing() {
    let mut play = Play::honest();
    play.ledger.entries.retain(|entry| entry.relay == "mails");
    assert_eq!(play.judged().3, Verdict::Undecided);
}

#[test]
fn a_text_that_came_twice_is_convicted_even_when_it_is_listed() {
    let mut play = Play::honest();
    play.texts.push(message("t1", true, true));
    play.ledger.ambiguous.insert("t1".to_owned());
    let (_, _, texts, verdict) = play.judged();
    assert_eq!((texts.repeated, texts.unexplained, verdict), (1, 0, Verdict::Fail));
}

#[test]
fn a_repeated_mail_that_is_not_listed_is_convicted() {
    let mut play = Play::honest();
    play.mails.push(message("m1", true, true));
    let (_, mails, _, verdict) = play.judged();
    assert_eq!((mails.repeated, mails.unexplained, verdict), (2, 1, Verdict::Fail));
}

#[test]
fn two_bodies_under_one_key_are_convicted_also_when_only_one_was_accepted() {
    for accepted in [true, false] {
        let mut play = Play::honest();
        play.mails[1] = Message { body: "good bye".to_owned(), ..message("m2", accepted, false) };
        let (_, mails, _, verdict) = play.judged();
        assert_eq!((mails.two_bodies, verdict), (1, Verdict::Fail));
    }
}

#[test]
fn a_missing_text_that_is_not_listed_is_convicted_and_a_missing_mail_always() {
    let mut unlisted = Play::honest();
    unlisted.ledger.unknown.clear();
    let (_, _, texts, verdict) = unlisted.judged();
    assert_eq!((texts.missing, texts.unlisted, verdict), (1, 1, Verdict::Fail));
    let mut missing = Play::honest();
    missing.mails.truncate(1);
    missing.ledger.unknown.insert("m2".to_owned());
    let (_, mails, _, verdict) = missing.judged();
    assert_eq!((mails.missing, mails.unlisted, verdict), (1, 0, Verdict::Fail));
}

#[test]
fn a_doubt_that_is_not_listed_is_convicted_though_nothing_is_repeated_or_missing() {
    let mut play = Play::honest();
    play.texts[0].answered = false;
    let (_, _, texts, verdict) = play.judged();
    assert_eq!((texts.in_doubt, texts.hidden, verdict), (2, 1, Verdict::Fail));
}

#[test]
fn a_message_of_no_request_and_a_request_that_has_not_ended_are_convicted() {
    let mut phantom = Play::honest();
    phantom.mails.push(message("rolled back", true, true));
    let (_, mails, _, verdict) = phantom.judged();
    assert_eq!((mails.phantom, verdict), (1, Verdict::Fail));
    for status in ["pending", "processing", "failed"] {
        let mut open = Play::honest();
        open.ledger.entries[0].status = status.to_owned();
        open.later[0] = told("m1", status, 50);
        let (_, mails, _, verdict) = open.judged();
        assert_eq!((mails.open, verdict), (1, Verdict::Fail), "{status}");
    }
}

#[test]
fn two_requests_for_one_key_are_convicted_in_the_ledger_and_by_what_callers_were_told() {
    let mut made = Play::honest();
    made.ledger.entries.push(Entry { about: "about m1".to_owned(), ..entry("mails", "m3", "completed") });
    made.mails.push(message("m3", true, true));
    let (asked, _, _, verdict) = made.judged();
    assert_eq!((asked.keys, asked.requests, asked.split, verdict), (4, 5, 1, Verdict::Fail));
    let mut told_of = Play::honest();
    told_of.told.push(Told { id: "m3".to_owned(), ..told("m1", "pending", 5) });
    let (asked, _, _, verdict) = told_of.judged();
    assert_eq!((asked.split, verdict), (1, Verdict::Fail));
}

#[test]
fn a_caller_that_is_told_sent_too_early_or_something_else_later_is_convicted() {
    for (second, premature) in [(9, 1), (10, 0)] {
        let mut play = Play::honest();
        play.told.push(told("m1", "completed", second));
        let (asked, _, _, verdict) = play.judged();
        assert_eq!((asked.premature, verdict == Verdict::Pass), (premature, premature == 0));
    }
    let spoil: [fn(&mut Vec<Told>); 3] = [
        |later| later[0].already_sent = false,
        |later| later[3].status = "completed".to_owned(),
        |later| later.truncate(3),
    ];
    for spoil in spoil {
        let mut play = Play::honest();
        spoil(&mut play.later);
        let (asked, _, _, verdict) = play.judged();
        assert_eq!((asked.wrong, verdict), (1, Verdict::Fail));
    }
}
