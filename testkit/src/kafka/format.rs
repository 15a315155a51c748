//! What a broker finds in its data directory when it starts for the first time.

use std::ffi::OsString;
use std::path::Path;

use anyhow::ensure;
use tokio::sync::OnceCell;

use super::super::startup::tail;
use super::super::watchdog::Watchdog;
use super::START;
use super::java::{Java, archive_use, program};

/// The cluster that Kafka's tool is told to format for: 16 bytes in URL-safe base64.
const PLACE: &str = "outboxRelayTestKitXXXA";

/// Names and contents of files.
type Files = Vec<(OsString, Vec<u8>)>;

/// Formats `data` below the watched directory, which has a `server.properties`, for a cluster of its own. Kafka's tool is a Java of
/// its own, a second of processor time: it runs for the first broker of this process only. The quorum is named in the properties,
/// so that the files of all brokers differ in nothing but the cluster's id.
///
/// # Errors
/// When Java cannot be started, or the tool fails; the end of its log is part of the error.
pub(super) async fn format(watchdog: &mut Watchdog, jars: &Path) -> anyhow::Result<()> {
    static FORMATTED: OnceCell<Files> = OnceCell::const_new();
    let data = watchdog.dir().join("data");
    let files = FORMATTED.get_or_try_init(move || formatted(watchdog, jars)).await?;
    // The last digit holds four bits.
    let id: String = (0..21).map(|_| fastrand::alphanumeric()).chain(['A']).collect();
    std::fs::create_dir_all(&data)?;
    for (name, content) in files {
        let content = match std::str::from_utf8(content) {
            Ok(text) => text.replace(PLACE, &id).into_bytes(),
            Err(_) => content.clone(),
        };
        std::fs::write(data.join(name), content)?;
    }
    Ok(())
}

/// The files that the tool leaves in `data`.
async fn formatted(watchdog: &mut Watchdog, jars: &Path) -> anyhow::Result<Files> {
    let log = watchdog.dir().join("format.log");
    let format = ["kafka.tools.StorageTool", "format", "-t", PLACE, "-c", "server.properties"];
    let mut formatter = watchdog.spawn(&program(Java::Brief, jars, &log, archive_use(jars), &format)?)?;
    let status = watchdog.reap(&mut formatter, START).await?;
    ensure!(status.success(), "Kafka's data directory cannot be formatted:\n{}", tail(&log));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(watchdog.dir().join("data"))? {
        let entry = entry?;
        files.push((entry.file_name(), std::fs::read(entry.path())?));
    }
    Ok(files)
}
