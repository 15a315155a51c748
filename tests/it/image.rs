//! The image and the local stack, acted out without a container engine: the same program and files in a read-only root that
//! has nothing but the image's packages, as the image's user, on the stack's own database, configuration and secrets.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use outbox_testkit::bookings::{self, Load, Writers};
use outbox_testkit::consumer::Consumer;
use outbox_testkit::gateway::Gateway;
use outbox_testkit::postgres::{Auth, Options, Postgres, connect, password};

use crate::support::{PATIENCE, broker, eventually, unique};

const PROGRAM: &str = env!("CARGO_BIN_EXE_outbox-relay");

/// Runs the program in the image's root, with the files of `settings` as /etc/outbox-relay: code, output, talk.
async fn in_image(settings: &Path, environment: &[(&str, &str)], args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = tokio::process::Command::new("scripts/check-image");
    command.arg(PROGRAM).arg(settings).args(args).envs(environment.iter().copied()).stdin(Stdio::null());
    let output = command.kill_on_drop(true).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The stack's own configuration and secrets, with this machine's addresses instead of the containers' names.
fn settings(postgres: &Postgres, servers: &str, topic: &str, gateway: &Gateway) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut toml = std::fs::read_to_string("deploy/compose/outbox-relay.toml").unwrap();
    for (from, to) in [
        ("@postgres:5432/", &*format!("@127.0.0.1:{}/", postgres.port())),
        ("\"kafka:9092\"", &format!("\"{servers}\"")),
        ("http://sms-gateway:8088", &gateway.base_url()),
        ("topic = \"bookings\"", &format!("topic = \"{topic}\"")),
        ("/run/secrets/", "/etc/outbox-relay/"),
        ("0.0.0.0:9464", "127.0.0.1:0"),
    ] {
        assert!(toml.contains(from), "{from} is not in {toml}");
        toml = toml.replace(from, to);
    }
    std::fs::write(dir.path().join("outbox-relay.toml"), toml).unwrap();
    for secret in ["relay-password", "twilio-token"] {
        std::fs::copy(Path::new("deploy/compose/secrets").join(secret), dir.path().join(secret)).unwrap();
    }
    dir
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_stack_works_with_the_images_files_read_only_and_as_the_images_user() {
    let postgres = Postgres::start(Options { auth: Auth::Own, ..Options::default() }).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    owner.batch_execute("CREATE DATABASE app").await.unwrap();
    let owner = postgres.connect("postgres", "app").await.unwrap();
    owner.batch_execute(&std::fs::read_to_string("deploy/compose/application.sql").unwrap()).await.unwrap();
    let (broker, gateway, topic) = (broker().await, Gateway::start().await.unwrap(), unique("stack"));
    broker.create_topic(&topic, 3, &[]).await.unwrap();
    let consumer = Consumer::start(&broker.bootstrap_servers(), &topic).await.unwrap();
    let dir = settings(&postgres, &broker.bootstrap_servers(), &topic, &gateway);

    let (code, out, log) = in_image(dir.path(), &[], &["--version"]).await;
    assert_eq!((code, out), (Some(0), format!("outbox-relay {}\n", env!("CARGO_PKG_VERSION"))), "{log}");
    let (code, out, log) = in_image(dir.path(), &[], &["config", "show", "--redacted"]).await;
    assert!(code == Some(0) && out.contains(&gateway.base_url()), "{out}{log}");

    std::fs::write(dir.path().join("owner-password"), password("postgres")).unwrap();
    let url = format!("postgresql://postgres@127.0.0.1:{}/app?sslmode=disable", postgres.port());
    let file = "/etc/outbox-relay/owner-password";
    let as_owner = [("OUTBOX_RELAY__POSTGRES__URL", &*url), ("OUTBOX_RELAY__POSTGRES__PASSWORD_FILE", file)];
    let (code, out, log) = in_image(dir.path(), &as_owner, &["migrate", "up", "--relay-role", "relay"]).await;
    assert!(code == Some(0) && out.contains("applied migration 1\n"), "{out}{log}");

    let app = format!("postgresql://app:app-local@127.0.0.1:{}/app", postgres.port());
    drop(connect(&app).await.unwrap());
    let load = Load { writers: 2, payload: 100..=500, ..Load::default() };
    let writers = Writers::start(&app, load).await.unwrap();
    eventually(PATIENCE, async || writers.committed() > 50).await;
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();

    let (code, out, log) = in_image(dir.path(), &[], &["check"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let (code, _, log) = in_image(dir.path(), &[], &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, async || consumer.count() >= committed.len()).await;
    assert_eq!((consumer.count(), gateway.accepted_count()), (committed.len(), committed.len()));
    postgres.stop().await.unwrap();
}

#[test]
fn the_image_is_built_from_all_that_the_program_is_made_of() {
    let dockerfile = std::fs::read_to_string("deploy/Dockerfile").unwrap();
    let copied: Vec<&str> = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY ").filter(|rest| !rest.starts_with("--from")))
        .flat_map(|rest| rest.split(' ').rev().skip(1))
        .collect();
    let needed = needed();
    let ignore = std::fs::read_to_string(".dockerignore").unwrap();
    for file in needed {
        assert!(copied.iter().any(|place| file.starts_with(place)), "{file} is not copied: {copied:?}");
    }
    for place in copied {
        let line = format!("!{}\n", place.trim_end_matches('/'));
        assert!(ignore.contains(&line), "{place} is kept from the build by .dockerignore");
    }
}

#[test]
fn the_published_crate_has_all_that_the_program_is_made_of() {
    let manifest = std::fs::read_to_string("Cargo.toml").unwrap();
    let line = manifest.lines().find_map(|line| line.strip_prefix("include = [")).unwrap();
    let included: Vec<&str> = line.split('"').filter_map(|part| part.strip_prefix('/')).collect();
    for file in needed() {
        // The two that cargo itself puts there.
        let cargos = file == "Cargo.toml" || file == "Cargo.lock";
        assert!(
            cargos || included.iter().any(|place| file.starts_with(place)),
            "{file} is not in `include`: {included:?}"
        );
    }
}

/// The files that the program is compiled from, but for those of `third_party`.
fn needed() -> Vec<String> {
    let mut needed = vec!["Cargo.toml".to_owned(), "Cargo.lock".to_owned(), "src/main.rs".to_owned()];
    for file in sources(Path::new("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let included = text.split("include_str!(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let here = file.parent().unwrap().to_owned();
        needed.extend(included.map(|path| {
            let path = here.join(path).canonicalize().unwrap();
            path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string()
        }));
    }
    assert!(needed.iter().any(|file| file.starts_with("schema/")), "{needed:?}");
    needed
}

/// All files of the program below a directory.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.chain(dirs.iter().flat_map(|dir| sources(dir))).collect()
}
