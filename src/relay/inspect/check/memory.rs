//! Whether the rows that relays may read fit into the memory that this process may have, and whether the newest rows may be read.

use std::path::Path;

use super::Readable;
use crate::database::{Error, Session, Sessions};
use crate::relay::Config;
use crate::source::finding::{Finding, Level};

/// What a process takes without large rows, in bytes.
const IDLE: u64 = 96 << 20;
/// How often a row stands in memory while a turn passes it on, at most: as it was read, as it is kept, as it is sent.
const COPIES: u64 = 3;
/// Version 1 writes a number of this size for no limit.
const UNLIMITED: u64 = 1 << 60;

/// Compares the rows of all turns that may run at the same time with the limit of this process's control group; none without
/// a limit.
pub(super) fn limit(sessions: &Sessions, relays: &[Config]) -> Option<Finding> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let rows = relays.iter().map(|relay| relay.turn.max_row_bytes as u64).collect();
    judge(smallest(Path::new("/sys/fs/cgroup"), &groups)?, sessions.slots(), rows)
}

/// `rows`: the largest row of each relay.
fn judge(limit: u64, slots: usize, mut rows: Vec<u64>) -> Option<Finding> {
    rows.sort_unstable_by(|one, other| other.cmp(one));
    rows.truncate(slots);
    let largest = rows.first()?;
    let needed = IDLE + rows.iter().map(|bytes| bytes.saturating_mul(COPIES)).fold(0, u64::saturating_add);
    let message = format!(
        "{} turns at a time, each with a row of max_row_bytes (up to {} MiB), take about {} MiB; the memory limit here is {} MiB",
        rows.len(),
        largest.div_ceil(1 << 20),
        needed.div_ceil(1 << 20),
        limit >> 20
    );
    Some(if needed <= limit {
        Finding::new(Level::Ok, "memory", message)
    } else {
        let fix = format!(
            "Give the process {} MiB, or lower [relay.turn] max_row_bytes or [postgres] pool_size.",
            needed.div_ceil(1 << 20)
        );
        Finding::new(Level::Warn, "memory_limit", message).setting(fix)
    })
}

/// The smallest limit of the groups in `groups` and of those above them, in bytes.
fn smallest(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            some if some.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        // A container may see its own group as the root, and the path of the host.
        let above = Path::new(path).ancestors().map(|path| path.strip_prefix("/").unwrap_or(path));
        above.filter_map(|path| std::fs::read_to_string(folder.join(path).join(file)).ok()).collect()
    });
    limits.filter_map(|text| text.trim().parse().ok()).filter(|bytes| *bytes < UNLIMITED).min()
}

/// Compares the longest of the newest 1,000 rows with `max_row_bytes`.
pub(super) async fn rows(session: &Session, readable: &Readable, most: usize) -> Result<Finding, Error> {
    let asked = session.query_one(&readable.shape.longest_sql(&readable.fields, most), &[]).await;
    let row = match asked.map_err(Error::from) {
        Err(error) if error.is_server_limit() => {
            let message = format!("among the newest 1,000 rows one has a text that PostgreSQL cannot make: {error}");
            let fix = "Shorten it, or publish other columns: such a row is poison.";
            return Ok(Finding::new(Level::Warn, "row_too_large", message).setting(fix));
        }
        row => row?,
    };
    let longest = u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0);
    Ok(if longest > most as u64 {
        let message = format!("among the newest 1,000 rows one takes {longest} bytes; max_row_bytes is {most}");
        let fix = format!(
            "Set [relay.turn] max_row_bytes = \"{}MiB\" if each replica has the memory; else such a row is poison.",
            longest.div_ceil(1 << 20)
        );
        Finding::new(Level::Warn, "row_too_large", message).setting(fix)
    } else {
        let message = format!("the longest of the newest 1,000 rows is within max_row_bytes ({most} bytes)");
        Finding::new(Level::Ok, "row_size", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a value");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a value")).expect("a value");
            std::fs::write(path, text).expect("a value");
        }
        folder
    }

    // Guarantee: failures.check-sizes
    #[test]
    fn smallest_limit_on_the_way_up_counts() {
        let two = folder(&[("a/memory.max", "536870912\n"), ("a/b/memory.max", "max\n")]);
        assert_eq!(smallest(two.path(), "0::/a/b\n"), Some(512 << 20));
        let one = folder(&[
            ("memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.limit_in_bytes", "268435456\n"),
        ]);
        assert_eq!(smallest(one.path(), "5:cpu:/a\n4:memory,hugetlb:/a\n0::/\n"), Some(256 << 20));
        // The host's path, which the container does not see.
        assert_eq!(smallest(one.path(), "4:memory:/docker/0123\n"), Some(256 << 20));
    }

    #[test]
    fn without_a_limit_nothing_is_said() {
        let none = folder(&[("a/memory.max", "max\n"), ("memory/memory.limit_in_bytes", "9223372036854771712\n")]);
        assert_eq!(smallest(none.path(), "4:memory:/a\n0::/a\n"), None);
        assert_eq!(smallest(none.path(), ""), None);
    }

    // Guarantee: failures.check-sizes
    #[test]
    fn rows_of_all_turns_are_compared_with_the_limit() {
        let found = |limit: u64, slots| judge(limit << 20, slots, vec![64 << 20; 3]).map(|finding| finding.code);
        // 96 MiB, and 192 MiB for each turn.
        assert_eq!((found(480, 2), found(479, 2)), (Some("memory"), Some("memory_limit")));
        assert_eq!((found(672, 10), found(671, 10)), (Some("memory"), Some("memory_limit")));
    }
}
