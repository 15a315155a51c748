//! Whether what goes to the brokers can be read or altered on its way.

use crate::sink::kafka::Cluster;
use crate::source::finding::{Finding, Level};

/// Warnings only: who sets these may know the network.
pub(super) fn findings(cluster: &Cluster) -> Vec<Finding> {
    let settings = cluster.client_config();
    let is = |name, value: &str| settings.get(name).is_some_and(|set| set.eq_ignore_ascii_case(value));
    let encrypted = is("security.protocol", "SSL") || is("security.protocol", "SASL_SSL");
    let mut findings = Vec::new();
    if encrypted && is("enable.ssl.certificate.verification", "false") {
        let message = "the brokers' certificates are not verified: anybody on the way can pose as a broker";
        let fix = "Remove enable.ssl.certificate.verification, and name the authority: ssl.ca.location.";
        findings.push(Finding::new(Level::Warn, "kafka_unverified", message).setting(fix));
    } else if encrypted && is("ssl.endpoint.identification.algorithm", "none") {
        let message =
            "the names in the brokers' certificates are not compared: any certificate of the authority passes";
        let fix = "Remove ssl.endpoint.identification.algorithm.";
        findings.push(Finding::new(Level::Warn, "kafka_unverified", message).setting(fix));
    }
    if is("security.protocol", "SASL_PLAINTEXT") {
        let message = "security.protocol = SASL_PLAINTEXT: credentials and records can be read and altered on the way";
        let fix = "Set security.protocol to SASL_SSL.";
        findings.push(Finding::new(Level::Warn, "kafka_plain_text", message).setting(fix));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sink::kafka::ClusterConfig;

    fn codes(properties: &[(&str, &str)]) -> Vec<&'static str> {
        let properties: BTreeMap<_, _> =
            properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let bootstrap_servers = "127.0.0.1:1".to_owned();
        let cluster = Cluster::new(ClusterConfig { bootstrap_servers, properties, ..ClusterConfig::default() });
        findings(&cluster).iter().map(|finding| finding.code).collect()
    }

    // Guarantee: failures.transport
    #[test]
    fn transport_that_protects_nothing_is_a_finding() {
        let (ssl, sasl) = (("security.protocol", "ssl"), ("security.protocol", "sasl_plaintext"));
        let unverified = ("enable.ssl.certificate.verification", "false");
        assert_eq!(codes(&[ssl, unverified]), ["kafka_unverified"]);
        assert_eq!(codes(&[ssl, ("ssl.endpoint.identification.algorithm", "none")]), ["kafka_unverified"]);
        assert_eq!(codes(&[sasl]), ["kafka_plain_text"]);
        assert!(codes(&[ssl]).is_empty() && codes(&[unverified]).is_empty() && codes(&[]).is_empty());
    }
}
