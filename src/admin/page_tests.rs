use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::value::RawValue;

use super::*;
use crate::admin::board::{Seen, Trouble};
use crate::cursor::replicas::{Relay, Replica};
use crate::metrics::trail::{self, Measured};
use crate::relay::engine::replicas::Fleet;
use crate::relay::inspect::explain::Why;
use crate::relay::inspect::overview::Overview;
use crate::relay::inspect::status::{CursorStatus, HolderStatus, PositionStatus, SinkStatus, Status};

#[path = "page/attention_tests.rs"]
mod attention_tests;

const HOSTILE: &str = "<script>alert(1)</script>\"'&`\u{1b}";

fn cursor(name: &str, state: &'static str) -> CursorStatus {
    CursorStatus {
        name: name.to_owned(),
        relay: name.to_owned(),
        exists: true,
        state,
        position: PositionStatus { created_at: None, id: Some("value-of-a-row".to_owned()) },
        lag_seconds: Some(0.2),
        backlog_rows: Some(12),
        backlog_capped: Some(false),
        holder: Some(HolderStatus { replica: "outbox-relay-5d8f9c7b6d-x2x4z".to_owned(), pid: Some(7) }),
        advanced_at: Some("2026-11-26T03:00:00Z".to_owned()),
        horizon: None,
        sink: SinkStatus { kind: Some("kafka"), circuit: "closed", opened_at: None },
        clock_step: None,
        open_work: None,
        last_error: None,
        paused: false,
        halted: false,
        by_check: false,
        held: false,
        late_rows: 0,
        dead_letters: 0,
        parked_keys: 0,
        unknown_outcomes: 0,
        unknown_keys: RawValue::from_string("[[\"key-of-a-row\"]]".to_owned()).expect("JSON"),
    }
}

fn answer(reason: &'static str, sentence: &str, advice: &[&str]) -> Why {
    let advice = advice.iter().map(|text| (*text).to_owned()).collect();
    Why { reason, well: reason == "moving", sentence: sentence.to_owned(), advice, instead: Vec::new() }
}

fn replica(id: &str, relays: usize) -> Replica {
    let at = Timestamp::parse_rfc3339("2026-11-25T03:00:00Z").expect("valid");
    let relay =
        |n| Relay { name: format!("booking_events_{n}"), config_hash: "0123456789abcdef".to_owned(), refused: None };
    Replica {
        instance: id.to_owned(),
        id: id.to_owned(),
        version: "0.1.0".to_owned(),
        started_at: at,
        seen_at: at,
        stopped_at: None,
        live: true,
        relays: (0..relays).map(relay).collect(),
        unreadable: None,
    }
}

/// So many cursors, all of them well.
pub(in crate::admin) fn calm(cursors: usize) -> Overview {
    let names = (0..cursors).map(|n| format!("booking_events_{n}"));
    let fleet =
        Fleet { replicas: (0..3).map(|n| replica(&format!("relay-{n}"), cursors)).collect(), unwritten: Vec::new() };
    let cursors: Vec<CursorStatus> = names.map(|name| cursor(&name, "running")).collect();
    let sentence = |name| format!("{name} is moving (last advanced 0.2 s ago); 12 rows wait, the oldest for 0.2 s.");
    Overview {
        whys: cursors.iter().map(|cursor| answer("moving", &sentence(&cursor.name), &[])).collect(),
        status: Status {
            version: "0.1.0",
            schema_version: 13,
            observed_at: "2026-11-26T03:00:01Z".to_owned(),
            cursors,
            actions: Vec::new(),
            replicas: Vec::new(),
            fleet,
        },
        schedules: Vec::new(),
    }
}

fn standing(overview: Option<Overview>, trouble: Option<Trouble>) -> Standing {
    Standing { seen: overview.map(Seen::now), trouble }
}

fn page(standing: &Standing) -> String {
    rendered(standing, Instant::now()).html
}

fn rendered(standing: &Standing, now: Instant) -> Page {
    let configured = ["booking_events_0".to_owned(), HOSTILE.to_owned()];
    let missing = [];
    render(&View { standing, replica: "relay-1", configured: &configured, missing: &missing, is_alive: true, now })
}

/// The page of so many cursors whose times changed with each half minute of an hour: the longest charts that there can be.
fn restless(name: &str, cursors: usize) -> String {
    let mut overview = calm(cursors);
    for (n, cursor) in overview.status.cursors.iter_mut().enumerate() {
        cursor.name = format!("{name}_{n}");
        let trail = trail::of(&cursor.name);
        for half in 0..trail::POINTS as u64 {
            let lag = Duration::from_secs(if half == 0 { 20 } else { 5 + half % 2 * 4 });
            let at = Instant::now() + Duration::from_secs(half * 30);
            trail.measured(Measured { lag, rows: 1, stages: [lag; 4], at });
        }
    }
    rendered(&standing(Some(overview), None), Instant::now() + Duration::from_secs(3_570)).html
}

// Guarantee: page.small
#[test]
fn a_calm_page_says_so_and_twenty_cursors_fit_into_60_kib() {
    let html = restless("booking_twenty", 20);
    assert!(
        html.contains("<strong>All 20 cursors are well</strong>") && html.contains("Nothing needs attention"),
        "{html}"
    );
    assert!(html.len() <= 60 << 10, "{} bytes", html.len());
    assert!(!html.contains("of-a-row"), "ids and keys of rows are no part of the page");
    assert_eq!(html.matches(" role=img ").count(), 20 + 4 * 4, "the lag of all, and the stages of four");
    assert_eq!(html.matches("H119V13H120V24\"/>").count(), 20 + 4 * 4, "each is an hour long: {html}");
}

#[test]
fn texts_of_others_are_never_markup() {
    let mut overview = calm(0);
    let mut hostile = cursor(HOSTILE, "held");
    hostile.holder = Some(HolderStatus { replica: HOSTILE.to_owned(), pid: None });
    (hostile.dead_letters, hostile.unknown_outcomes, hostile.late_rows, hostile.parked_keys) = (1, 1, 1, 1);
    overview.status.cursors.push(hostile);
    let resume = format!("outbox-relay cursor resume {HOSTILE}");
    overview.whys.push(answer("held", &format!("{HOSTILE} is held by {HOSTILE}."), &[HOSTILE, &resume]));
    overview.status.fleet.replicas = vec![Replica { version: HOSTILE.to_owned(), ..replica(HOSTILE, 1) }];
    overview.status.fleet.replicas[0].relays[0].config_hash = HOSTILE.to_owned();
    overview.status.fleet.unwritten = vec![HOSTILE.to_owned()];
    let trouble = Trouble { silent: false, what: HOSTILE.to_owned(), fix: HOSTILE.to_owned() };
    for standing in [standing(Some(overview), Some(trouble.clone())), standing(None, Some(trouble))] {
        let html = page(&standing);
        assert!(
            !html.contains("<script>") && !html.contains("alert(1)</script>") && !html.contains('\u{1b}'),
            "{html}"
        );
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"), "{html}");
        assert!(!html.contains("data-copy"), "a name that a shell would obey is in no command to copy");
    }
}

/// A row decides how long an error is, and a request how long a schedule's name.
#[test]
fn texts_of_a_megabyte_make_no_large_page() {
    let long = "<é ".repeat(1 << 18);
    let mut overview = calm(0);
    for state in ["halted", "running"] {
        let mut cursor = cursor(&long, state);
        cursor.holder = Some(HolderStatus { replica: long.clone(), pid: None });
        cursor.dead_letters = 1;
        overview.status.cursors.push(cursor);
        let resume = format!("outbox-relay cursor resume {}", "x".repeat(1 << 20));
        let reason = if state == "halted" { "halted" } else { "moving" };
        overview.whys.push(answer(reason, &format!("halted: {long}"), &[&long, &resume]));
    }
    overview.whys[0].instead = vec![long.clone()];
    let mut replica = Replica { version: long.clone(), ..replica(&long, 1) };
    (replica.relays[0].name, replica.relays[0].config_hash) = (long.clone(), long.clone());
    overview.status.fleet.replicas = vec![replica.clone(), Replica { unreadable: Some(long.clone()), ..replica }];
    overview.status.fleet.unwritten = vec![long.clone()];
    let trouble = Trouble { silent: false, what: long.clone(), fix: long.clone() };
    let standing = standing(Some(overview), Some(trouble));
    let (configured, missing, now) = ([long.clone()], [long.clone()], Instant::now());
    let html = render(&View {
        standing: &standing,
        replica: &long,
        configured: &configured,
        missing: &missing,
        is_alive: true,
        now,
    })
    .html;
    assert!(html.contains("halted: &lt;é ") && html.contains('…'), "what is cut says so");
    assert!(html.len() < 200 << 10, "{} bytes", html.len());
    assert!(!html.contains("data-copy"), "half a command is none");
}

#[test]
fn without_the_database_the_page_says_so_and_shows_what_this_process_knows() {
    let trouble = Trouble { silent: true, what: "connect_failed".to_owned(), fix: "See the log.".to_owned() };
    let html = page(&standing(None, Some(trouble.clone())));
    assert!(html.contains("<strong>PostgreSQL does not answer</strong>") && html.contains("connect_failed"), "{html}");
    assert!(html.contains("<th role=rowheader scope=row>booking_events_0</th>"), "{html}");
    assert!(!html.contains("Nothing needs attention"), "that is not known: {html}");
    let html = page(&standing(Some(calm(2)), Some(trouble)));
    assert!(!html.contains("Nothing needs attention"), "nor by what was seen last: {html}");
    assert!(
        html.contains("<strong>PostgreSQL does not answer</strong>") && html.contains("Seen <span data-ages>"),
        "{html}"
    );
    assert!(html.contains("booking_events_1"), "what was seen last stays");
}

// Guarantee: page.live
#[test]
fn time_that_passes_is_no_change_of_the_page() {
    let held_for = |seconds: u64| {
        let (lag, at) = (Duration::from_secs(5), Instant::now());
        let stages = [0, seconds, 5 - seconds, 0].map(Duration::from_secs);
        trail::of("bills").measured(Measured { lag, rows: 1, stages, at });
    };
    let version = |ages: u64, change: fn(&mut Overview)| {
        let mut overview = calm(0);
        overview.status.cursors.push(cursor("bills", "paused"));
        overview.whys.push(answer("paused", "bills is paused.", &["outbox-relay cursor resume bills"]));
        overview.status.fleet.replicas = vec![replica("relay-1", 1)];
        overview.status.observed_at = format!("2026-11-26T03:00:{ages:02}Z");
        change(&mut overview);
        let standing = standing(Some(overview), None);
        let now = Instant::now() + Duration::from_secs(ages);
        let page = rendered(&standing, now);
        assert!(page.html.contains(&format!("<main id=main data-version={:016x}>", page.version)), "{}", page.html);
        assert!(page.html.contains("<summary>where the time goes</summary>"), "{}", page.html);
        page.version
    };
    held_for(0);
    let first = version(1, |_| {});
    held_for(3);
    assert_eq!(version(50, |_| {}), first, "nor is a chart that moves on, or of one more stage");
    assert_ne!(version(1, |overview| overview.status.cursors[0].dead_letters = 1), first);
    assert_ne!(version(1, |overview| overview.status.cursors[0].lag_seconds = Some(0.4)), first);
    assert_ne!(version(1, |overview| overview.status.fleet.replicas[0].started_at = later()), first);
    assert_ne!(version(1, |overview| overview.status.cursors[0].advanced_at = Some(later().to_string())), first);
}

fn later() -> Timestamp {
    Timestamp::parse_rfc3339("2026-11-25T03:00:07Z").expect("valid")
}

// Guarantee: page.small
#[test]
fn a_thousand_cursors_are_rendered() {
    let standing = standing(Some(calm(1_000)), None);
    let html = page(&standing);
    assert_eq!(html.matches("<tr role=row><th role=rowheader").count(), 1_003);
    assert!(html.len() <= 1 << 20, "{} bytes", html.len());
    // Of this thread's processor time, whatever else runs; an optimized build takes a tenth of it and less.
    let spent = || clock_gettime(ClockId::ThreadCPUTime);
    let begun = spent();
    page(&standing);
    let spent = spent();
    let took = (spent.tv_sec - begun.tv_sec) * 1_000 + (spent.tv_nsec - begun.tv_nsec) / 1_000_000;
    assert!(took < 500, "{took} ms");
    println!("{took} ms for a thousand cursors, {} bytes", html.len());
}

// Guarantee: page.small
#[test]
fn a_thousand_restless_cursors_fit_into_1_mib() {
    let html = restless("booking_crowds", 1_000);
    assert!(html.len() <= 1 << 20, "{} bytes", html.len());
    let pictures = html.matches("aria-label=\"Lag in the last hour: ").count();
    assert!((200..1_000).contains(&pictures), "{pictures} pictures");
    assert_eq!(html.matches("<span class=most>at most 20 s</span>").count(), 1_000 - pictures, "the others in words");
}
