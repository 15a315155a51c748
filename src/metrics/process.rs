//! The process itself, under the names that every Prometheus client uses. Read from /proc when somebody asks; where there
//! is no /proc, nothing is shown.

use std::fmt::Write as _;

use metrics::Unit;
use rustix::process::{Resource, getrlimit};

use super::table::{Metric, MetricKind};

macro_rules! process_metrics {
    ($($name:literal $kind:ident $unit:ident $help:literal $value:expr;)*) => {
        /// The metrics of the process, all without labels.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            unit: Unit::$unit,
            labels: &[],
            help: $help,
            exported: true,
        }),*];

        const VALUES: &[fn(&Proc) -> Option<f64>] = &[$($value),*];
    };
}

process_metrics! {
    "process_cpu_seconds_total" Counter Seconds "Processor time that the process has used."
        |proc| Some((proc.stat(13)? + proc.stat(14)?) / proc.ticks);
    "process_resident_memory_bytes" Gauge Bytes "Resident memory."
        |proc| Some(number(proc.statm.split_whitespace().nth(1)?)? * proc.page);
    "process_virtual_memory_bytes" Gauge Bytes "Virtual memory."
        |proc| proc.stat(22);
    "process_threads" Gauge Count "Threads."
        |proc| proc.stat(19);
    "process_open_fds" Gauge Count "Open file descriptors."
        |_| number(&std::fs::read_dir("/proc/self/fd").ok()?.count().to_string());
    "process_max_fds" Gauge Count "File descriptors that the process may open."
        |_| number(&getrlimit(Resource::Nofile).current?.to_string());
    "process_start_time_seconds" Gauge Seconds "When the process began, in seconds since 1970."
        |proc| Some(proc.boot()? + proc.stat(21)? / proc.ticks);
}

/// What /proc says at one moment.
struct Proc {
    stat: String,
    statm: String,
    ticks: f64,
    page: f64,
}

impl Proc {
    fn read() -> std::io::Result<Self> {
        let (ticks, page) = (rustix::param::clock_ticks_per_second(), rustix::param::page_size());
        Ok(Self {
            stat: std::fs::read_to_string("/proc/self/stat")?,
            statm: std::fs::read_to_string("/proc/self/statm")?,
            ticks: number(&ticks.to_string()).unwrap_or(100.0),
            page: number(&page.to_string()).unwrap_or(4096.0),
        })
    }

    /// Field number `n`, from 0, of /proc/self/stat. The program's name, field 1, may hold blanks and parentheses.
    fn stat(&self, n: usize) -> Option<f64> {
        let after_name = &self.stat[self.stat.rfind(')')? + 1..];
        number(after_name.split_whitespace().nth(n.checked_sub(2)?)?)
    }

    fn boot(&self) -> Option<f64> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        number(stat.lines().find_map(|line| line.strip_prefix("btime "))?)
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Appends the process's metrics in Prometheus' text format.
pub(super) fn render(text: &mut String) {
    let Ok(proc) = Proc::read() else { return };
    for (metric, value) in METRICS.iter().zip(VALUES) {
        let Some(value) = value(&proc) else { continue };
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (name, help) = (metric.name, metric.help);
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, name: &str) -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        number(line.unwrap_or_else(|| panic!("{name} in {text}"))).expect("a number")
    }

    #[test]
    fn figures_are_those_of_this_process() {
        let mut text = String::new();
        render(&mut text);
        let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs_f64();
        let began = now - value(&text, "process_start_time_seconds");
        assert!((-2.0..3600.0).contains(&began), "began {began} s ago");
        assert!(value(&text, "process_resident_memory_bytes") > 1e6, "{text}");
        assert!(value(&text, "process_virtual_memory_bytes") > value(&text, "process_resident_memory_bytes"), "{text}");
        assert!(value(&text, "process_open_fds") >= 3.0 && value(&text, "process_threads") >= 1.0, "{text}");
        assert!(value(&text, "process_max_fds") >= value(&text, "process_open_fds"), "{text}");
        assert!(value(&text, "process_cpu_seconds_total") < 3600.0, "{text}");
    }
}
