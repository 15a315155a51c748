//! What `deploy/` hands to the program is what the program takes. The manifests' own shape is checked by `make lint`.

use std::path::{Path, PathBuf};

use crate::support::{outbox_relay, relays::parse};

/// Where pods have the Secret `outbox-relay`.
const SECRETS: &str = "/run/secrets/outbox-relay/";

/// A configuration of the manifests, with the Secret's files in a directory that this machine has.
struct Configuration {
    file: PathBuf,
    text: String,
    _secrets: tempfile::TempDir,
}

impl Configuration {
    fn read(file: PathBuf) -> Self {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let secrets = tempfile::tempdir().unwrap();
        for rest in text.split(SECRETS).skip(1) {
            let key = rest.split('"').next().unwrap();
            std::fs::write(secrets.path().join(key), "secret").unwrap();
        }
        let text = text.replace(SECRETS, &format!("{}/", secrets.path().display()));
        Self { file, text, _secrets: secrets }
    }
}

/// Every configuration that the manifests bring.
fn configurations() -> Vec<Configuration> {
    let overlays = std::fs::read_dir("deploy/kubernetes/overlays").unwrap();
    let files = overlays.map(|overlay| overlay.unwrap().path().join("settings/outbox-relay.toml"));
    let all: Vec<Configuration> = files.map(Configuration::read).collect();
    assert!(all.len() >= 2);
    all
}

#[tokio::test]
async fn every_configuration_of_the_manifests_is_understood_as_it_stands() {
    for Configuration { file, text, _secrets } in configurations() {
        let (code, out, log) = outbox_relay(&text, &["config", "show", "--redacted"]).await;
        assert_eq!(code, Some(0), "{}: {log}", file.display());
        assert!(out.contains("listen = \"0.0.0.0:9464\""), "{}: {out}", file.display());
    }
}

#[test]
fn a_pod_is_killed_well_after_its_grace_period() {
    let manifest = std::fs::read_to_string("deploy/kubernetes/base/deployment.yaml").unwrap();
    let seconds = manifest.lines().find_map(|line| line.trim().strip_prefix("terminationGracePeriodSeconds: "));
    let seconds: u64 = seconds.expect("a grace period of the pod").parse().unwrap();
    for Configuration { file, text, _secrets } in configurations() {
        let grace = parse(&text).grace;
        assert!(grace.as_secs() + 20 <= seconds, "{}: {grace:?}", file.display());
    }
}

#[tokio::test]
async fn configuration_of_the_package_is_understood_once_its_comments_are_taken_away() {
    let text = std::fs::read_to_string("deploy/debian/outbox-relay.toml").unwrap();
    let (_, keys) = text.split_once("\n\n").unwrap();
    let filled = keys.replace("\n# ", "\n").replacen("# ", "", 1);
    let (code, out, log) = outbox_relay(&filled, &["config", "show", "--redacted"]).await;
    assert!(code == Some(0) && out.contains("booking_events"), "{filled}{log}");
    let (code, _, log) = outbox_relay(&text, &["run"]).await;
    assert!(code == Some(2) && log.contains("no PostgreSQL server is named"), "{log}");
}

#[test]
fn service_is_killed_well_after_its_grace_period_and_not_restarted_for_wrong_usage() {
    let unit = std::fs::read_to_string("deploy/systemd/outbox-relay.service").unwrap();
    let values = |key: &str| {
        let lines = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let grace = parse("[postgres]\nurl = \"postgresql://u@h/d?sslmode=disable\"\n").grace.as_secs();
    let [stop] = &values("TimeoutStopSec")[..] else { panic!("{unit}") };
    assert!(stop.parse::<u64>().unwrap() >= grace + 20, "{stop} s, and {grace} s of grace");
    assert_eq!(values("RestartPreventExitStatus"), [outbox_relay::cli::USAGE.to_string()]);
    assert_eq!(values("LoadCredential"), ["outbox-relay.toml:/etc/outbox-relay/outbox-relay.toml"]);
}

#[test]
fn who_scales_asks_for_a_metric_that_is_exported() {
    let manifest = std::fs::read_to_string("deploy/kubernetes/components/keda/scaled-object.yaml").unwrap();
    let documented = std::fs::read_to_string("docs/METRICS.md").unwrap();
    let exported = documented.split("## Reserved").next().unwrap();
    let metrics: Vec<&str> = manifest
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("outbox_relay_"))
        .collect();
    assert!(!metrics.is_empty());
    for metric in metrics {
        assert!(exported.contains(&format!("| `{metric}` |")), "{metric}");
    }
}

#[tokio::test]
async fn the_local_prometheus_is_configured_with_the_rules() {
    let dir = tempfile::tempdir().unwrap();
    for (from, to) in [("compose/prometheus.yaml", "prometheus.yml"), ("prometheus/rules.yaml", "rules.yaml")] {
        std::fs::copy(Path::new("deploy").join(from), dir.path().join(to)).unwrap();
    }
    let mut promtool = tokio::process::Command::new("promtool");
    let output = promtool.args(["check", "config"]).arg(dir.path().join("prometheus.yml")).output().await;
    let output = output.expect("promtool (Debian: package prometheus; `make test` installs it)");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 rule files found"), "{said}");
}

#[tokio::test]
async fn compose_runs_versions_that_tests_run() {
    let stack = std::fs::read_to_string("deploy/compose.yaml").unwrap();
    let tags = |image: &str| -> Vec<String> {
        let images = stack.lines().filter_map(|line| line.trim().strip_prefix("image: "));
        // What a tag is pinned to says nothing of its version.
        images.filter_map(|name| name.strip_prefix(image)).map(|name| without_digest(name).to_owned()).collect()
    };
    let pom = std::fs::read_to_string("tests/kafka/pom.xml").unwrap();
    let kafka = pom.split("<artifactId>kafka_2.13</artifactId>").nth(1).unwrap().split("<version>").nth(1).unwrap();
    let kafka = kafka.split('<').next().unwrap();
    assert_eq!(tags("apache/kafka:"), [kafka, kafka]);
    let prometheus = tokio::process::Command::new("prometheus").arg("--version").output().await.unwrap();
    let said = String::from_utf8(prometheus.stdout).unwrap();
    let version: String = said.split(' ').nth(2).unwrap().chars().take_while(|c| "0123456789.".contains(*c)).collect();
    assert_eq!(tags("prom/prometheus:"), [format!("v{version}")]);
    // Of PostgreSQL the major version: minor ones come with the distribution's updates.
    let install = std::fs::read_to_string("scripts/install").unwrap();
    let [postgres] = &tags("postgres:")[..] else { panic!("one PostgreSQL") };
    let major = postgres.split('.').next().unwrap();
    assert!(install.contains(&format!("postgresql-{major}")), "{postgres}");
    let documented = std::fs::read_to_string("docs/KUBERNETES.md").unwrap();
    for image in stack.lines().filter_map(|line| line.trim().strip_prefix("image: ")) {
        let image = without_digest(image);
        let ours = image.ends_with(":dev");
        assert!(ours || documented.contains(&format!("| `{image}` |")), "{image} is in no document");
    }
}

/// An image's name and tag.
fn without_digest(image: &str) -> &str {
    image.split('@').next().unwrap_or(image)
}
