//! A number for what a page shows: two pages between which nothing but time has passed have the same.

use std::hash::{DefaultHasher, Hasher as _};

/// The end of the tag of what changes with the time alone: ages, and charts, which move on. No other text has these characters, because
/// all that comes from elsewhere is escaped.
const AGES: &str = " data-ages>";
/// The beginning of the charts of a cursor's stages, which are no part of the number: nor is which stages and cursors have some.
pub(super) const STAGES: &str = "<details class=stages ";

pub(super) fn of(main: &str) -> u64 {
    let mut shown = DefaultHasher::new();
    let mut rest = main;
    while let Some((before, charts)) = rest.split_once(STAGES) {
        without_ages(before, &mut shown);
        rest = charts.split_once("</details>").map_or("", |(_, after)| after);
    }
    without_ages(rest, &mut shown);
    shown.finish()
}

fn without_ages(html: &str, shown: &mut DefaultHasher) {
    let mut rest = html;
    while let Some((before, ages)) = rest.split_once(AGES) {
        shown.write(before.as_bytes());
        rest = ages.find("</").map_or("", |end| &ages[end..]);
    }
    shown.write(rest.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{STAGES, of};

    #[test]
    fn ages_do_not_count_and_all_else_does() {
        let page = |lag: &str, at: &str, ages: &str, end: &str| {
            format!("<td>{lag}</td><time datetime=\"{at}\" data-ages>{ages} ago</time><b>{end}</b>")
        };
        let version = of(&page("0.2 s", "03:00:00Z", "1.0 s", "well"));
        assert_eq!(version, of(&page("0.2 s", "03:00:00Z", "12 min", "well")));
        assert_ne!(version, of(&page("0.3 s", "03:00:00Z", "1.0 s", "well")));
        assert_ne!(version, of(&page("0.2 s", "03:00:01Z", "1.0 s", "well")));
        assert_ne!(version, of(&page("0.2 s", "03:00:00Z", "1.0 s", "halted")));
        assert_eq!(of("a data-ages>never closed"), of("a data-ages>at all"));
    }

    #[test]
    fn charts_of_stages_do_not_count_and_what_follows_them_does() {
        let page = |charts: &str, end: &str| format!("<td><i data-ages>1 s</i>{charts}</td><td>{end}</td>");
        let charts = |last: &str| format!("{STAGES}id=s-0><svg data-ages></svg><b>Queue</b>, last {last}</details>");
        let version = of(&page(&charts("0.2 s"), "12"));
        assert_eq!(version, of(&page(&charts("0.3 s"), "12")));
        assert_eq!(version, of(&page("", "12")));
        assert_ne!(version, of(&page(&charts("0.2 s"), "13")));
        assert_eq!(of(&format!("a{STAGES}never closed")), of("a"));
    }
}
