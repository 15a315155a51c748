//! Bindings of librdkafka for the crate `rdkafka`, instead of the published `rdkafka-sys`.
//!
//! The published ones declare C enums as Rust enums, among them the error codes, whose numbers brokers send. A number that
//! the enum does not list is undefined behaviour: 32767 ended the process, 101 and 120 passed for "no error". Here each C enum
//! is an integer with named values, and the safe [`types::RDKafkaErrorCode`] keeps a number that has no name.
//!
//! Written by `scripts/kafka-bindings`; docs/adr/0027-kafka-error-codes-are-integers.md has the reasons. Everything that does
//! not depend on an enum is the published crate's, which also builds and links the C library.

#[allow(non_camel_case_types, non_upper_case_globals, non_snake_case, clippy::all)]
pub mod bindings;
#[allow(clippy::all)]
pub mod helpers;
#[allow(clippy::all)]
pub mod types;

mod metadata;

pub use bindings::*;
pub use helpers::*;
pub use metadata::rd_kafka_metadata;
pub use types::*;

// As C lays them out, and as the published bindings have it.
const _: () = {
    use std::mem::{align_of, size_of};
    assert!(size_of::<rd_kafka_resp_err_t>() == size_of::<libc::c_int>());
    assert!(size_of::<rd_kafka_message_t>() == size_of::<original::rd_kafka_message_t>());
    assert!(align_of::<rd_kafka_message_t>() == align_of::<original::rd_kafka_message_t>());
    assert!(size_of::<rd_kafka_metadata_topic_t>() == size_of::<original::rd_kafka_metadata_topic_t>());
    assert!(size_of::<rd_kafka_metadata_partition_t>() == size_of::<original::rd_kafka_metadata_partition_t>());
};
