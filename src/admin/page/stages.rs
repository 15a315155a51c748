//! Where the time of a cursor's rows went in the last hour: a small chart for each stage.
//!
//! A few cursors have them, those that lag most, so that the page stays small. Nothing of it counts as a change of the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use super::chart::{longest, picture};
use super::lines::Line;
use super::version::STAGES;
use crate::metrics::Stage;
use crate::metrics::trail::Trail;
use crate::relay::inspect::status::in_one_unit;

/// So many cursors have these charts, which take up to 4.5 KiB each: twenty cursors are to fit into 60 KiB.
const SHOWN: usize = 4;
/// So many seconds of lag now come before all that was in the hour. Less goes up and down all the time, and what a reader has
/// opened would go away.
const NOTABLE: f64 = 1.0;

/// The charts of the cursors that lag most, now or else in the last hour, as HTML by the numbers of their lines.
pub(super) fn of_the_worst(lines: &[Line<'_>], now: Instant) -> BTreeMap<usize, String> {
    let mut ranked: Vec<(f64, f32, usize, &Trail)> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(trail) = line.trail.as_deref() else { continue };
        let Some(longest) = longest(&trail.lags(now)) else { continue };
        let lag = Some(line.lag_seconds()).filter(|lag| *lag >= NOTABLE).unwrap_or_default();
        ranked.push((lag, longest, number, trail));
    }
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1)));
    let charts = |(_, _, number, trail): (f64, f32, usize, &Trail)| Some((number, charts(number, trail, now)?));
    ranked.into_iter().filter_map(charts).take(SHOWN).collect()
}

/// A chart for each stage in which some row has spent time, all in one scale; none if there is no such stage.
fn charts(number: usize, trail: &Trail, now: Instant) -> Option<String> {
    let last = trail.last()?.stages;
    let times = Stage::ALL.map(|stage| (stage, trail.times_in(stage, now)));
    let top = times.iter().filter_map(|(_, points)| longest(points)).reduce(f32::max).filter(|top| *top > 0.0)?;
    let mut html = format!(
        "{STAGES}id=s-{number}><summary>where the time goes</summary>\
         <p class=dim>Of the slowest row that this replica followed; all charts have one scale.</p><ul>"
    );
    for (stage, points) in times.iter().filter(|(_, points)| longest(points) > Some(0.0)) {
        let (name, meaning) = words(*stage);
        let last = in_one_unit(last[*stage as usize]);
        let _ = write!(html, "<li>{}<br><b>{name}</b>, last {last}: {meaning}", picture(name, points, top));
    }
    html.push_str("</ul></details>");
    Some(html)
}

/// The name of a stage, and what a row that is in it waits for, in the words of docs/STATUS_PAGE.md.
const fn words(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::CommitWait => ("Commit wait", "created, and not seen by a poll yet"),
        Stage::HorizonHold => ("Horizon hold", "seen by a poll, and not below the horizon yet"),
        Stage::Queue => {
            ("Queue", "waiting for earlier rows, a poll, a free connection, the rate, a pause, a halt or a replica")
        }
        Stage::Publish => ("Publish", "in the turn that delivers it, or retried after a failure at the sink"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::admin::page::lines::lines;
    use crate::metrics::trail::{self, Measured};

    /// The row of a cursor was so many seconds in each stage.
    fn measure(cursor: &str, stages: [u64; 4], at: Instant) {
        let stages = stages.map(Duration::from_secs);
        let lag: Duration = stages.iter().sum();
        trail::of(cursor).measured(Measured { lag, rows: 1, stages, at });
    }

    // Guarantee: page.stages
    #[test]
    fn stages_in_which_rows_spent_time_have_a_chart_each() {
        let names = ["staged_page".to_owned()];
        let html = |now: Instant| of_the_worst(&lines(None, &names), now).remove(&0);
        drop(trail::of("staged_page"));
        let begun = Instant::now();
        assert_eq!(html(begun), None, "nothing is measured");
        measure("staged_page", [0; 4], begun);
        assert_eq!(html(begun), None, "no row was followed");
        measure("staged_page", [0, 2, 8, 0], begun);
        let later = begun + Duration::from_secs(60);
        measure("staged_page", [0, 4, 0, 0], later);
        let charts = html(later).expect("charts");
        assert!(charts.starts_with("<details class=stages id=s-0><summary>where the time goes</summary>"), "{charts}");
        assert_eq!(charts.matches("<svg ").count(), 2, "{charts}");
        for part in [
            "role=img aria-label=\"Horizon hold in the last hour: at most 4.0 s\"",
            "<path d=\"M117 24V18H118V24M119 24V12H120V24\"/>",
            "<b>Horizon hold</b>, last 4.0 s: seen by a poll, and not below the horizon yet",
            "role=img aria-label=\"Queue in the last hour: at most 8.0 s\"",
            "<path d=\"M117 24V1H118V24M119 24V23H120V24\"/>",
            "<b>Queue</b>, last 0.0 s: waiting for earlier rows",
        ] {
            assert!(charts.contains(part), "{part} is missing in {charts}");
        }
        assert_eq!(html(later + Duration::from_secs(3_600)), None, "an hour later");
    }

    // Guarantee: page.stages
    #[test]
    fn four_cursors_that_lag_most_have_charts() {
        let names: Vec<String> = (0..6).map(|n| format!("ranked_{n}")).collect();
        names.iter().for_each(|name| drop(trail::of(name)));
        let begun = Instant::now();
        let later = begun + Duration::from_secs(60);
        for (name, longest) in names.iter().zip(1..) {
            measure(name, [0, 0, longest, 0], begun);
            measure(name, [0; 4], later);
        }
        let shown = || of_the_worst(&lines(None, &names), later).into_keys().collect::<Vec<_>>();
        assert_eq!(shown(), [2, 3, 4, 5], "the longest lags of the hour");
        measure("ranked_0", [0, 0, 2, 0], later);
        assert_eq!(shown(), [0, 3, 4, 5], "what lags now comes first");
    }
}
