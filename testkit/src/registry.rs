//! Schema registries: one that is scripted, for everything that a test must be able to do to it, and a real one.
//!
//! The scripted one keeps schemas as Confluent's API has it, and judges none of them: what is compatible is as the test says.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::startup::{free_port, is_trusted, tail, until};
use super::watchdog::{Process, Program, Signal, Watchdog};

mod scripted;

pub use scripted::{Answer, ScriptedRegistry};

const START: Duration = Duration::from_secs(120);
/// Below its address.
const API: &str = "/apis/ccompat/v7";
/// Who may ask a real one that asks for a password, and the password.
pub const USER: (&str, &str) = ("relay", "canaryRegistry");

/// An Apicurio Registry, with its data in memory.
#[derive(Debug)]
pub struct RealRegistry {
    watchdog: Watchdog,
    process: Process,
    port: u16,
}

impl RealRegistry {
    /// Starts it; it answers when this returns. `has_password`: it wants to know who asks, and knows [`USER`].
    ///
    /// # Errors
    /// When it is not there (`scripts/registry-kit`), or does not start; the end of its log is part of the error.
    pub async fn start(has_password: bool) -> anyhow::Result<Self> {
        let kit = kit()?;
        let mut watchdog = Watchdog::start("registry")?;
        let port = free_port()?;
        let log = watchdog.dir().join("log");
        let (user, password) = USER;
        let mut args: Vec<String> =
            ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"].map(str::to_owned).into();
        let mut set = |name: &str, value: &str| args.push(format!("-D{name}={value}"));
        for (name, value) in [
            ("quarkus.http.host", "127.0.0.1"),
            ("quarkus.http.port", &port.to_string()),
            ("quarkus.management.host", "127.0.0.1"),
            ("quarkus.management.port", "0"),
            // Of its database in memory.
            ("apicurio.datasource.jdbc.initial-size", "2"),
            ("apicurio.datasource.jdbc.min-size", "2"),
        ] {
            set(name, value);
        }
        if has_password {
            set("quarkus.http.auth.basic", "true");
            set("quarkus.security.users.embedded.plain-text", "true");
            set(&format!("quarkus.security.users.embedded.users.{user}"), password);
            set(&format!("quarkus.security.users.embedded.roles.{user}"), "sr-admin");
        }
        args.extend(["-jar".to_owned(), kit.join("app/quarkus-run.jar").display().to_string()]);
        let program = Program { path: kit.join("java"), args, env: Vec::new(), log, user: None, stop: Signal::TERM };
        let process = watchdog.spawn(&program)?;
        let registry = Self { watchdog, process, port };
        let url = format!("{}/subjects", registry.url());
        let ready = until(START, || registry.process.is_running(), || answers(url.clone())).await;
        let log = &program.log;
        ready.with_context(|| format!("Apicurio Registry does not start; its log ends with:\n{}", tail(log)))?;
        Ok(registry)
    }

    /// Where its API begins.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{API}", self.port)
    }

    /// Stops its process where it stands: who is connected waits.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self) -> anyhow::Result<()> {
        Ok(self.process.signal(Signal::STOP)?)
    }

    /// Has it go on after [`Self::freeze`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&self) -> anyhow::Result<()> {
        Ok(self.process.signal(Signal::CONT)?)
    }

    /// Ends it, with all that it has.
    ///
    /// # Errors
    /// When something of it remains.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if self.process.is_running() {
            self.process.signal(Signal::KILL)?;
        }
        self.watchdog.reap(&mut self.process, START).await?;
        self.watchdog.stop().await
    }
}

/// It answers, whether it lets the asker in or not.
async fn answers(url: String) -> anyhow::Result<()> {
    let answer = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build()?.get(url).send().await?;
    ensure!(answer.status().as_u16() < 500, "it answers {}", answer.status());
    Ok(())
}

/// The registry and its Java, in the build directory that this program lies in, or in `target`; none that another user may have put there,
/// because they are run.
fn kit() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let beside = program.ancestors().map(|dir| dir.join("registry"));
    let found =
        beside.chain([PathBuf::from("target/registry")]).find(|dir| dir.join("complete").is_file() && is_trusted(dir));
    let found = found.context("The schema registry is missing: scripts/registry-kit fetches it")?;
    Ok(std::path::absolute(found)?)
}
