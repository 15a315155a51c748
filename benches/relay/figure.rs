//! What is made of several measurements of one thing.

use serde_json::{Value, json};

/// The median; not a number when there is none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        len if len.is_multiple_of(2) => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
        len => sorted[len / 2],
    }
}

/// The value that the part `p` of all do not exceed; sorts them.
pub fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * p).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// One value of each.
pub fn each<T>(all: &[T], value: impl Fn(&T) -> f64) -> Vec<f64> {
    all.iter().map(value).collect()
}

/// The median of one value of each.
pub fn median_of<T>(all: &[T], value: impl Fn(&T) -> f64) -> f64 {
    median(&each(all, value))
}

/// For the document: whole numbers above a thousand, below it more digits than anybody prints, who would round twice otherwise.
pub fn rounded(value: f64) -> Value {
    if value >= 1_000.0 { json!(value.round() as i64) } else { json!((value * 1e5).round() / 1e5) }
}

/// The same of each.
pub fn runs(values: &[f64]) -> Vec<Value> {
    values.iter().map(|value| rounded(*value)).collect()
}

/// Bytes as MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
