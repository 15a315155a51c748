//! The figures that README.md quotes are those of the last measurement in benches/results.

use crate::{read, section};

/// The median of a row of the results, below the heading of its part.
fn median(results: &str, part: &str, row: &str) -> String {
    let (_, rest) = results.split_once(&format!("| **{part}")).unwrap_or_else(|| panic!("no part {part}"));
    let line = rest
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with("| **"))
        .find(|line| line.split('|').nth(1).is_some_and(|name| name.trim() == row));
    line.unwrap_or_else(|| panic!("no row {row} of {part}")).split('|').nth(2).expect("a median").trim().to_owned()
}

#[test]
fn readme_quotes_the_last_results() {
    let (readme, results) = (read("README.md"), read("benches/results/README.md"));
    let compared = section(&readme, "Compared").split_whitespace().collect::<Vec<_>>().join(" ");
    for (part, row, unit) in
        [("text, 200 B: 1,500,000 rows, one cursor", "relay", "rows/s"), ("latency at 1,000 rows/s", "p50", "ms")]
    {
        let quoted = format!("**{} {unit}**", median(&results, part, row));
        assert!(compared.contains(&quoted), "README.md does not quote {quoted} of benches/results, {part}");
    }
}
