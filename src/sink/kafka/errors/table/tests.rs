use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::types::RDKafkaRespErr;

use super::*;

#[test]
fn every_code_of_the_client_library_stands_in_the_table_once() {
    let known: Vec<Code> = (-200..=1000).map(|number| Code::from(RDKafkaRespErr(number))).collect();
    let known: Vec<Code> = known.into_iter().filter(|code| !matches!(code, Unlisted(_))).collect();
    assert!(known.len() > 150, "the library lists {} codes", known.len());
    // Begin and End are marks of the list itself.
    for code in known.into_iter().filter(|code| !matches!(code, Begin | End | EndAll)) {
        let times = TABLE.iter().flat_map(|meaning| meaning.codes).filter(|listed| **listed == code).count();
        assert_eq!(times, 1, "{code:?}");
    }
}
