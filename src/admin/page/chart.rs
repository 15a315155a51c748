//! Times of the last hour as a small picture: inline SVG, as steps, because each point is the longest lag, or time in a stage, of its
//! half minute.

use std::fmt::Write as _;
use std::time::Duration;

use crate::metrics::trail::POINTS;
use crate::relay::inspect::status::in_one_unit;

const HEIGHT: f32 = 24.0;
/// A chart that shows less than this as a mountain would frighten for nothing.
const LEAST: f32 = 1.0;

/// The lag as a picture with its words; only words where nothing was measured.
pub(super) fn chart(points: &[Option<f32>; POINTS]) -> String {
    longest(points).map_or_else(unmeasured, |longest| picture("Lag", points, longest))
}

/// The lag in words, where there is no room for a picture.
pub(super) fn in_words(points: &[Option<f32>; POINTS]) -> String {
    longest(points).map_or_else(unmeasured, |longest| format!("<span class=most>{}</span>", at_most(longest)))
}

/// The longest time of all points, in seconds; none where nothing was measured.
pub(super) fn longest(points: &[Option<f32>; POINTS]) -> Option<f32> {
    points.iter().flatten().copied().reduce(f32::max)
}

/// A picture of `what` that is full at `top` seconds, with the longest time in words. It moves on with the time, which is no change of
/// the page.
pub(super) fn picture(what: &str, points: &[Option<f32>; POINTS], top: f32) -> String {
    let words = at_most(longest(points).unwrap_or_default());
    format!(
        "<svg viewBox=\"0 0 {POINTS} 24\" preserveAspectRatio=none role=img aria-label=\"{what} in the last hour: {words}\" \
         data-ages>\
         <path d=\"{}\"/></svg><span class=most aria-hidden=true>{words}</span>",
        path(points, top.max(LEAST))
    )
}

fn at_most(seconds: f32) -> String {
    format!("at most {}", in_one_unit(Duration::from_secs_f32(seconds.clamp(0.0, 1e9))))
}

fn unmeasured() -> String {
    "<span class=dim>not measured here</span>".to_owned()
}

/// From the ground up, along the steps and down again; what was not measured is a gap.
fn path(points: &[Option<f32>; POINTS], top: f32) -> String {
    let mut path = String::new();
    let mut height = None;
    for (at, point) in points.iter().enumerate() {
        let y = point.map(|lag| (HEIGHT - 1.0 - (HEIGHT - 2.0) * (lag / top).clamp(0.0, 1.0)).round());
        if y == height {
            continue;
        }
        let _ = match (height, y) {
            (None, Some(y)) => write!(path, "M{at} 24V{y}"),
            (Some(_), Some(y)) => write!(path, "H{at}V{y}"),
            (Some(_), None) => write!(path, "H{at}V24"),
            (None, None) => Ok(()),
        };
        height = y;
    }
    if height.is_some() {
        let _ = write!(path, "H{POINTS}V24");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_steps_with_gaps_and_says_its_highest_point_in_words() {
        let mut points = [None; POINTS];
        assert!(!chart(&points).contains("<svg"));
        assert_eq!(in_words(&points), chart(&points));
        (points[0], points[1], points[2], points[119]) = (Some(0.0), Some(0.0), Some(10.0), Some(5.0));
        let html = chart(&points);
        assert!(html.contains("d=\"M0 24V23H2V1H3V24M119 24V12H120V24\""), "{html}");
        assert!(html.contains("aria-label=\"Lag in the last hour: at most 10 s\""), "{html}");
        assert_eq!(in_words(&points), "<span class=most>at most 10 s</span>");
    }

    #[test]
    fn a_calm_hour_is_short_and_looks_calm() {
        let html = chart(&[Some(0.01); POINTS]);
        assert!(html.contains("d=\"M0 24V23H120V24\"") && html.len() < 250, "{html}");
        assert!(chart(&[Some(f32::INFINITY); POINTS]).contains("at most"), "no panic");
    }
}
