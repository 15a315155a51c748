use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use super::*;

fn said(code: i32, output: &str) -> Verified {
    let ended = Ended { status: ExitStatus::from_raw(code << 8), output: output.to_owned() };
    Verified::read("booking_events", &ended).expect("a document")
}

fn counted(code: i32, counts: &str) -> Verified {
    let document =
        format!(r#"{{"ok":false,"rows":{{"table":9,"delivered":8,"topic":7}},"counts":{counts},"notes":[]}}"#);
    said(code, &format!("reading\n{document}\n"))
}

#[test]
fn equal_sides_pass_only_if_all_rows_were_compared() {
    let equal = counted(0, "{}");
    assert_eq!(equal.verdict(8, true), Verdict::Pass);
    assert_eq!(equal.verdict(9, true), Verdict::Undecided, "a row was not looked at");
    assert_eq!(equal.line(true), "verify  booking_events: equal: 8 rows, 7 records");
}

#[test]
fn what_came_twice_is_allowed_after_a_kill_and_nothing_else_is() {
    let twice = counted(3, r#"{"twice":2}"#);
    assert_eq!((twice.verdict(8, true), twice.verdict(8, false)), (Verdict::Pass, Verdict::Fail));
    assert_eq!(twice.verdict(9, true), Verdict::Undecided);
    assert_eq!(twice.line(true), "verify  booking_events: 8 rows, 7 records, 2 twice after the kill, nothing missing");
    for kind in ["not_in_topic", "not_delivered", "not_in_table", "out_of_order", "a_new_kind"] {
        let differs = counted(3, &format!(r#"{{"twice":2,"{kind}":1}}"#));
        assert_eq!(differs.verdict(8, true), Verdict::Fail, "{kind}");
        assert!(differs.line(true).starts_with("verify  booking_events: different: "), "{}", differs.line(true));
    }
}

#[test]
fn what_could_not_be_compared_proves_nothing() {
    let failed = said(1, "error: cannot read Kafka\n  hint: start it\n");
    assert_eq!(failed.verdict(8, true), Verdict::Undecided);
    let line = "verify  booking_events: not compared, exit code 1 (error: cannot read Kafka) (  hint: start it)";
    assert_eq!(failed.line(true), line);
    for broken in [counted(3, "{}"), said(2, "usage"), said(101, "panicked")] {
        assert_eq!(broken.verdict(8, true), Verdict::Fail, "{broken:?}");
    }
}
