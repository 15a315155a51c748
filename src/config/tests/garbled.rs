//! Files that are almost right.

use super::*;
use crate::garbled::Garbled;

#[test]
fn garbled_files_end_in_configuration_or_named_problems() {
    let (mut taken, mut refused) = (0, 0);
    for bytes in Garbled::new("config").with(include_bytes!("../../../deploy/outbox-relay.toml")) {
        let text = String::from_utf8_lossy(&bytes);
        match Config::parse(&text, "file.toml", &Environment::new()) {
            Ok(config) => {
                taken += 1;
                let shown = config.redacted();
                assert!(toml::from_str::<toml::Value>(&shown).is_ok(), "{shown}");
            }
            Err(problems) => {
                refused += 1;
                assert!(!problems.list().is_empty() && !problems.to_string().is_empty());
            }
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
}
