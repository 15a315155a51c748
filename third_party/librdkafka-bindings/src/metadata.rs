//! librdkafka hands an answer about topics on as it came. `rdkafka` makes slices of its arrays and `str`s of its names without a
//! look: an array that was absent has −1 elements, a name that was absent is null, and neither is defined behaviour.

use std::ffi::CStr;
use std::ptr;

use libc::{c_char, c_int};

use crate::bindings::{self, rd_kafka_metadata as Metadata, rd_kafka_resp_err_t, rd_kafka_t, rd_kafka_topic_t};

/// As librdkafka's, except that an answer which cannot be read by `rdkafka` is `_BAD_MSG`.
///
/// # Safety
///
/// As for librdkafka's: the pointers are valid, and the answer is to be destroyed.
pub unsafe fn rd_kafka_metadata(
    rk: *mut rd_kafka_t,
    all_topics: c_int,
    only_rkt: *mut rd_kafka_topic_t,
    metadatap: *mut *const Metadata,
    timeout_ms: c_int,
) -> rd_kafka_resp_err_t {
    let error = bindings::rd_kafka_metadata(rk, all_topics, only_rkt, metadatap, timeout_ms);
    if error != rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR || (**metadatap).is_sound() {
        return error;
    }
    bindings::rd_kafka_metadata_destroy(*metadatap);
    *metadatap = ptr::null();
    rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__BAD_MSG
}

impl Metadata {
    unsafe fn is_sound(&self) -> bool {
        let brokers = elements(self.brokers, self.broker_cnt);
        let topics = elements(self.topics, self.topic_cnt);
        named(self.orig_broker_name)
            && brokers.is_some_and(|all| all.iter().all(|broker| named(broker.host)))
            && topics.is_some_and(|all| {
                all.iter().all(|topic| {
                    let partitions = elements(topic.partitions, topic.partition_cnt);
                    let sound = |partition: &bindings::rd_kafka_metadata_partition| {
                        elements(partition.replicas, partition.replica_cnt).is_some()
                            && elements(partition.isrs, partition.isr_cnt).is_some()
                    };
                    named(topic.topic) && partitions.is_some_and(|all| all.iter().all(sound))
                })
            })
    }
}

/// None where `rdkafka` would make a slice that is undefined.
unsafe fn elements<'a, T>(array: *const T, count: c_int) -> Option<&'a [T]> {
    let count = usize::try_from(count).ok()?;
    (!array.is_null() && array.is_aligned()).then(|| std::slice::from_raw_parts(array, count))
}

unsafe fn named(name: *const c_char) -> bool {
    !name.is_null() && CStr::from_ptr(name).to_str().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(topic: &mut bindings::rd_kafka_metadata_topic, count: c_int) -> Metadata {
        Metadata {
            broker_cnt: 0,
            brokers: ptr::NonNull::dangling().as_ptr(),
            topic_cnt: count,
            topics: topic,
            orig_broker_id: 1,
            orig_broker_name: c"b".as_ptr().cast_mut(),
        }
    }

    #[test]
    fn answers_that_have_no_slices_or_names_are_not_sound() {
        let good = bindings::rd_kafka_metadata_topic {
            topic: c"t".as_ptr().cast_mut(),
            partition_cnt: 0,
            partitions: ptr::NonNull::dangling().as_ptr(),
            err: rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR,
        };
        let sound = |mut topic, count| unsafe { metadata(&mut topic, count).is_sound() };
        assert!(sound(good, 1) && sound(good, 0));
        assert!(!sound(good, -1));
        assert!(!sound(bindings::rd_kafka_metadata_topic { partition_cnt: -1, ..good }, 1));
        assert!(!sound(bindings::rd_kafka_metadata_topic { topic: ptr::null_mut(), ..good }, 1));
        assert!(!sound(bindings::rd_kafka_metadata_topic { topic: c"\xff".as_ptr().cast_mut(), ..good }, 1));
        let replicas = bindings::rd_kafka_metadata_partition {
            id: 0,
            err: rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR,
            leader: 1,
            replica_cnt: -1,
            replicas: ptr::NonNull::dangling().as_ptr(),
            isr_cnt: 0,
            isrs: ptr::NonNull::dangling().as_ptr(),
        };
        let mut partitions = [replicas];
        assert!(!sound(bindings::rd_kafka_metadata_topic { partition_cnt: 1, partitions: partitions.as_mut_ptr(), ..good }, 1));
    }
}
