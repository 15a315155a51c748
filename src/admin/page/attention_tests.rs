//! What needs attention, the worst first.

use super::*;

#[test]
fn the_worst_comes_first_with_its_sentence_and_what_to_type() {
    let mut overview = calm(2);
    overview.status.cursors.push(cursor("mails", "backing_off"));
    overview.whys.push(answer("backing_off", "The last try of mails failed.", &["Wait."]));
    overview.status.cursors.push(cursor("booking_sms", "halted"));
    let resume = "outbox-relay cursor resume booking_sms";
    overview.whys.push(answer("halted", "booking_sms is halted: run `x`.", &["Fix the template.", resume]));
    let html = page(&standing(Some(overview), None));
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}: {html}"));
    assert!(html.contains("class=\"verdict bad\""));
    assert!(at("2 of 4 need attention: 1 backing off, 1 halted") < at("booking_sms is halted: run <code>x</code>."));
    assert!(at("booking_sms is halted") < at("The last try of mails failed."));
    at(&format!("<pre data-copy><code>{resume}</code></pre>"));
    at("<a class=\"badge bad\" href=#a-3>halted</a>");
}

#[test]
fn cursors_that_the_same_steps_help_stand_together_and_commands_below_their_step() {
    let mut overview = calm(0);
    let advice = ["End its session:", "SELECT pg_terminate_backend(7);", "SELECT pg_terminate_backend(8);"];
    for n in 0..10 {
        overview.status.cursors.push(cursor(&format!("events#{n}"), "held"));
        overview.whys.push(answer("held", &format!("events#{n} is held."), &advice));
    }
    overview.status.cursors.push(cursor("mails", "held"));
    overview.whys.push(answer("held", "mails is held.", &["Wait."]));
    let html = page(&standing(Some(overview), None));
    assert_eq!(html.matches("<article").count(), 2, "{html}");
    assert!(html.contains("<span id=a-7>events#7</span><span id=a-8></span><span id=a-9></span> and 2 more"), "{html}");
    let command = |pid| format!("<pre data-copy><code>SELECT pg_terminate_backend({pid});</code></pre>");
    assert!(html.contains(&format!("<ol><li>End its session:{}{}</ol>", command(7), command(8))), "{html}");
    assert!(html.contains("<ol><li>Wait.</ol>") && html.contains("href=#a-9>held</a>"), "{html}");
}

#[test]
fn page_of_well_cursors_points_to_rows_that_wait_for_a_decision() {
    let html = page(&standing(Some(calm(1)), None));
    assert!(html.contains("<h2 id=h-attention class=none>Nothing needs attention</h2>"), "{html}");
    let mut overview = calm(1);
    overview.status.cursors[0].dead_letters = 1;
    let html = page(&standing(Some(overview), None));
    assert!(html.contains("No cursor needs attention; rows or schedules below wait for a decision"), "{html}");
}
