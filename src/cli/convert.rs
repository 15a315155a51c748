//! `outbox-relay convert debezium FILE`: another product's configuration as one of this program.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use super::output;
use crate::file;

mod debezium;
mod settings;

use settings::Settings;

/// Arguments of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay convert debezium application.properties > outbox-relay.toml
  outbox-relay convert debezium connector.json > outbox-relay.toml

The file is what Debezium Server reads (conf/application.properties), or a connector of Kafka Connect (JSON, or \
properties). The result goes to standard output; what you have to decide goes to standard error, and stands as comments in \
the result, too. No server is asked, and passwords are not copied. How to move over without a gap: docs/howto/moving-over.md.")]
pub struct Args {
    /// From which product.
    #[command(subcommand)]
    pub from: From,
}

/// From which product.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum From {
    /// Debezium with the outbox event router, to Kafka
    Debezium {
        /// Its configuration: properties, or a connector's JSON
        file: PathBuf,
    },
}

/// Prints the translation.
///
/// # Errors
/// When the file cannot be read, or is nothing that can be translated.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let From::Debezium { file } = &args.from;
    let translated = read(file)?;
    output::print(&translated.toml)?;
    for note in &translated.notes {
        output::complain(format_args!("note: {note}"));
    }
    output::complain("next: review the file, then `outbox-relay --config FILE check`");
    Ok(ExitCode::SUCCESS)
}

/// No configuration is larger.
const LARGEST: usize = 1 << 20;

fn read(path: &Path) -> anyhow::Result<debezium::Translated> {
    let name = path.display();
    let text = file::text(path).with_context(|| format!("{name} cannot be read"))?;
    ensure!(text.len() <= LARGEST, "{name} cannot be read: it is larger than 1 MiB");
    let settings = Settings::read(&text).with_context(|| format!("{name} cannot be understood"))?;
    debezium::translate(settings).with_context(|| format!("{name} cannot be translated"))
}
