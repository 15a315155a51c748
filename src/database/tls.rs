//! The client's side of TLS.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use native_tls::{Certificate, TlsConnector};

use super::{Config, Error, TlsMode};

/// The last connector, and what it was made from: the library reads the system's authorities for each, which takes a tenth of a second
/// of CPU time, and needs them for none with others.
static LAST: Mutex<Option<Made>> = Mutex::new(None);

struct Made {
    tls: TlsMode,
    /// What `ca_file` held.
    pem: Option<Vec<u8>>,
    connector: TlsConnector,
}

/// Reads `ca_file` each time, so that a new authority needs no restart.
pub(super) fn connector(config: &Config) -> Result<TlsConnector, Error> {
    let unusable = |path: &Path, error: &dyn fmt::Display| Error::Authorities(format!("{}: {error}", path.display()));
    let pem = config.ca_file.as_ref().map(|path| crate::file::bytes(path).map_err(|error| unusable(path, &error)));
    let pem = pem.transpose()?;
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = &*last
        && (made.tls, &made.pem) == (config.tls, &pem)
    {
        return Ok(made.connector.clone());
    }
    let mut builder = TlsConnector::builder();
    if let (Some(path), Some(pem)) = (&config.ca_file, &pem) {
        let certificates = Certificate::stack_from_pem(pem).map_err(|error| unusable(path, &error))?;
        builder.disable_built_in_roots(true);
        for certificate in certificates {
            builder.add_root_certificate(certificate);
        }
    }
    match config.tls {
        TlsMode::VerifyFull | TlsMode::Disable => {}
        TlsMode::VerifyCa => {
            builder.danger_accept_invalid_hostnames(true);
        }
        TlsMode::Require => {
            builder.danger_accept_invalid_hostnames(true).danger_accept_invalid_certs(true);
        }
    }
    let connector = builder.build().map_err(|error| Error::Authorities(error.to_string()))?;
    *last = Some(Made { tls: config.tls, pem, connector: connector.clone() });
    Ok(connector)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_share_one_reading_of_authorities() {
        let cpu =
            || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).expect("positive");
        for tls in [TlsMode::Disable, TlsMode::VerifyFull] {
            let config = Config {
                connection: tokio_postgres::Config::new(),
                tls,
                auth: None,
                password_file: None,
                ca_file: None,
                pool_size: 4,
                dedicated: 0,
            };
            let begun = cpu();
            for _ in 0..100 {
                connector(&config).expect("builds");
            }
            let took = cpu() - begun;
            assert!(took < Duration::from_secs(3), "{tls:?}: {took:?} of CPU time");
        }
    }
}
