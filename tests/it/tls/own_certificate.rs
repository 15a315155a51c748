//! A PostgreSQL that lets in who shows a certificate.

use std::fs;
use std::path::{Path, PathBuf};

use super::postgres::Server;
use crate::support::outbox_relay;
use crate::support::outside::stdout_relay;
use crate::support::tls::{Authority, Files, Showing};

/// The rule for the role `relay`, before all others.
const RULE: &str = "hostssl all relay all cert";

fn toml(server: &Server, own: &str) -> String {
    format!(
        "[postgres]\nurl = \"postgresql://relay@127.0.0.1:{}/postgres\"\nca_file = \"{}\"\n{own}[admin]\nlisten = \"127.0.0.1:0\"\n{}",
        server.postgres.port(),
        server.authority.file().display(),
        stdout_relay("s", "")
    )
}

fn keys(files: &Files) -> String {
    format!("cert_file = \"{}\"\nkey_file = \"{}\"\n", files.certificate.display(), files.key.display())
}

/// Kept when the next one of that name is issued.
fn copied(path: &Path) -> PathBuf {
    let copy = PathBuf::from(format!("{}.first", path.display()));
    fs::copy(path, &copy).unwrap();
    copy
}

// Guarantee: secrets.own-certificate
#[tokio::test(flavor = "multi_thread")]
async fn postgres_that_asks_for_a_certificate_is_shown_the_one_that_stands_in_the_files_now() {
    let server = Server::start().await;
    let copy = format!(
        "cp {} root.crt; printf \"%s\\n\" \"{RULE}\" >h; cat pg_hba.conf >>h; mv h pg_hba.conf; cat >copied",
        server.authority.file().display()
    );
    server.owner.batch_execute("CREATE ROLE relay LOGIN").await.unwrap();
    server.owner.batch_execute(&format!("COPY (SELECT 1) TO PROGRAM '{copy}'")).await.unwrap();
    server.owner.batch_execute("ALTER SYSTEM SET ssl_ca_file = 'root.crt'").await.unwrap();
    outbox_relay::migrate::grant(&server.owner, &outbox_relay::migrate::relay_grants("relay", &[])).await.unwrap();
    server.owner.batch_execute("GRANT SELECT ON bookings TO relay").await.unwrap();
    server.show(Some(Showing::Right)).await;

    let expired = server.authority.issue_client("relay", -1);
    let expired = Files { certificate: copied(&expired.certificate), key: copied(&expired.key) };
    let relay = server.authority.issue_client("relay", 2);
    let other = server.authority.issue_client("other", 2);
    let elsewhere = Authority::new();
    let used = Files { certificate: relay.certificate.with_extension("used"), key: relay.key.with_extension("inuse") };
    let put = |files: &Files| {
        fs::copy(&files.certificate, &used.certificate).unwrap();
        fs::copy(&files.key, &used.key).unwrap();
    };
    let refused = async |toml: &str, words: &[&str]| {
        let (code, out, log) = outbox_relay(toml, &["run", "--once"]).await;
        let error = log.lines().find(|line| line.starts_with("error: ")).expect("a line for people").to_owned();
        println!("{error}");
        assert_eq!((code, out.as_str()), (Some(1), ""), "{log}");
        assert!(words.iter().all(|word| log.contains(word)), "{words:?} in {log}");
    };
    refused(&toml(&server, ""), &["connection requires a valid client certificate"]).await;
    let own = toml(&server, &keys(&used));
    refused(&own, &["[postgres] cert_file, key_file", "No such file"]).await;
    put(&expired);
    refused(&own, &["[postgres] cert_file, key_file", "refuses it", "certificate expired"]).await;
    put(&elsewhere.issue_client("relay", 2));
    refused(&own, &["[postgres] cert_file, key_file", "refuses it", "alert"]).await;
    put(&other);
    refused(&own, &["certificate authentication failed for user"]).await;
    let text = fs::read_to_string(&relay.key).unwrap().replace("PRIVATE KEY", "EC PRIVATE KEY");
    fs::write(&used.key, text).unwrap();
    refused(&own, &["openssl pkcs8 -topk8"]).await;
    fs::copy(&relay.key, &used.key).unwrap();
    // Still the other's certificate.
    refused(&own, &["[postgres] cert_file, key_file", "mismatch"]).await;

    put(&relay);
    let (code, out, log) = outbox_relay(&own, &["run", "--once"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 1), "{log}");
    let by_url = toml(&server, "").replace(
        "/postgres\"",
        &format!("/postgres?sslcert={}&sslkey={}\"", used.certificate.display(), used.key.display()),
    );
    let (code, _, log) = outbox_relay(&by_url, &["check"]).await;
    assert!(code != Some(1) && !log.contains("error: "), "{code:?} {log}");
    server.postgres.stop().await.unwrap();
}
