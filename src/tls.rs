//! The client's side of TLS, for PostgreSQL, HTTP and SMTP alike.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use native_tls::{Certificate, Identity, Protocol, TlsConnector};
use openssl::asn1::Asn1Time;
use openssl::error::ErrorStack;
use openssl::x509::X509;
use sha2::{Digest as _, Sha256};

/// The protocols that a client offers (ALPN, RFC 7301), by which what stands before a server may choose; none where there is one only.
pub(crate) type Protocols = &'static [&'static str];

/// What a server's certificate must prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// That an authority vouches for it under the server's name.
    Name,
    /// That an authority vouches for it, whatever its name.
    Authority,
    /// Nothing: it only encrypts.
    Nothing,
}

/// The latest connectors, each with what it was made from. The library reads the system's authorities for each, which takes a tenth
/// of a second of CPU time, and needs them for none that has authorities of its own.
static LATEST: Mutex<Vec<Made>> = Mutex::new(Vec::new());
/// PostgreSQL's, that of HTTP, and those of email servers with authorities of their own.
const KEPT: usize = 8;

struct Made {
    verify: Verify,
    protocols: Protocols,
    /// What the file of authorities held.
    pem: Option<Vec<u8>>,
    own: Option<OwnCertificate>,
    connector: TlsConnector,
}

/// Whether TLS has ended with an alert of the server's about the client's certificate (RFC 8446, section 6.2): OpenSSL's `words` for it have
/// its number.
pub(crate) fn refuses_certificate(words: &str) -> bool {
    let number =
        words.split("SSL alert number ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    matches!(number.and_then(|number| number.parse().ok()), Some(42..=46 | 48 | 49 | 116_u8))
}

/// A connector that trusts the authorities of a file, or the system's without one. The file is read each time, so that a new
/// authority needs no restart; the system's are read once. Where nothing is verified, the file may hold none.
///
/// # Errors
/// What is wrong with the authorities, and in which file.
pub(crate) fn connector(verify: Verify, ca_file: Option<&Path>, protocols: Protocols) -> Result<TlsConnector, String> {
    Ok(connector_as(verify, ca_file, None, protocols)?)
}

/// What no connector can be made of.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The authorities, and why.
    Authorities(String),
    /// The client's own certificate or key, and why.
    Own(String),
}

impl From<Unusable> for String {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Authorities(reason) | Unusable::Own(reason) => reason,
        }
    }
}

/// The same, for a client that shows a certificate of its own.
///
/// # Errors
/// As for [`connector`].
pub(crate) fn connector_as(
    verify: Verify,
    ca_file: Option<&Path>,
    own: Option<OwnCertificate>,
    protocols: Protocols,
) -> Result<TlsConnector, Unusable> {
    let pem = ca_file.map(|path| named(path, crate::file::bytes(path))).transpose().map_err(Unusable::Authorities)?;
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_wanted =
        |made: &Made| (made.verify, made.protocols, &made.pem, &made.own) == (verify, protocols, &pem, &own);
    if let Some(at) = latest.iter().position(is_wanted) {
        // The one that was not used for longest goes first.
        latest[at..].rotate_left(1);
        return Ok(latest.last().expect("found").connector.clone());
    }
    let mut builder = TlsConnector::builder();
    builder.min_protocol_version(Some(Protocol::Tlsv12));
    builder.request_alpns(protocols);
    builder.danger_accept_invalid_hostnames(verify != Verify::Name);
    builder.danger_accept_invalid_certs(verify == Verify::Nothing);
    if let (Some(path), Some(pem)) = (ca_file, &pem) {
        let certificates = named(path, Certificate::stack_from_pem(pem)).map_err(Unusable::Authorities)?;
        if certificates.is_empty() && verify != Verify::Nothing {
            return Err(Unusable::Authorities(format!("{}: holds no certificate", path.display())));
        }
        builder.disable_built_in_roots(true);
        for certificate in certificates {
            builder.add_root_certificate(certificate);
        }
    }
    if let Some(own) = &own {
        builder.identity(own.identity.clone());
    }
    // Whether certificate and key belong together is found here.
    let connector = builder.build().map_err(|error| match &own {
        Some(own) => Unusable::Own(format!("{}: {error}", own.files)),
        None => Unusable::Authorities(error.to_string()),
    })?;
    if latest.len() == KEPT {
        latest.remove(0);
    }
    latest.push(Made { verify, protocols, pem, own, connector: connector.clone() });
    Ok(connector)
}

/// When the first certificate of a PEM ends, in seconds since 1970-01-01 UTC.
///
/// # Errors
/// What is wrong with the PEM.
pub(crate) fn ends(pem: &[u8]) -> Result<i64, String> {
    let of_first = || -> Result<Option<i64>, ErrorStack> {
        let Some(first) = X509::stack_from_pem(pem)?.into_iter().next() else { return Ok(None) };
        let since = Asn1Time::from_unix(0)?.diff(first.not_after())?;
        Ok(Some(i64::from(since.days) * 86_400 + i64::from(since.secs)))
    };
    of_first().map_err(|error| error.to_string())?.ok_or_else(|| "holds no certificate".to_owned())
}

/// The files of a client's own certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The certificate, and those between it and the authority, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM: PKCS #8, without a pass phrase.
    pub key: PathBuf,
}

/// How a key begins that can be used.
const PKCS8: &str = "-----BEGIN PRIVATE KEY-----";

impl IdentityFiles {
    /// When the certificate ends, in seconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// What is wrong with its file.
    pub fn ends(&self) -> Result<i64, String> {
        let pem = named(&self.certificate, crate::file::bytes(&self.certificate))?;
        named(&self.certificate, ends(&pem))
    }

    /// What they hold now.
    ///
    /// # Errors
    /// What is wrong with which file, and the way out.
    pub(crate) fn read(&self) -> Result<OwnCertificate, String> {
        let certificate = named(&self.certificate, crate::file::bytes(&self.certificate))?;
        let key = named(&self.key, crate::file::bytes(&self.key))?;
        let path = self.key.display();
        // Other programs write lines about it before.
        let Some(at) = key.windows(PKCS8.len()).position(|window| window == PKCS8.as_bytes()) else {
            return Err(format!(
                "{path}: holds no key as PKCS #8 without a pass phrase ({PKCS8}); make one of another form by: openssl pkcs8 -topk8 \
                 -nocrypt -in {path} -out NEW"
            ));
        };
        let files = format!("{} and {path}", self.certificate.display());
        let identity = Identity::from_pkcs8(&certificate, &key[at..]).map_err(|error| format!("{files}: {error}"))?;
        let digest = Sha256::new().chain_update(&certificate).chain_update(&key).finalize().into();
        Ok(OwnCertificate { files, digest, identity })
    }
}

/// A client's own certificate and key.
#[derive(Clone)]
pub(crate) struct OwnCertificate {
    /// For messages.
    files: String,
    /// Of certificate and key: the key itself is not kept beside the connector.
    digest: [u8; 32],
    identity: Identity,
}

impl PartialEq for OwnCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

fn named<T, E: std::fmt::Display>(path: &Path, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use openssl::ec::{EcGroup, EcKey};
    use openssl::hash::MessageDigest;
    use openssl::nid::Nid;
    use openssl::pkey::PKey;

    use super::*;

    #[test]
    fn connections_share_one_reading_of_authorities() {
        let cpu =
            || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).expect("positive");
        let begun = cpu();
        for _ in 0..100 {
            connector(Verify::Name, None, &[]).expect("builds");
            connector(Verify::Nothing, None, &[]).expect("builds");
        }
        let took = cpu() - begun;
        assert!(took < Duration::from_secs(3), "{took:?} of CPU time");
    }

    /// A certificate that ends then.
    fn certificate(ends: i64) -> Vec<u8> {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("a curve");
        let key = PKey::from_ec_key(EcKey::generate(&group).expect("a key")).expect("a key");
        let mut builder = X509::builder().expect("a builder");
        builder.set_version(2).expect("set");
        builder.set_pubkey(&key).expect("set");
        builder.set_not_before(&Asn1Time::from_unix(0).expect("an instant")).expect("set");
        builder.set_not_after(&Asn1Time::from_unix(ends).expect("an instant")).expect("set");
        builder.sign(&key, MessageDigest::sha256()).expect("signed");
        builder.build().to_pem().expect("PEM")
    }

    // Guarantee: secrets.certificate-end
    #[test]
    fn end_of_the_first_certificate_of_a_file_is_read() {
        // The second one has the form of years from 2050 on.
        let (first, second) = (1_795_248_000, 4_102_444_801);
        assert_eq!(ends(&certificate(first)), Ok(first));
        assert_eq!(ends(&certificate(second)), Ok(second));
        assert_eq!(ends(&[certificate(second), certificate(first)].concat()), Ok(second));
        assert_eq!(ends(b""), Err("holds no certificate".to_owned()));
        ends(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").expect_err("no certificate");
        let files = IdentityFiles { certificate: "/no/such.pem".into(), key: "/no/such.key".into() };
        assert!(files.ends().expect_err("no file").starts_with("/no/such.pem: "));
    }

    #[test]
    fn unusable_authorities_name_their_file() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("ca.pem");
        let refused = || connector(Verify::Name, Some(&path), &[]).expect_err("refused");
        assert!(refused().starts_with(path.to_str().expect("UTF-8")), "{}", refused());
        for pem in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            fs::write(&path, pem).expect("written");
            assert!(refused().starts_with(path.to_str().expect("UTF-8")), "{}", refused());
        }
        fs::write(&path, "").expect("written");
        connector(Verify::Nothing, Some(&path), &[]).expect("nothing is verified");
    }
}
