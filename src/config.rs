//! The configuration of a process: one TOML file, the environment laid over it, and every problem reported at once.
//!
//! Each component owns its own `Config`; this module fills them. What leaves it is complete and consistent: every
//! default is filled in, every duration is within bounds, the chain of deadlines holds, and no property breaks a
//! guarantee. It looks at no server: whether tables and topics exist is for `check`. Secrets are never printed, neither
//! in problems nor by [`std::fmt::Debug`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::sink::custom::Kinds;
use crate::sink::kafka::{ClusterConfig, RegistryConfig};
use crate::telemetry::traces;
use crate::{admin, database, intake as http_intake, relay};

mod across;
mod admin_section;
mod audit_section;
mod aws_iam;
mod chosen;
mod delivers;
mod environment;
mod filter;
mod fingerprint;
mod intake;
mod kafka;
mod keys;
mod lanes;
mod oauth2;
mod parking;
mod pending;
mod postgres;
mod postgres_url;
mod preset;
mod problem;
mod properties;
mod queries;
mod redact;
mod relay_section;
mod requests;
mod retention;
mod schedule;
mod schema_registry;
mod section;
mod shards;
mod show;
mod show_email;
mod show_postgres;
mod sink;
mod source;
mod syntax;
mod table_name;
mod telemetry;
/// What to do about a configuration that cannot be read.
fn unreadable(error: std::io::ErrorKind, file: &str) -> String {
    match error {
        std::io::ErrorKind::PermissionDenied => format!(
            "let the user that runs this read it: the file, and each directory above it; `namei -l {file}` shows them"
        ),
        _ => "name the configuration by --config FILE or OUTBOX_RELAY_CONFIG".to_owned(),
    }
}

#[cfg(test)]
mod tests;
mod tree;
mod turn;
mod units;
mod value;

pub use chosen::Unchosen;
pub use environment::{Environment, of_process};
pub use problem::{Place, Problem, Problems};
pub use relay_section::relay_name;
pub use source::{DEFAULT_CREATED_AT, DEFAULT_ID};
pub use units::parse_duration;

use problem::{Report, Wrong, without_guesses};
use section::Section;
use tree::TomlTable;

/// The commented reference file: every key with its meaning, unit and default. Tests hold it to the code.
pub const REFERENCE: &str = include_str!("../deploy/outbox-relay.toml");

/// Read when neither an argument nor `OUTBOX_RELAY_CONFIG` names another file, and only if it is there.
pub const DEFAULT_FILE: &str = "outbox-relay.toml";

const DEFAULT_GRACE: Duration = Duration::from_secs(20);
const PHASES: [(&str, admin::Phases); 2] =
    [(admin::Phases::Table.as_str(), admin::Phases::Table), (admin::Phases::Off.as_str(), admin::Phases::Off)];

/// Everything a process is told.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// `[postgres]`.
    pub postgres: database::Config,
    /// `[kafka]`; present when a relay needs it.
    pub kafka: Option<ClusterConfig>,
    /// `[admin]`.
    pub admin: admin::Config,
    /// `[metrics] phases`.
    pub phases: admin::Phases,
    /// `[intake]`; present when requests are taken over HTTP.
    pub intake: Option<http_intake::Config>,
    /// `[schema_registry]`; present when a relay needs it.
    pub schema_registry: Option<Arc<RegistryConfig>>,
    /// `[telemetry]`; present when spans are exported.
    pub telemetry: Option<traces::Config>,
    /// `[shutdown] grace`: how long turns may take to end after a signal.
    pub grace: Duration,
    /// `[retention]`.
    pub retention: crate::retention::Config,
    /// `[audit]`: what relays pass is recorded, and compared with the table.
    pub audit: relay::Audit,
    /// Every `[[relay]]`, in the file's order, once for each of its shards; may be empty, because some commands need none.
    pub relays: Vec<relay::Config>,
}

impl Config {
    /// Reads the file named by `path`, else by `OUTBOX_RELAY_CONFIG`, else [`DEFAULT_FILE`] if it is there, else none.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: Option<&Path>, environment: &Environment) -> Result<Self, Problems> {
        Self::load_with(path, environment, &Kinds::default())
    }

    /// The same, of a program with sinks of its own.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load_with(path: Option<&Path>, environment: &Environment, kinds: &Kinds) -> Result<Self, Problems> {
        let named = path
            .map(Path::to_path_buf)
            .or_else(|| environment.get("OUTBOX_RELAY_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from));
        let Some(path) = named.clone().or_else(|| Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()))
        else {
            return Self::read("", None, environment, kinds).map_err(|problems| problems.without_file(DEFAULT_FILE));
        };
        let file = path.display().to_string();
        match crate::file::piped_text(&path) {
            Ok(text) => Self::read(&text, Some(file), environment, kinds),
            Err(error) => {
                let what = format!("cannot be read: {error}");
                let fix = unreadable(error.kind(), &file);
                let place = Place::File;
                let problem = Problem { place, key: String::new(), value: None, what, fix, missing: false };
                Err(Problems::new(Some(file), vec![problem]))
            }
        }
    }

    /// Reads a text; `file` is its name in problems.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, file: &str, environment: &Environment) -> Result<Self, Problems> {
        Self::parse_with(text, file, environment, &Kinds::default())
    }

    /// The same, of a program with sinks of its own.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse_with(text: &str, file: &str, environment: &Environment, kinds: &Kinds) -> Result<Self, Problems> {
        Self::read(text, Some(file.to_owned()), environment, kinds)
    }

    fn read(text: &str, file: Option<String>, environment: &Environment, kinds: &Kinds) -> Result<Self, Problems> {
        let report = Report::default();
        let mut document = tree::parse(text, &report);
        let certain = document.certain;
        environment::overlay(&mut document.root, environment, &report);
        preset::apply(&mut document.root);
        let config = build(&document.root, environment, kinds, &report);
        report.keep_first_cause();
        match config {
            Some(config) if report.is_empty() => Ok(config),
            _ => Err(Problems::new(file, without_guesses(report.into_list(), certain))),
        }
    }

    /// The resolved configuration as TOML, every default filled in, every secret as `***`.
    #[must_use]
    pub fn redacted(&self) -> String {
        show::all(self, show::Secrets::Hidden)
    }
}

impl fmt::Debug for Config {
    /// As [`Config::redacted`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

fn build(root: &TomlTable, environment: &Environment, kinds: &Kinds, report: &Report) -> Option<Config> {
    let root = Section::root(report, root);
    let postgres_section = root.section("postgres");
    let pool_size = postgres::read_pool_size(&postgres_section);
    let mut postgres = postgres::read(&postgres_section, pool_size, environment);
    let kafka_section = root.section("kafka");
    let kafka = kafka::read(&kafka_section, environment);
    let admin = admin_section::read(&root.section("admin"));
    let phases = root.section("metrics").read("phases", value::word(&PHASES, &[])).unwrap_or_default();
    let intake_section = root.section("intake");
    let intake = intake::read(&intake_section);
    let registry_section = root.section("schema_registry");
    let registry = schema_registry::read(&registry_section);
    let telemetry = telemetry::read(&root.section("telemetry"));
    let seconds = Duration::from_secs;
    let grace = root.section("shutdown").read("grace", value::duration(seconds(1)..=seconds(600)));

    let retention = retention::read(&root.section("retention"));
    let audit = audit_section::read(&root.section("audit"), retention.dead_letters);
    let around = relay_section::Surroundings {
        cluster: kafka.as_ref(),
        kafka: sink::kafka::Around {
            has_cluster: kafka_section.is_present(),
            registry: registry.as_ref(),
            has_registry: registry_section.is_present(),
        },
        audit,
        allow_loss: environment.get("OUTBOX_RELAY_ALLOW_LOSS").is_some_and(|value| value == "1"),
        kinds,
    };
    let sections = root.sections("relay");
    across::refuse_twins(&sections);
    let read = |section| Some((section, relay_section::read(section, around)?));
    let relays: Vec<_> = sections.iter().filter_map(read).collect();
    requests::refuse_twins(&relays);
    let relays: Vec<relay::Config> = relays.into_iter().flat_map(|(_, relay)| shards::spread(relay)).collect();
    let listens = relays.iter().any(|relay| relay.poll.notify);
    let executes = relays.iter().any(|relay| matches!(relay.source, crate::source::Config::Schedule(_)));
    let dedicated = usize::from(listens) + usize::from(executes);
    across::check_pool(&postgres_section, pool_size, dedicated, &sections);
    if let Some(postgres) = &mut postgres {
        postgres.dedicated = dedicated;
    }
    Some(Config {
        postgres: postgres?,
        kafka,
        admin: admin.unwrap_or_default(),
        phases,
        intake,
        schema_registry: registry,
        telemetry,
        grace: grace.unwrap_or(DEFAULT_GRACE),
        retention,
        audit,
        relays,
    })
}

fn listen(text: &str) -> Result<std::net::SocketAddr, Wrong> {
    let fix = "write an IP address and a port, for example \"127.0.0.1:9464\" or \"0.0.0.0:9464\"";
    text.parse().map_err(|_| Wrong::new("not an address to listen on", fix))
}
