//! A constant-size summary of a multiset of row ids, and the comparison of two such summaries.
//! A [`Sums`] holds a count and twelve power sums over the prime field GF(p), p = 2^61 - 1. Those of the
//! delivered ids and of the table's ids are subtracted; what is in both cancels. The method is set reconciliation after Minsky, Trachtenberg
//! and Zippel (2003), here with power sums: Newton's identities turn them into the power series of a rational function whose numerator stands
//! for the ids that are only in the table and whose denominator stands for the ids that were only delivered. The function is recovered as a
//! Padé approximant by the extended Euclidean algorithm, and its roots are the hashes of the ids.

use siphasher::sip::SipHasher13;

#[cfg(test)]
#[path = "sums_tests.rs"]
mod tests;

/// Number of power sums that are taken.
pub(super) const SUMS: usize = 12;

/// The largest number of differing elements that is ever named. The three sums beyond it check every answer.
pub(super) const MOST_DIFFERING: usize = SUMS - 3;
/// Length in bytes of stored sums.
pub(super) const STORED_BYTES: usize = 8 * (1 + SUMS);

/// The Mersenne prime 2^61 - 1. Reduction by it needs only a shift and an addition.
const PRIME: u64 = (1 << 61) - 1;
/// The fixed hash key. Stored sums depend on it, so it must never change. It is not a secret.
const KEY: (u64, u64) = (0x736b_6574_6368_2d31, 0x7265_6c61_792d_6964);

/// The element, 1 to p - 1, that stands for an id: `SipHash-1-3` of its UTF-8 bytes, reduced.
/// Sums are stored, so this function must give the same values in every release.
#[must_use]
pub fn element(id: &str) -> u64 {
    let hash = SipHasher13::new_with_keys(KEY.0, KEY.1).hash(id.as_bytes());
    // Zero is left out because its power sums are all zero: it would leave no trace.
    hash % (PRIME - 1) + 1
}

/// A summary of a multiset of elements. An element added twice counts twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sums {
    /// Number of elements added.
    rows: u64,
    /// At index k - 1, the sum of the k-th powers of the elements, modulo p.
    sums: [u64; SUMS],
}

impl Sums {
    /// Adds one element, as returned by [`element`].
    pub fn add(&mut self, element: u64) {
        let first = reduce(element);
        let second = multiply(first, first);
        // Odd and even powers are two separate chains, so that the processor can overlap them.
        let (mut odd, mut even) = (first, second);
        for [odd_sum, even_sum] in self.sums.as_chunks_mut::<2>().0 {
            *odd_sum = plus(*odd_sum, odd);
            *even_sum = plus(*even_sum, even);
            odd = multiply(odd, second);
            even = multiply(even, second);
        }
        self.rows = self.rows.saturating_add(1);
    }

    /// How many elements were added.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// What is left of it without elements that were added to it.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        let mut left = self.clone();
        for (sum, less) in left.sums.iter_mut().zip(others.sums) {
            *sum = minus(*sum, less);
        }
        left.rows = left.rows.wrapping_sub(others.rows);
        left
    }

    /// Adds all elements of others.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum = plus(*sum, more);
        }
        self.rows = self.rows.wrapping_add(other.rows);
    }

    /// The stored form: the count and then the sums, each as 8 bytes, big endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        std::iter::once(self.rows).chain(self.sums).flat_map(u64::to_be_bytes).collect()
    }

    /// Reads the stored form. `None` if the length is wrong or a sum is not below p.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; STORED_BYTES] = bytes.try_into().ok()?;
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word));
        let rows = words.next()?;
        let mut sums = [0; SUMS];
        for sum in &mut sums {
            *sum = words.next().filter(|value| *value < PRIME)?;
        }
        Some(Self { rows, sums })
    }
}

/// The outcome of [`compare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both are the same.
    Equal,
    /// At most nine elements differ, and these are known.
    Differs(Difference),
    /// More elements differ than can be told, or the two do not fit together.
    TooMany,
}

/// The elements in which the table and the delivered rows differ, as roots of two polynomials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The product of (1 - a z) over the elements a that are only in the table.
    missing: Polynomial,
    /// The product of (1 - b z) over the elements b that were only delivered.
    gone: Polynomial,
}

impl Difference {
    /// Number of elements that are in the table and were not delivered.
    /// An element that is in the table more often than it was delivered counts by the surplus.
    #[must_use]
    pub fn missing(&self) -> usize {
        degree(&self.missing)
    }

    /// Number of elements that were delivered and are not in the table any more.
    #[must_use]
    pub fn gone(&self) -> usize {
        degree(&self.gone)
    }

    /// Whether an element of the table was not delivered.
    /// The caller walks the ids of the table again and collects those for which this holds. It must find exactly
    /// [`missing`](Self::missing) of them; see [`confirms`](Self::confirms).
    #[must_use]
    pub fn is_missing(&self, element: u64) -> bool {
        is_root(&self.missing, element)
    }

    /// Whether an element was delivered and is not in the table any more.
    #[must_use]
    pub fn is_gone(&self, element: u64) -> bool {
        is_root(&self.gone, element)
    }

    /// Whether the elements that the caller found are exactly the missing ones, each as often as it is missing.
    /// If not, the difference is not to be believed, and neither is its count of gone elements. This is so when the
    /// table changed between the two walks, when two ids of the table have the same hash, or when an id occurs
    /// several times and only some of its rows were delivered: one row then cannot be told from the other.
    #[must_use]
    pub fn confirms(&self, found: &[u64]) -> bool {
        // The length comes first because multiplying out a long list takes quadratic time.
        let multiply_out = |product: Polynomial, element: &u64| times(&product, &[1, minus(0, reduce(*element))]);
        found.len() == self.missing() && found.iter().fold(vec![1], multiply_out) == self.missing
    }
}

/// Tells which elements are in the table and were not delivered, and which the other way round.
/// Both must cover the same slice of the table.
// A wrong `Differs` needs more than 9 differing elements whose series equals that of a smaller difference. Up to 15
// this is impossible: two fractions with the same surplus then differ in a coefficient up to z^12. Beyond, about p^9
// of the p^12 possible series belong to a difference of up to 9, so hashes that behave as random ones hit one with a
// chance of about p^-3, or 2^-183. Apart from this, a missing and a gone id with the same hash cancel out and leave
// no trace, which no number of sums can prevent: 2^-61 for each pair of a missing and a gone id.
#[must_use]
pub fn compare(delivered: &Sums, table: &Sums) -> Comparison {
    if delivered == table {
        return Comparison::Equal;
    }
    let differences = std::array::from_fn(|index| minus(table.sums[index], delivered.sums[index]));
    let surplus = i128::from(table.rows) - i128::from(delivered.rows);
    let series = series(&differences);
    match approximant(&series, surplus, MOST_DIFFERING) {
        Some(difference) if fits(&difference, &series) => Comparison::Differs(difference),
        _ => Comparison::TooMany,
    }
}

/// Coefficients modulo p, the constant term first, without zeros at the end.
type Polynomial = Vec<u64>;

/// The power series exp(-Σ `d_k` `z^k` / k) up to `z^SUMS`, by Newton's identities.
fn series(differences: &[u64; SUMS]) -> Polynomial {
    let mut series = vec![1];
    for order in 1..=SUMS {
        let terms = differences.iter().zip(series.iter().rev());
        let sum = terms.fold(0, |sum, (difference, term)| plus(sum, multiply(*difference, *term)));
        let divisor = u64::try_from(order).map_or(0, inverse);
        series.push(minus(0, multiply(sum, divisor)));
    }
    series
}

/// The Padé approximant of the series whose degrees differ by `surplus` and sum to at most `most`.
/// The extended Euclidean algorithm on z^(SUMS + 1) and the series passes through every reduced fraction that fits
/// the series. The difference of the degrees falls from row to row, so at most one row has the wanted one: the answer
/// is unique and thereby the smallest.
fn approximant(series: &[u64], surplus: i128, most: usize) -> Option<Difference> {
    let modulus = [vec![0; SUMS + 1], vec![1]].concat();
    let (mut before, mut row) = ((modulus, vec![]), (trimmed(series.to_vec()), vec![1]));
    while let Some(leading) = row.0.last() {
        let (numerator, denominator) = (degree(&row.0), degree(&row.1));
        let excess = i128::try_from(numerator).ok()? - i128::try_from(denominator).ok()?;
        if excess <= surplus {
            let wanted = excess == surplus && numerator + denominator <= most;
            let constant = row.1.first().filter(|constant| wanted && **constant != 0)?;
            let factor = [inverse(*constant)];
            return Some(Difference { missing: times(&row.0, &factor), gone: times(&row.1, &factor) });
        }
        let inverted = inverse(*leading);
        while let Some(shift) = before.0.len().checked_sub(row.0.len()) {
            let factor = before.0.last().map_or(0, |leading| minus(0, multiply(*leading, inverted)));
            before.0 = plus_shifted(before.0, &row.0, factor, shift);
            before.1 = plus_shifted(before.1, &row.1, factor, shift);
        }
        std::mem::swap(&mut before, &mut row);
    }
    None
}

/// Whether numerator = denominator × series holds for all coefficients up to `z^SUMS`.
fn fits(difference: &Difference, series: &[u64]) -> bool {
    let mut product = times(&difference.gone, series);
    product.truncate(SUMS + 1);
    trimmed(product) == difference.missing
}

/// Whether (1 - element z) divides a polynomial with the constant term 1.
fn is_root(polynomial: &[u64], element: u64) -> bool {
    // The root is 1 / element. Coefficients taken in reverse avoid the inversion.
    let element = reduce(element);
    polynomial.iter().fold(0, |value, term| plus(multiply(value, element), *term)) == 0
}

fn degree(polynomial: &[u64]) -> usize {
    polynomial.len().saturating_sub(1)
}

fn trimmed(mut polynomial: Polynomial) -> Polynomial {
    while polynomial.pop_if(|term| *term == 0).is_some() {}
    polynomial
}

fn times(left: &[u64], right: &[u64]) -> Polynomial {
    let terms = left.iter().enumerate();
    terms.fold(vec![], |product, (shift, factor)| plus_shifted(product, right, *factor, shift))
}

/// left + factor × z^shift × right
fn plus_shifted(mut left: Polynomial, right: &[u64], factor: u64, shift: usize) -> Polynomial {
    left.resize(left.len().max(right.len() + shift), 0);
    for (term, other) in left.iter_mut().skip(shift).zip(right) {
        *term = plus(*term, multiply(factor, *other));
    }
    trimmed(left)
}

/// The inverse modulo p as the power p - 2 (Fermat). Zero gives zero.
fn inverse(value: u64) -> u64 {
    // Of the 61 bits of p - 2, only the second lowest is not set.
    (0..61).rev().fold(1, |power, bit| {
        let square = multiply(power, power);
        if bit == 1 { square } else { multiply(square, value) }
    })
}

/// The product modulo p, for factors below p.
fn multiply(left: u64, right: u64) -> u64 {
    // Eight times the product: the quotient by 2^61 is then the upper word. No conversion can fail.
    let product = u128::from(left << 3) * u128::from(right);
    let high = u64::try_from(product >> 64).unwrap_or(0);
    let low = u64::try_from(product & u128::from(u64::MAX)).unwrap_or(0) >> 3;
    below(high + low)
}

fn plus(left: u64, right: u64) -> u64 {
    below(left + right)
}

fn minus(left: u64, right: u64) -> u64 {
    below(left + (PRIME - right))
}

/// Any number modulo p, using that 2^61 is 1 modulo p.
fn reduce(value: u64) -> u64 {
    below((value & PRIME) + (value >> 61))
}

/// A number below 2 p modulo p. A difference below zero wraps to a large number, so the minimum needs no branch.
fn below(value: u64) -> u64 {
    value.min(value.wrapping_sub(PRIME))
}
