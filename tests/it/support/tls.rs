//! Certificates of the test's own, made by the command `openssl`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a server shows for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showing {
    /// Signed by the authority, valid, for 127.0.0.1.
    Right,
    /// Signed by the authority and valid, for another host.
    OtherHost,
    /// Signed by the authority, for 127.0.0.1, until yesterday.
    Expired,
    /// Valid, for 127.0.0.1, signed by itself.
    SelfSigned,
}

/// All of them.
pub const SHOWINGS: [Showing; 4] = [Showing::Right, Showing::OtherHost, Showing::Expired, Showing::SelfSigned];

/// An authority and what it has signed, in a directory that every user can read: the keys protect nothing.
#[derive(Debug)]
pub struct Authority {
    dir: tempfile::TempDir,
}

/// The files of one server.
#[derive(Clone, Debug)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Files {
    /// Key and certificate in one text, as Kafka wants them.
    pub fn both(&self) -> String {
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        format!("{}{}", text(&self.key), text(&self.certificate))
    }
}

const NEW_KEY: [&str; 6] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];

impl Authority {
    /// Makes its key and certificate.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let authority = Self { dir };
        let subject = ["req", "-x509", "-subj", "/CN=test authority", "-days", "2"];
        authority.openssl(&subject, &[&NEW_KEY[..], &["ca.key", "-out", "ca.pem"]].concat());
        authority
    }

    /// Its own certificate.
    pub fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// A client's key and certificate, valid for so many days, by its name.
    pub fn issue_client(&self, name: &str, days: i32) -> Files {
        let (key, request, certificate) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        self.openssl(&["req", "-new", "-subj", &subject], &[&NEW_KEY[..], &[&key, "-out", &request]].concat());
        let sign = ["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        self.openssl(&sign, &["-days", &days.to_string(), "-out", &certificate]);
        Files { certificate: self.dir.path().join(certificate), key: self.dir.path().join(key) }
    }

    /// A server's key and certificate.
    pub fn issue(&self, showing: Showing) -> Files {
        let name = format!("{showing:?}");
        let (key, request, certificate) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let host = if showing == Showing::OtherHost { "DNS:elsewhere.example" } else { "IP:127.0.0.1" };
        let extension = format!("subjectAltName={host}");
        if showing == Showing::SelfSigned {
            let subject = ["req", "-x509", "-subj", "/CN=server", "-days", "2", "-addext", &extension];
            self.openssl(&subject, &[&NEW_KEY[..], &[&key, "-out", &certificate]].concat());
        } else {
            let subject = ["req", "-new", "-subj", "/CN=server"];
            self.openssl(&subject, &[&NEW_KEY[..], &[&key, "-out", &request]].concat());
            std::fs::write(self.dir.path().join("extension"), extension).unwrap();
            let days = if showing == Showing::Expired { "-1" } else { "2" };
            let sign = ["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
            self.openssl(&sign, &["-days", days, "-extfile", "extension", "-out", &certificate]);
        }
        let path = |file: String| {
            let path = self.dir.path().join(file);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            path
        };
        Files { certificate: path(certificate), key: path(key) }
    }

    fn openssl(&self, what: &[&str], how: &[&str]) {
        let output = Command::new("openssl")
            .args(what)
            .args(how)
            .current_dir(self.dir.path())
            .output()
            .expect("openssl on PATH (`make test` installs it)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
