//! A real Prometheus, with the configuration and the rules that are shipped.

use std::process::Stdio;
use std::time::Duration;

use outbox_testkit::startup::free_port;
use serde_json::Value;

use super::{PATIENCE, eventually};

/// See the module.
pub struct Prometheus {
    url: String,
    client: reqwest::Client,
    _child: tokio::process::Child,
    _dir: tempfile::TempDir,
}

impl Prometheus {
    /// Scrapes these targets, `host:port`, every second.
    pub async fn start(targets: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shipped = std::fs::read_to_string("deploy/prometheus/prometheus.yaml").unwrap();
        let quoted: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let config = shipped.replace("\"relay:9464\"", &quoted.join(", ")).replace("15s", "1s");
        assert!(config.contains(targets[0]), "the shipped configuration has the target relay:9464: {shipped}");
        std::fs::write(dir.path().join("prometheus.yaml"), config).unwrap();
        std::fs::copy("deploy/prometheus/rules.yaml", dir.path().join("rules.yaml")).unwrap();
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = tokio::process::Command::new("prometheus")
            .arg("--config.file=prometheus.yaml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("prometheus on PATH (Debian: package prometheus; `make test` installs it)");
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
        let prometheus = Self { url: format!("http://{address}"), client, _child: child, _dir: dir };
        eventually(PATIENCE * 2, || async { prometheus.ready().await }).await;
        prometheus
    }

    async fn ready(&self) -> bool {
        let answer = self.client.get(format!("{}/-/ready", self.url)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// What the API answers to a GET of `path`, or to a POST of a form; panics with Prometheus' own words when it refuses.
    pub async fn api(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        let request = if form.is_empty() { self.client.get(url) } else { self.client.post(url).form(form) };
        let answer: Value = serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap();
        assert_eq!(answer["status"], "success", "{path} {form:?}: {answer}");
        answer["data"].clone()
    }

    /// The values of an instant query, with their labels.
    pub async fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let data = self.api("query", &[("query", query)]).await;
        let samples = data["result"].as_array().unwrap_or_else(|| panic!("no vector: {query}: {data}"));
        let value = |sample: &Value| sample["value"][1].as_str().unwrap().parse().unwrap();
        samples.iter().map(|sample| (sample["metric"].clone(), value(sample))).collect()
    }
}
