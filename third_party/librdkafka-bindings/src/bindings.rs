// Written by scripts/kafka-bindings from rdkafka-sys 4.10.0+2.12.1; do not edit.

#[allow(unused_imports)]
use libc::{c_char, c_int, c_void, sockaddr, FILE};

pub use original::bindings::*;

#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_type_t(pub u32);
impl rd_kafka_type_t {
    pub const RD_KAFKA_PRODUCER: Self = Self(0);
    pub const RD_KAFKA_CONSUMER: Self = Self(1);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_resp_err_t(pub i32);
impl rd_kafka_resp_err_t {
    pub const RD_KAFKA_RESP_ERR__BEGIN: Self = Self(-200);
    pub const RD_KAFKA_RESP_ERR__BAD_MSG: Self = Self(-199);
    pub const RD_KAFKA_RESP_ERR__BAD_COMPRESSION: Self = Self(-198);
    pub const RD_KAFKA_RESP_ERR__DESTROY: Self = Self(-197);
    pub const RD_KAFKA_RESP_ERR__FAIL: Self = Self(-196);
    pub const RD_KAFKA_RESP_ERR__TRANSPORT: Self = Self(-195);
    pub const RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE: Self = Self(-194);
    pub const RD_KAFKA_RESP_ERR__RESOLVE: Self = Self(-193);
    pub const RD_KAFKA_RESP_ERR__MSG_TIMED_OUT: Self = Self(-192);
    pub const RD_KAFKA_RESP_ERR__PARTITION_EOF: Self = Self(-191);
    pub const RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: Self = Self(-190);
    pub const RD_KAFKA_RESP_ERR__FS: Self = Self(-189);
    pub const RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC: Self = Self(-188);
    pub const RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: Self = Self(-187);
    pub const RD_KAFKA_RESP_ERR__INVALID_ARG: Self = Self(-186);
    pub const RD_KAFKA_RESP_ERR__TIMED_OUT: Self = Self(-185);
    pub const RD_KAFKA_RESP_ERR__QUEUE_FULL: Self = Self(-184);
    pub const RD_KAFKA_RESP_ERR__ISR_INSUFF: Self = Self(-183);
    pub const RD_KAFKA_RESP_ERR__NODE_UPDATE: Self = Self(-182);
    pub const RD_KAFKA_RESP_ERR__SSL: Self = Self(-181);
    pub const RD_KAFKA_RESP_ERR__WAIT_COORD: Self = Self(-180);
    pub const RD_KAFKA_RESP_ERR__UNKNOWN_GROUP: Self = Self(-179);
    pub const RD_KAFKA_RESP_ERR__IN_PROGRESS: Self = Self(-178);
    pub const RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS: Self = Self(-177);
    pub const RD_KAFKA_RESP_ERR__EXISTING_SUBSCRIPTION: Self = Self(-176);
    pub const RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: Self = Self(-175);
    pub const RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: Self = Self(-174);
    pub const RD_KAFKA_RESP_ERR__CONFLICT: Self = Self(-173);
    pub const RD_KAFKA_RESP_ERR__STATE: Self = Self(-172);
    pub const RD_KAFKA_RESP_ERR__UNKNOWN_PROTOCOL: Self = Self(-171);
    pub const RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED: Self = Self(-170);
    pub const RD_KAFKA_RESP_ERR__AUTHENTICATION: Self = Self(-169);
    pub const RD_KAFKA_RESP_ERR__NO_OFFSET: Self = Self(-168);
    pub const RD_KAFKA_RESP_ERR__OUTDATED: Self = Self(-167);
    pub const RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE: Self = Self(-166);
    pub const RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE: Self = Self(-165);
    pub const RD_KAFKA_RESP_ERR__WAIT_CACHE: Self = Self(-164);
    pub const RD_KAFKA_RESP_ERR__INTR: Self = Self(-163);
    pub const RD_KAFKA_RESP_ERR__KEY_SERIALIZATION: Self = Self(-162);
    pub const RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION: Self = Self(-161);
    pub const RD_KAFKA_RESP_ERR__KEY_DESERIALIZATION: Self = Self(-160);
    pub const RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION: Self = Self(-159);
    pub const RD_KAFKA_RESP_ERR__PARTIAL: Self = Self(-158);
    pub const RD_KAFKA_RESP_ERR__READ_ONLY: Self = Self(-157);
    pub const RD_KAFKA_RESP_ERR__NOENT: Self = Self(-156);
    pub const RD_KAFKA_RESP_ERR__UNDERFLOW: Self = Self(-155);
    pub const RD_KAFKA_RESP_ERR__INVALID_TYPE: Self = Self(-154);
    pub const RD_KAFKA_RESP_ERR__RETRY: Self = Self(-153);
    pub const RD_KAFKA_RESP_ERR__PURGE_QUEUE: Self = Self(-152);
    pub const RD_KAFKA_RESP_ERR__PURGE_INFLIGHT: Self = Self(-151);
    pub const RD_KAFKA_RESP_ERR__FATAL: Self = Self(-150);
    pub const RD_KAFKA_RESP_ERR__INCONSISTENT: Self = Self(-149);
    pub const RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE: Self = Self(-148);
    pub const RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED: Self = Self(-147);
    pub const RD_KAFKA_RESP_ERR__UNKNOWN_BROKER: Self = Self(-146);
    pub const RD_KAFKA_RESP_ERR__NOT_CONFIGURED: Self = Self(-145);
    pub const RD_KAFKA_RESP_ERR__FENCED: Self = Self(-144);
    pub const RD_KAFKA_RESP_ERR__APPLICATION: Self = Self(-143);
    pub const RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST: Self = Self(-142);
    pub const RD_KAFKA_RESP_ERR__NOOP: Self = Self(-141);
    pub const RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: Self = Self(-140);
    pub const RD_KAFKA_RESP_ERR__LOG_TRUNCATION: Self = Self(-139);
    pub const RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD: Self = Self(-138);
    pub const RD_KAFKA_RESP_ERR__DESTROY_BROKER: Self = Self(-137);
    pub const RD_KAFKA_RESP_ERR__END: Self = Self(-100);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN: Self = Self(-1);
    pub const RD_KAFKA_RESP_ERR_NO_ERROR: Self = Self(0);
    pub const RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE: Self = Self(1);
    pub const RD_KAFKA_RESP_ERR_INVALID_MSG: Self = Self(2);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: Self = Self(3);
    pub const RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE: Self = Self(4);
    pub const RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE: Self = Self(5);
    pub const RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION: Self = Self(6);
    pub const RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT: Self = Self(7);
    pub const RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE: Self = Self(8);
    pub const RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE: Self = Self(9);
    pub const RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: Self = Self(10);
    pub const RD_KAFKA_RESP_ERR_STALE_CTRL_EPOCH: Self = Self(11);
    pub const RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE: Self = Self(12);
    pub const RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION: Self = Self(13);
    pub const RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS: Self = Self(14);
    pub const RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    pub const RD_KAFKA_RESP_ERR_NOT_COORDINATOR: Self = Self(16);
    pub const RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION: Self = Self(17);
    pub const RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE: Self = Self(18);
    pub const RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS: Self = Self(19);
    pub const RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND: Self = Self(20);
    pub const RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS: Self = Self(21);
    pub const RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION: Self = Self(22);
    pub const RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL: Self = Self(23);
    pub const RD_KAFKA_RESP_ERR_INVALID_GROUP_ID: Self = Self(24);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID: Self = Self(25);
    pub const RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT: Self = Self(26);
    pub const RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS: Self = Self(27);
    pub const RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE: Self = Self(28);
    pub const RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED: Self = Self(29);
    pub const RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED: Self = Self(30);
    pub const RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: Self = Self(31);
    pub const RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP: Self = Self(32);
    pub const RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM: Self = Self(33);
    pub const RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE: Self = Self(34);
    pub const RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION: Self = Self(35);
    pub const RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: Self = Self(36);
    pub const RD_KAFKA_RESP_ERR_INVALID_PARTITIONS: Self = Self(37);
    pub const RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR: Self = Self(38);
    pub const RD_KAFKA_RESP_ERR_INVALID_REPLICA_ASSIGNMENT: Self = Self(39);
    pub const RD_KAFKA_RESP_ERR_INVALID_CONFIG: Self = Self(40);
    pub const RD_KAFKA_RESP_ERR_NOT_CONTROLLER: Self = Self(41);
    pub const RD_KAFKA_RESP_ERR_INVALID_REQUEST: Self = Self(42);
    pub const RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT: Self = Self(43);
    pub const RD_KAFKA_RESP_ERR_POLICY_VIOLATION: Self = Self(44);
    pub const RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER: Self = Self(45);
    pub const RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER: Self = Self(46);
    pub const RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH: Self = Self(47);
    pub const RD_KAFKA_RESP_ERR_INVALID_TXN_STATE: Self = Self(48);
    pub const RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING: Self = Self(49);
    pub const RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT: Self = Self(50);
    pub const RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS: Self = Self(51);
    pub const RD_KAFKA_RESP_ERR_TRANSACTION_COORDINATOR_FENCED: Self = Self(52);
    pub const RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Self = Self(53);
    pub const RD_KAFKA_RESP_ERR_SECURITY_DISABLED: Self = Self(54);
    pub const RD_KAFKA_RESP_ERR_OPERATION_NOT_ATTEMPTED: Self = Self(55);
    pub const RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR: Self = Self(56);
    pub const RD_KAFKA_RESP_ERR_LOG_DIR_NOT_FOUND: Self = Self(57);
    pub const RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED: Self = Self(58);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID: Self = Self(59);
    pub const RD_KAFKA_RESP_ERR_REASSIGNMENT_IN_PROGRESS: Self = Self(60);
    pub const RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTH_DISABLED: Self = Self(61);
    pub const RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_NOT_FOUND: Self = Self(62);
    pub const RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_OWNER_MISMATCH: Self = Self(63);
    pub const RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Self = Self(64);
    pub const RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTHORIZATION_FAILED: Self = Self(65);
    pub const RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_EXPIRED: Self = Self(66);
    pub const RD_KAFKA_RESP_ERR_INVALID_PRINCIPAL_TYPE: Self = Self(67);
    pub const RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP: Self = Self(68);
    pub const RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND: Self = Self(69);
    pub const RD_KAFKA_RESP_ERR_FETCH_SESSION_ID_NOT_FOUND: Self = Self(70);
    pub const RD_KAFKA_RESP_ERR_INVALID_FETCH_SESSION_EPOCH: Self = Self(71);
    pub const RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND: Self = Self(72);
    pub const RD_KAFKA_RESP_ERR_TOPIC_DELETION_DISABLED: Self = Self(73);
    pub const RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH: Self = Self(74);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH: Self = Self(75);
    pub const RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE: Self = Self(76);
    pub const RD_KAFKA_RESP_ERR_STALE_BROKER_EPOCH: Self = Self(77);
    pub const RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE: Self = Self(78);
    pub const RD_KAFKA_RESP_ERR_MEMBER_ID_REQUIRED: Self = Self(79);
    pub const RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE: Self = Self(80);
    pub const RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED: Self = Self(81);
    pub const RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: Self = Self(82);
    pub const RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE: Self = Self(83);
    pub const RD_KAFKA_RESP_ERR_ELECTION_NOT_NEEDED: Self = Self(84);
    pub const RD_KAFKA_RESP_ERR_NO_REASSIGNMENT_IN_PROGRESS: Self = Self(85);
    pub const RD_KAFKA_RESP_ERR_GROUP_SUBSCRIBED_TO_TOPIC: Self = Self(86);
    pub const RD_KAFKA_RESP_ERR_INVALID_RECORD: Self = Self(87);
    pub const RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT: Self = Self(88);
    pub const RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED: Self = Self(89);
    pub const RD_KAFKA_RESP_ERR_PRODUCER_FENCED: Self = Self(90);
    pub const RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND: Self = Self(91);
    pub const RD_KAFKA_RESP_ERR_DUPLICATE_RESOURCE: Self = Self(92);
    pub const RD_KAFKA_RESP_ERR_UNACCEPTABLE_CREDENTIAL: Self = Self(93);
    pub const RD_KAFKA_RESP_ERR_INCONSISTENT_VOTER_SET: Self = Self(94);
    pub const RD_KAFKA_RESP_ERR_INVALID_UPDATE_VERSION: Self = Self(95);
    pub const RD_KAFKA_RESP_ERR_FEATURE_UPDATE_FAILED: Self = Self(96);
    pub const RD_KAFKA_RESP_ERR_PRINCIPAL_DESERIALIZATION_FAILURE: Self = Self(97);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID: Self = Self(100);
    pub const RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH: Self = Self(110);
    pub const RD_KAFKA_RESP_ERR_UNRELEASED_INSTANCE_ID: Self = Self(111);
    pub const RD_KAFKA_RESP_ERR_UNSUPPORTED_ASSIGNOR: Self = Self(112);
    pub const RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH: Self = Self(113);
    pub const RD_KAFKA_RESP_ERR_UNKNOWN_SUBSCRIPTION_ID: Self = Self(117);
    pub const RD_KAFKA_RESP_ERR_TELEMETRY_TOO_LARGE: Self = Self(118);
    pub const RD_KAFKA_RESP_ERR_REBOOTSTRAP_REQUIRED: Self = Self(129);
    pub const RD_KAFKA_RESP_ERR_END_ALL: Self = Self(130);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_err_desc {
    pub code: rd_kafka_resp_err_t,
    pub name: *const c_char,
    pub desc: *const c_char,
}
extern "C" {
    pub fn rd_kafka_get_err_descs(errdescs: *mut *const rd_kafka_err_desc, cntp: *mut usize);
}
extern "C" {
    pub fn rd_kafka_err2str(err: rd_kafka_resp_err_t) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_err2name(err: rd_kafka_resp_err_t) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_last_error() -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_errno2err(errnox: c_int) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_fatal_error(
        rk: *mut rd_kafka_t,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_test_fatal_error(
        rk: *mut rd_kafka_t,
        err: rd_kafka_resp_err_t,
        reason: *const c_char,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_error_code(error: *const rd_kafka_error_t) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_error_new(
        code: rd_kafka_resp_err_t,
        fmt: *const c_char,
        ...
    ) -> *mut rd_kafka_error_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_topic_partition_s {
    pub topic: *mut c_char,
    pub partition: i32,
    pub offset: i64,
    pub metadata: *mut c_void,
    pub metadata_size: usize,
    pub opaque: *mut c_void,
    pub err: rd_kafka_resp_err_t,
    pub _private: *mut c_void,
}
pub type rd_kafka_topic_partition_t = rd_kafka_topic_partition_s;
extern "C" {
    pub fn rd_kafka_topic_partition_destroy(rktpar: *mut rd_kafka_topic_partition_t);
}
extern "C" {
    pub fn rd_kafka_topic_partition_set_leader_epoch(
        rktpar: *mut rd_kafka_topic_partition_t,
        leader_epoch: i32,
    );
}
extern "C" {
    pub fn rd_kafka_topic_partition_get_leader_epoch(
        rktpar: *const rd_kafka_topic_partition_t,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_topic_partition_list_s {
    pub cnt: c_int,
    pub size: c_int,
    pub elems: *mut rd_kafka_topic_partition_t,
}
pub type rd_kafka_topic_partition_list_t = rd_kafka_topic_partition_list_s;
extern "C" {
    pub fn rd_kafka_topic_partition_list_new(size: c_int) -> *mut rd_kafka_topic_partition_list_t;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_destroy(rkparlist: *mut rd_kafka_topic_partition_list_t);
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_add(
        rktparlist: *mut rd_kafka_topic_partition_list_t,
        topic: *const c_char,
        partition: i32,
    ) -> *mut rd_kafka_topic_partition_t;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_add_range(
        rktparlist: *mut rd_kafka_topic_partition_list_t,
        topic: *const c_char,
        start: i32,
        stop: i32,
    );
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_del(
        rktparlist: *mut rd_kafka_topic_partition_list_t,
        topic: *const c_char,
        partition: i32,
    ) -> c_int;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_del_by_idx(
        rktparlist: *mut rd_kafka_topic_partition_list_t,
        idx: c_int,
    ) -> c_int;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_copy(
        src: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_topic_partition_list_t;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_set_offset(
        rktparlist: *mut rd_kafka_topic_partition_list_t,
        topic: *const c_char,
        partition: i32,
        offset: i64,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_find(
        rktparlist: *const rd_kafka_topic_partition_list_t,
        topic: *const c_char,
        partition: i32,
    ) -> *mut rd_kafka_topic_partition_t;
}
extern "C" {
    pub fn rd_kafka_topic_partition_list_sort(
        rktparlist: *mut rd_kafka_topic_partition_list_t,
        cmp: Option<
            unsafe extern "C" fn(
                a: *const c_void,
                b: *const c_void,
                cmp_opaque: *mut c_void,
            ) -> c_int,
        >,
        cmp_opaque: *mut c_void,
    );
}
extern "C" {
    pub fn rd_kafka_header_add(
        hdrs: *mut rd_kafka_headers_t,
        name: *const c_char,
        name_size: isize,
        value: *const c_void,
        value_size: isize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_header_remove(
        hdrs: *mut rd_kafka_headers_t,
        name: *const c_char,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_header_get_last(
        hdrs: *const rd_kafka_headers_t,
        name: *const c_char,
        valuep: *mut *const c_void,
        sizep: *mut usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_header_get(
        hdrs: *const rd_kafka_headers_t,
        idx: usize,
        name: *const c_char,
        valuep: *mut *const c_void,
        sizep: *mut usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_header_get_all(
        hdrs: *const rd_kafka_headers_t,
        idx: usize,
        namep: *mut *const c_char,
        valuep: *mut *const c_void,
        sizep: *mut usize,
    ) -> rd_kafka_resp_err_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_message_s {
    pub err: rd_kafka_resp_err_t,
    pub rkt: *mut rd_kafka_topic_t,
    pub partition: i32,
    pub payload: *mut c_void,
    pub len: usize,
    pub key: *mut c_void,
    pub key_len: usize,
    pub offset: i64,
    pub _private: *mut c_void,
}
pub type rd_kafka_message_t = rd_kafka_message_s;
extern "C" {
    pub fn rd_kafka_message_destroy(rkmessage: *mut rd_kafka_message_t);
}
extern "C" {
    pub fn rd_kafka_message_errstr(rkmessage: *const rd_kafka_message_t) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_message_produce_errstr(rkmessage: *const rd_kafka_message_t) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_message_timestamp(
        rkmessage: *const rd_kafka_message_t,
        tstype: *mut rd_kafka_timestamp_type_t,
    ) -> i64;
}
extern "C" {
    pub fn rd_kafka_message_latency(rkmessage: *const rd_kafka_message_t) -> i64;
}
extern "C" {
    pub fn rd_kafka_message_broker_id(rkmessage: *const rd_kafka_message_t) -> i32;
}
extern "C" {
    pub fn rd_kafka_message_headers(
        rkmessage: *const rd_kafka_message_t,
        hdrsp: *mut *mut rd_kafka_headers_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_message_detach_headers(
        rkmessage: *mut rd_kafka_message_t,
        hdrsp: *mut *mut rd_kafka_headers_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_message_set_headers(
        rkmessage: *mut rd_kafka_message_t,
        hdrs: *mut rd_kafka_headers_t,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_msg_status_t(pub u32);
impl rd_kafka_msg_status_t {
    pub const RD_KAFKA_MSG_STATUS_NOT_PERSISTED: Self = Self(0);
    pub const RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED: Self = Self(1);
    pub const RD_KAFKA_MSG_STATUS_PERSISTED: Self = Self(2);
}
extern "C" {
    pub fn rd_kafka_message_status(rkmessage: *const rd_kafka_message_t) -> rd_kafka_msg_status_t;
}
extern "C" {
    pub fn rd_kafka_message_leader_epoch(rkmessage: *const rd_kafka_message_t) -> i32;
}
extern "C" {
    pub fn rd_kafka_conf_set_dr_cb(
        conf: *mut rd_kafka_conf_t,
        dr_cb: Option<
            unsafe extern "C" fn(
                rk: *mut rd_kafka_t,
                payload: *mut c_void,
                len: usize,
                err: rd_kafka_resp_err_t,
                opaque: *mut c_void,
                msg_opaque: *mut c_void,
            ),
        >,
    );
}
extern "C" {
    pub fn rd_kafka_conf_set_dr_msg_cb(
        conf: *mut rd_kafka_conf_t,
        dr_msg_cb: Option<
            unsafe extern "C" fn(
                rk: *mut rd_kafka_t,
                rkmessage: *const rd_kafka_message_t,
                opaque: *mut c_void,
            ),
        >,
    );
}
extern "C" {
    pub fn rd_kafka_conf_set_consume_cb(
        conf: *mut rd_kafka_conf_t,
        consume_cb: Option<
            unsafe extern "C" fn(rkmessage: *mut rd_kafka_message_t, opaque: *mut c_void),
        >,
    );
}
extern "C" {
    pub fn rd_kafka_conf_set_rebalance_cb(
        conf: *mut rd_kafka_conf_t,
        rebalance_cb: Option<
            unsafe extern "C" fn(
                rk: *mut rd_kafka_t,
                err: rd_kafka_resp_err_t,
                partitions: *mut rd_kafka_topic_partition_list_t,
                opaque: *mut c_void,
            ),
        >,
    );
}
extern "C" {
    pub fn rd_kafka_conf_set_offset_commit_cb(
        conf: *mut rd_kafka_conf_t,
        offset_commit_cb: Option<
            unsafe extern "C" fn(
                rk: *mut rd_kafka_t,
                err: rd_kafka_resp_err_t,
                offsets: *mut rd_kafka_topic_partition_list_t,
                opaque: *mut c_void,
            ),
        >,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_cert_type_t(pub u32);
impl rd_kafka_cert_type_t {
    pub const RD_KAFKA_CERT_PUBLIC_KEY: Self = Self(0);
    pub const RD_KAFKA_CERT_PRIVATE_KEY: Self = Self(1);
    pub const RD_KAFKA_CERT_CA: Self = Self(2);
    pub const RD_KAFKA_CERT__CNT: Self = Self(3);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_cert_enc_t(pub u32);
impl rd_kafka_cert_enc_t {
    pub const RD_KAFKA_CERT_ENC_PKCS12: Self = Self(0);
    pub const RD_KAFKA_CERT_ENC_DER: Self = Self(1);
    pub const RD_KAFKA_CERT_ENC_PEM: Self = Self(2);
    pub const RD_KAFKA_CERT_ENC__CNT: Self = Self(3);
}
extern "C" {
    pub fn rd_kafka_conf_set_ssl_cert(
        conf: *mut rd_kafka_conf_t,
        cert_type: rd_kafka_cert_type_t,
        cert_enc: rd_kafka_cert_enc_t,
        buffer: *const c_void,
        size: usize,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_conf_res_t;
}
extern "C" {
    pub fn rd_kafka_topic_conf_set_msg_order_cmp(
        topic_conf: *mut rd_kafka_topic_conf_t,
        msg_order_cmp: Option<
            unsafe extern "C" fn(
                a: *const rd_kafka_message_t,
                b: *const rd_kafka_message_t,
            ) -> c_int,
        >,
    );
}
extern "C" {
    pub fn rd_kafka_new(
        type_: rd_kafka_type_t,
        conf: *mut rd_kafka_conf_t,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> *mut rd_kafka_t;
}
extern "C" {
    pub fn rd_kafka_type(rk: *const rd_kafka_t) -> rd_kafka_type_t;
}
extern "C" {
    pub fn rd_kafka_pause_partitions(
        rk: *mut rd_kafka_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_resume_partitions(
        rk: *mut rd_kafka_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_query_watermark_offsets(
        rk: *mut rd_kafka_t,
        topic: *const c_char,
        partition: i32,
        low: *mut i64,
        high: *mut i64,
        timeout_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_get_watermark_offsets(
        rk: *mut rd_kafka_t,
        topic: *const c_char,
        partition: i32,
        low: *mut i64,
        high: *mut i64,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_offsets_for_times(
        rk: *mut rd_kafka_t,
        offsets: *mut rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_set_log_queue(
        rk: *mut rd_kafka_t,
        rkqu: *mut rd_kafka_queue_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_seek(
        rkt: *mut rd_kafka_topic_t,
        partition: i32,
        offset: i64,
        timeout_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_seek_partitions(
        rk: *mut rd_kafka_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_consume(
        rkt: *mut rd_kafka_topic_t,
        partition: i32,
        timeout_ms: c_int,
    ) -> *mut rd_kafka_message_t;
}
extern "C" {
    pub fn rd_kafka_consume_batch(
        rkt: *mut rd_kafka_topic_t,
        partition: i32,
        timeout_ms: c_int,
        rkmessages: *mut *mut rd_kafka_message_t,
        rkmessages_size: usize,
    ) -> isize;
}
extern "C" {
    pub fn rd_kafka_consume_callback(
        rkt: *mut rd_kafka_topic_t,
        partition: i32,
        timeout_ms: c_int,
        consume_cb: Option<
            unsafe extern "C" fn(rkmessage: *mut rd_kafka_message_t, commit_opaque: *mut c_void),
        >,
        commit_opaque: *mut c_void,
    ) -> c_int;
}
extern "C" {
    pub fn rd_kafka_consume_queue(
        rkqu: *mut rd_kafka_queue_t,
        timeout_ms: c_int,
    ) -> *mut rd_kafka_message_t;
}
extern "C" {
    pub fn rd_kafka_consume_batch_queue(
        rkqu: *mut rd_kafka_queue_t,
        timeout_ms: c_int,
        rkmessages: *mut *mut rd_kafka_message_t,
        rkmessages_size: usize,
    ) -> isize;
}
extern "C" {
    pub fn rd_kafka_consume_callback_queue(
        rkqu: *mut rd_kafka_queue_t,
        timeout_ms: c_int,
        consume_cb: Option<
            unsafe extern "C" fn(rkmessage: *mut rd_kafka_message_t, commit_opaque: *mut c_void),
        >,
        commit_opaque: *mut c_void,
    ) -> c_int;
}
extern "C" {
    pub fn rd_kafka_offset_store(
        rkt: *mut rd_kafka_topic_t,
        partition: i32,
        offset: i64,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_offsets_store(
        rk: *mut rd_kafka_t,
        offsets: *mut rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_offset_store_message(
        rkmessage: *mut rd_kafka_message_t,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_subscribe(
        rk: *mut rd_kafka_t,
        topics: *const rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_unsubscribe(rk: *mut rd_kafka_t) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_subscription(
        rk: *mut rd_kafka_t,
        topics: *mut *mut rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_consumer_poll(
        rk: *mut rd_kafka_t,
        timeout_ms: c_int,
    ) -> *mut rd_kafka_message_t;
}
extern "C" {
    pub fn rd_kafka_consumer_close(rk: *mut rd_kafka_t) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_incremental_assign(
        rk: *mut rd_kafka_t,
        partitions: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_incremental_unassign(
        rk: *mut rd_kafka_t,
        partitions: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_assign(
        rk: *mut rd_kafka_t,
        partitions: *const rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_assignment(
        rk: *mut rd_kafka_t,
        partitions: *mut *mut rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_commit(
        rk: *mut rd_kafka_t,
        offsets: *const rd_kafka_topic_partition_list_t,
        async_: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_commit_message(
        rk: *mut rd_kafka_t,
        rkmessage: *const rd_kafka_message_t,
        async_: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_commit_queue(
        rk: *mut rd_kafka_t,
        offsets: *const rd_kafka_topic_partition_list_t,
        rkqu: *mut rd_kafka_queue_t,
        cb: Option<
            unsafe extern "C" fn(
                rk: *mut rd_kafka_t,
                err: rd_kafka_resp_err_t,
                offsets: *mut rd_kafka_topic_partition_list_t,
                commit_opaque: *mut c_void,
            ),
        >,
        commit_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_committed(
        rk: *mut rd_kafka_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_position(
        rk: *mut rd_kafka_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_producev(rk: *mut rd_kafka_t, ...) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_produce_batch(
        rkt: *mut rd_kafka_topic_t,
        partition: i32,
        msgflags: c_int,
        rkmessages: *mut rd_kafka_message_t,
        message_cnt: c_int,
    ) -> c_int;
}
extern "C" {
    pub fn rd_kafka_flush(rk: *mut rd_kafka_t, timeout_ms: c_int) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_purge(rk: *mut rd_kafka_t, purge_flags: c_int) -> rd_kafka_resp_err_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_metadata_partition {
    pub id: i32,
    pub err: rd_kafka_resp_err_t,
    pub leader: i32,
    pub replica_cnt: c_int,
    pub replicas: *mut i32,
    pub isr_cnt: c_int,
    pub isrs: *mut i32,
}
pub type rd_kafka_metadata_partition_t = rd_kafka_metadata_partition;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_metadata_topic {
    pub topic: *mut c_char,
    pub partition_cnt: c_int,
    pub partitions: *mut rd_kafka_metadata_partition,
    pub err: rd_kafka_resp_err_t,
}
pub type rd_kafka_metadata_topic_t = rd_kafka_metadata_topic;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_metadata {
    pub broker_cnt: c_int,
    pub brokers: *mut rd_kafka_metadata_broker,
    pub topic_cnt: c_int,
    pub topics: *mut rd_kafka_metadata_topic,
    pub orig_broker_id: i32,
    pub orig_broker_name: *mut c_char,
}
pub type rd_kafka_metadata_t = rd_kafka_metadata;
extern "C" {
    pub fn rd_kafka_metadata(
        rk: *mut rd_kafka_t,
        all_topics: c_int,
        only_rkt: *mut rd_kafka_topic_t,
        metadatap: *mut *const rd_kafka_metadata,
        timeout_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_metadata_destroy(metadata: *const rd_kafka_metadata);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_consumer_group_state_t(pub u32);
impl rd_kafka_consumer_group_state_t {
    pub const RD_KAFKA_CONSUMER_GROUP_STATE_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_CONSUMER_GROUP_STATE_PREPARING_REBALANCE: Self = Self(1);
    pub const RD_KAFKA_CONSUMER_GROUP_STATE_COMPLETING_REBALANCE: Self = Self(2);
    pub const RD_KAFKA_CONSUMER_GROUP_STATE_STABLE: Self = Self(3);
    pub const RD_KAFKA_CONSUMER_GROUP_STATE_DEAD: Self = Self(4);
    pub const RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY: Self = Self(5);
    pub const RD_KAFKA_CONSUMER_GROUP_STATE__CNT: Self = Self(6);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_consumer_group_type_t(pub u32);
impl rd_kafka_consumer_group_type_t {
    pub const RD_KAFKA_CONSUMER_GROUP_TYPE_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_CONSUMER_GROUP_TYPE_CONSUMER: Self = Self(1);
    pub const RD_KAFKA_CONSUMER_GROUP_TYPE_CLASSIC: Self = Self(2);
    pub const RD_KAFKA_CONSUMER_GROUP_TYPE__CNT: Self = Self(3);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_group_info {
    pub broker: rd_kafka_metadata_broker,
    pub group: *mut c_char,
    pub err: rd_kafka_resp_err_t,
    pub state: *mut c_char,
    pub protocol_type: *mut c_char,
    pub protocol: *mut c_char,
    pub members: *mut rd_kafka_group_member_info,
    pub member_cnt: c_int,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct rd_kafka_group_list {
    pub groups: *mut rd_kafka_group_info,
    pub group_cnt: c_int,
}
extern "C" {
    pub fn rd_kafka_list_groups(
        rk: *mut rd_kafka_t,
        group: *const c_char,
        grplistp: *mut *const rd_kafka_group_list,
        timeout_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_consumer_group_state_name(
        state: rd_kafka_consumer_group_state_t,
    ) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_consumer_group_state_code(
        name: *const c_char,
    ) -> rd_kafka_consumer_group_state_t;
}
extern "C" {
    pub fn rd_kafka_consumer_group_type_name(
        type_: rd_kafka_consumer_group_type_t,
    ) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_consumer_group_type_code(name: *const c_char)
        -> rd_kafka_consumer_group_type_t;
}
extern "C" {
    pub fn rd_kafka_group_list_destroy(grplist: *const rd_kafka_group_list);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_thread_type_t(pub u32);
impl rd_kafka_thread_type_t {
    pub const RD_KAFKA_THREAD_MAIN: Self = Self(0);
    pub const RD_KAFKA_THREAD_BACKGROUND: Self = Self(1);
    pub const RD_KAFKA_THREAD_BROKER: Self = Self(2);
}
extern "C" {
    pub fn rd_kafka_poll_set_consumer(rk: *mut rd_kafka_t) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_event_message_next(rkev: *mut rd_kafka_event_t) -> *const rd_kafka_message_t;
}
extern "C" {
    pub fn rd_kafka_event_message_array(
        rkev: *mut rd_kafka_event_t,
        rkmessages: *mut *const rd_kafka_message_t,
        size: usize,
    ) -> usize;
}
extern "C" {
    pub fn rd_kafka_event_error(rkev: *mut rd_kafka_event_t) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_event_topic_partition_list(
        rkev: *mut rd_kafka_event_t,
    ) -> *mut rd_kafka_topic_partition_list_t;
}
extern "C" {
    pub fn rd_kafka_event_topic_partition(
        rkev: *mut rd_kafka_event_t,
    ) -> *mut rd_kafka_topic_partition_t;
}
pub type rd_kafka_plugin_f_conf_init_t = Option<
    unsafe extern "C" fn(
        conf: *mut rd_kafka_conf_t,
        plug_opaquep: *mut *mut c_void,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_conf_dup_t = Option<
    unsafe extern "C" fn(
        new_conf: *mut rd_kafka_conf_t,
        old_conf: *const rd_kafka_conf_t,
        filter_cnt: usize,
        filter: *mut *const c_char,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_conf_destroy_t =
    Option<unsafe extern "C" fn(ic_opaque: *mut c_void) -> rd_kafka_resp_err_t>;
pub type rd_kafka_interceptor_f_on_new_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        conf: *const rd_kafka_conf_t,
        ic_opaque: *mut c_void,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_destroy_t = Option<
    unsafe extern "C" fn(rk: *mut rd_kafka_t, ic_opaque: *mut c_void) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_send_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        rkmessage: *mut rd_kafka_message_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_acknowledgement_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        rkmessage: *mut rd_kafka_message_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_consume_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        rkmessage: *mut rd_kafka_message_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_commit_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        offsets: *const rd_kafka_topic_partition_list_t,
        err: rd_kafka_resp_err_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_request_sent_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        sockfd: c_int,
        brokername: *const c_char,
        brokerid: i32,
        ApiKey: i16,
        ApiVersion: i16,
        CorrId: i32,
        size: usize,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_response_received_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        sockfd: c_int,
        brokername: *const c_char,
        brokerid: i32,
        ApiKey: i16,
        ApiVersion: i16,
        CorrId: i32,
        size: usize,
        rtt: i64,
        err: rd_kafka_resp_err_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_thread_start_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        thread_type: rd_kafka_thread_type_t,
        thread_name: *const c_char,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_thread_exit_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        thread_type: rd_kafka_thread_type_t,
        thread_name: *const c_char,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
pub type rd_kafka_interceptor_f_on_broker_state_change_t = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        broker_id: i32,
        secproto: *const c_char,
        name: *const c_char,
        port: c_int,
        state: *const c_char,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t,
>;
extern "C" {
    pub fn rd_kafka_conf_interceptor_add_on_conf_set(
        conf: *mut rd_kafka_conf_t,
        ic_name: *const c_char,
        on_conf_set: rd_kafka_interceptor_f_on_conf_set_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_conf_interceptor_add_on_conf_dup(
        conf: *mut rd_kafka_conf_t,
        ic_name: *const c_char,
        on_conf_dup: rd_kafka_interceptor_f_on_conf_dup_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_conf_interceptor_add_on_conf_destroy(
        conf: *mut rd_kafka_conf_t,
        ic_name: *const c_char,
        on_conf_destroy: rd_kafka_interceptor_f_on_conf_destroy_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_conf_interceptor_add_on_new(
        conf: *mut rd_kafka_conf_t,
        ic_name: *const c_char,
        on_new: rd_kafka_interceptor_f_on_new_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_destroy(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_destroy: rd_kafka_interceptor_f_on_destroy_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_send(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_send: rd_kafka_interceptor_f_on_send_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_acknowledgement(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_acknowledgement: rd_kafka_interceptor_f_on_acknowledgement_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_consume(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_consume: rd_kafka_interceptor_f_on_consume_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_commit(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_commit: rd_kafka_interceptor_f_on_commit_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_request_sent(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_request_sent: rd_kafka_interceptor_f_on_request_sent_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_response_received(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_response_received: rd_kafka_interceptor_f_on_response_received_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_thread_start(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_thread_start: rd_kafka_interceptor_f_on_thread_start_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_thread_exit(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_thread_exit: rd_kafka_interceptor_f_on_thread_exit_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_interceptor_add_on_broker_state_change(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_broker_state_change: rd_kafka_interceptor_f_on_broker_state_change_t,
        ic_opaque: *mut c_void,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_topic_result_error(
        topicres: *const rd_kafka_topic_result_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_group_result_partitions(
        groupres: *const rd_kafka_group_result_t,
    ) -> *const rd_kafka_topic_partition_list_t;
}
extern "C" {
    pub fn rd_kafka_topic_partition_result_partition(
        partition_result: *const rd_kafka_topic_partition_result_t,
    ) -> *const rd_kafka_topic_partition_t;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_admin_op_t(pub u32);
impl rd_kafka_admin_op_t {
    pub const RD_KAFKA_ADMIN_OP_ANY: Self = Self(0);
    pub const RD_KAFKA_ADMIN_OP_CREATETOPICS: Self = Self(1);
    pub const RD_KAFKA_ADMIN_OP_DELETETOPICS: Self = Self(2);
    pub const RD_KAFKA_ADMIN_OP_CREATEPARTITIONS: Self = Self(3);
    pub const RD_KAFKA_ADMIN_OP_ALTERCONFIGS: Self = Self(4);
    pub const RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS: Self = Self(5);
    pub const RD_KAFKA_ADMIN_OP_DELETERECORDS: Self = Self(6);
    pub const RD_KAFKA_ADMIN_OP_DELETEGROUPS: Self = Self(7);
    pub const RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS: Self = Self(8);
    pub const RD_KAFKA_ADMIN_OP_CREATEACLS: Self = Self(9);
    pub const RD_KAFKA_ADMIN_OP_DESCRIBEACLS: Self = Self(10);
    pub const RD_KAFKA_ADMIN_OP_DELETEACLS: Self = Self(11);
    pub const RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS: Self = Self(12);
    pub const RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS: Self = Self(13);
    pub const RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS: Self = Self(14);
    pub const RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS: Self = Self(15);
    pub const RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS: Self = Self(16);
    pub const RD_KAFKA_ADMIN_OP_DESCRIBEUSERSCRAMCREDENTIALS: Self = Self(17);
    pub const RD_KAFKA_ADMIN_OP_ALTERUSERSCRAMCREDENTIALS: Self = Self(18);
    pub const RD_KAFKA_ADMIN_OP_DESCRIBETOPICS: Self = Self(19);
    pub const RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER: Self = Self(20);
    pub const RD_KAFKA_ADMIN_OP_LISTOFFSETS: Self = Self(21);
    pub const RD_KAFKA_ADMIN_OP_ELECTLEADERS: Self = Self(22);
    pub const RD_KAFKA_ADMIN_OP__CNT: Self = Self(23);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_IsolationLevel_t(pub u32);
impl rd_kafka_IsolationLevel_t {
    pub const RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED: Self = Self(0);
    pub const RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED: Self = Self(1);
}
extern "C" {
    pub fn rd_kafka_AdminOptions_new(
        rk: *mut rd_kafka_t,
        for_api: rd_kafka_admin_op_t,
    ) -> *mut rd_kafka_AdminOptions_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_request_timeout(
        options: *mut rd_kafka_AdminOptions_t,
        timeout_ms: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_operation_timeout(
        options: *mut rd_kafka_AdminOptions_t,
        timeout_ms: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_validate_only(
        options: *mut rd_kafka_AdminOptions_t,
        true_or_false: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_broker(
        options: *mut rd_kafka_AdminOptions_t,
        broker_id: i32,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_match_consumer_group_states(
        options: *mut rd_kafka_AdminOptions_t,
        consumer_group_states: *const rd_kafka_consumer_group_state_t,
        consumer_group_states_cnt: usize,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_match_consumer_group_types(
        options: *mut rd_kafka_AdminOptions_t,
        consumer_group_types: *const rd_kafka_consumer_group_type_t,
        consumer_group_types_cnt: usize,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_AdminOptions_set_isolation_level(
        options: *mut rd_kafka_AdminOptions_t,
        value: rd_kafka_IsolationLevel_t,
    ) -> *mut rd_kafka_error_t;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_AclOperation_t(pub u32);
impl rd_kafka_AclOperation_t {
    pub const RD_KAFKA_ACL_OPERATION_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_ACL_OPERATION_ANY: Self = Self(1);
    pub const RD_KAFKA_ACL_OPERATION_ALL: Self = Self(2);
    pub const RD_KAFKA_ACL_OPERATION_READ: Self = Self(3);
    pub const RD_KAFKA_ACL_OPERATION_WRITE: Self = Self(4);
    pub const RD_KAFKA_ACL_OPERATION_CREATE: Self = Self(5);
    pub const RD_KAFKA_ACL_OPERATION_DELETE: Self = Self(6);
    pub const RD_KAFKA_ACL_OPERATION_ALTER: Self = Self(7);
    pub const RD_KAFKA_ACL_OPERATION_DESCRIBE: Self = Self(8);
    pub const RD_KAFKA_ACL_OPERATION_CLUSTER_ACTION: Self = Self(9);
    pub const RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS: Self = Self(10);
    pub const RD_KAFKA_ACL_OPERATION_ALTER_CONFIGS: Self = Self(11);
    pub const RD_KAFKA_ACL_OPERATION_IDEMPOTENT_WRITE: Self = Self(12);
    pub const RD_KAFKA_ACL_OPERATION__CNT: Self = Self(13);
}
extern "C" {
    pub fn rd_kafka_NewTopic_set_replica_assignment(
        new_topic: *mut rd_kafka_NewTopic_t,
        partition: i32,
        broker_ids: *mut i32,
        broker_id_cnt: usize,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_NewTopic_set_config(
        new_topic: *mut rd_kafka_NewTopic_t,
        name: *const c_char,
        value: *const c_char,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_NewPartitions_set_replica_assignment(
        new_parts: *mut rd_kafka_NewPartitions_t,
        new_partition_idx: i32,
        broker_ids: *mut i32,
        broker_id_cnt: usize,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_ConfigSource_t(pub u32);
impl rd_kafka_ConfigSource_t {
    pub const RD_KAFKA_CONFIG_SOURCE_UNKNOWN_CONFIG: Self = Self(0);
    pub const RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG: Self = Self(1);
    pub const RD_KAFKA_CONFIG_SOURCE_DYNAMIC_BROKER_CONFIG: Self = Self(2);
    pub const RD_KAFKA_CONFIG_SOURCE_DYNAMIC_DEFAULT_BROKER_CONFIG: Self = Self(3);
    pub const RD_KAFKA_CONFIG_SOURCE_STATIC_BROKER_CONFIG: Self = Self(4);
    pub const RD_KAFKA_CONFIG_SOURCE_DEFAULT_CONFIG: Self = Self(5);
    pub const RD_KAFKA_CONFIG_SOURCE_GROUP_CONFIG: Self = Self(8);
    pub const RD_KAFKA_CONFIG_SOURCE__CNT: Self = Self(9);
}
extern "C" {
    pub fn rd_kafka_ConfigSource_name(confsource: rd_kafka_ConfigSource_t) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_ConfigEntry_source(
        entry: *const rd_kafka_ConfigEntry_t,
    ) -> rd_kafka_ConfigSource_t;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_ResourceType_t(pub u32);
impl rd_kafka_ResourceType_t {
    pub const RD_KAFKA_RESOURCE_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_RESOURCE_ANY: Self = Self(1);
    pub const RD_KAFKA_RESOURCE_TOPIC: Self = Self(2);
    pub const RD_KAFKA_RESOURCE_GROUP: Self = Self(3);
    pub const RD_KAFKA_RESOURCE_BROKER: Self = Self(4);
    pub const RD_KAFKA_RESOURCE_TRANSACTIONAL_ID: Self = Self(5);
    pub const RD_KAFKA_RESOURCE__CNT: Self = Self(6);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_ResourcePatternType_t(pub u32);
impl rd_kafka_ResourcePatternType_t {
    pub const RD_KAFKA_RESOURCE_PATTERN_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_RESOURCE_PATTERN_ANY: Self = Self(1);
    pub const RD_KAFKA_RESOURCE_PATTERN_MATCH: Self = Self(2);
    pub const RD_KAFKA_RESOURCE_PATTERN_LITERAL: Self = Self(3);
    pub const RD_KAFKA_RESOURCE_PATTERN_PREFIXED: Self = Self(4);
    pub const RD_KAFKA_RESOURCE_PATTERN_TYPE__CNT: Self = Self(5);
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_AlterConfigOpType_t(pub u32);
impl rd_kafka_AlterConfigOpType_t {
    pub const RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET: Self = Self(0);
    pub const RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE: Self = Self(1);
    pub const RD_KAFKA_ALTER_CONFIG_OP_TYPE_APPEND: Self = Self(2);
    pub const RD_KAFKA_ALTER_CONFIG_OP_TYPE_SUBTRACT: Self = Self(3);
    pub const RD_KAFKA_ALTER_CONFIG_OP_TYPE__CNT: Self = Self(4);
}
extern "C" {
    pub fn rd_kafka_ResourcePatternType_name(
        resource_pattern_type: rd_kafka_ResourcePatternType_t,
    ) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_ResourceType_name(restype: rd_kafka_ResourceType_t) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_ConfigResource_new(
        restype: rd_kafka_ResourceType_t,
        resname: *const c_char,
    ) -> *mut rd_kafka_ConfigResource_t;
}
extern "C" {
    pub fn rd_kafka_ConfigResource_set_config(
        config: *mut rd_kafka_ConfigResource_t,
        name: *const c_char,
        value: *const c_char,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_ConfigResource_add_incremental_config(
        config: *mut rd_kafka_ConfigResource_t,
        name: *const c_char,
        op_type: rd_kafka_AlterConfigOpType_t,
        value: *const c_char,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_ConfigResource_type(
        config: *const rd_kafka_ConfigResource_t,
    ) -> rd_kafka_ResourceType_t;
}
extern "C" {
    pub fn rd_kafka_ConfigResource_error(
        config: *const rd_kafka_ConfigResource_t,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_DeleteRecords_new(
        before_offsets: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_DeleteRecords_t;
}
extern "C" {
    pub fn rd_kafka_DeleteRecords_result_offsets(
        result: *const rd_kafka_DeleteRecords_result_t,
    ) -> *const rd_kafka_topic_partition_list_t;
}
extern "C" {
    pub fn rd_kafka_TopicDescription_authorized_operations(
        topicdesc: *const rd_kafka_TopicDescription_t,
        cntp: *mut usize,
    ) -> *const rd_kafka_AclOperation_t;
}
extern "C" {
    pub fn rd_kafka_DescribeCluster_result_authorized_operations(
        result: *const rd_kafka_DescribeCluster_result_t,
        cntp: *mut usize,
    ) -> *const rd_kafka_AclOperation_t;
}
extern "C" {
    pub fn rd_kafka_ConsumerGroupListing_state(
        grplist: *const rd_kafka_ConsumerGroupListing_t,
    ) -> rd_kafka_consumer_group_state_t;
}
extern "C" {
    pub fn rd_kafka_ConsumerGroupListing_type(
        grplist: *const rd_kafka_ConsumerGroupListing_t,
    ) -> rd_kafka_consumer_group_type_t;
}
extern "C" {
    pub fn rd_kafka_ConsumerGroupDescription_authorized_operations(
        grpdesc: *const rd_kafka_ConsumerGroupDescription_t,
        cntp: *mut usize,
    ) -> *const rd_kafka_AclOperation_t;
}
extern "C" {
    pub fn rd_kafka_ConsumerGroupDescription_state(
        grpdesc: *const rd_kafka_ConsumerGroupDescription_t,
    ) -> rd_kafka_consumer_group_state_t;
}
extern "C" {
    pub fn rd_kafka_ConsumerGroupDescription_type(
        grpdesc: *const rd_kafka_ConsumerGroupDescription_t,
    ) -> rd_kafka_consumer_group_type_t;
}
extern "C" {
    pub fn rd_kafka_MemberAssignment_partitions(
        assignment: *const rd_kafka_MemberAssignment_t,
    ) -> *const rd_kafka_topic_partition_list_t;
}
extern "C" {
    pub fn rd_kafka_ListConsumerGroupOffsets_new(
        group_id: *const c_char,
        partitions: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_ListConsumerGroupOffsets_t;
}
extern "C" {
    pub fn rd_kafka_AlterConsumerGroupOffsets_new(
        group_id: *const c_char,
        partitions: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_AlterConsumerGroupOffsets_t;
}
extern "C" {
    pub fn rd_kafka_DeleteConsumerGroupOffsets_new(
        group: *const c_char,
        partitions: *const rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_DeleteConsumerGroupOffsets_t;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_OffsetSpec_t(pub i32);
impl rd_kafka_OffsetSpec_t {
    pub const RD_KAFKA_OFFSET_SPEC_MAX_TIMESTAMP: Self = Self(-3);
    pub const RD_KAFKA_OFFSET_SPEC_EARLIEST: Self = Self(-2);
    pub const RD_KAFKA_OFFSET_SPEC_LATEST: Self = Self(-1);
}
extern "C" {
    pub fn rd_kafka_ListOffsetsResultInfo_topic_partition(
        result_info: *const rd_kafka_ListOffsetsResultInfo_t,
    ) -> *const rd_kafka_topic_partition_t;
}
extern "C" {
    pub fn rd_kafka_ListOffsets(
        rk: *mut rd_kafka_t,
        topic_partitions: *mut rd_kafka_topic_partition_list_t,
        options: *const rd_kafka_AdminOptions_t,
        rkqu: *mut rd_kafka_queue_t,
    );
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_ScramMechanism_t(pub u32);
impl rd_kafka_ScramMechanism_t {
    pub const RD_KAFKA_SCRAM_MECHANISM_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_SCRAM_MECHANISM_SHA_256: Self = Self(1);
    pub const RD_KAFKA_SCRAM_MECHANISM_SHA_512: Self = Self(2);
    pub const RD_KAFKA_SCRAM_MECHANISM__CNT: Self = Self(3);
}
extern "C" {
    pub fn rd_kafka_ScramCredentialInfo_mechanism(
        scram_credential_info: *const rd_kafka_ScramCredentialInfo_t,
    ) -> rd_kafka_ScramMechanism_t;
}
extern "C" {
    pub fn rd_kafka_UserScramCredentialUpsertion_new(
        username: *const c_char,
        mechanism: rd_kafka_ScramMechanism_t,
        iterations: i32,
        password: *const ::std::os::raw::c_uchar,
        password_size: usize,
        salt: *const ::std::os::raw::c_uchar,
        salt_size: usize,
    ) -> *mut rd_kafka_UserScramCredentialAlteration_t;
}
extern "C" {
    pub fn rd_kafka_UserScramCredentialDeletion_new(
        username: *const c_char,
        mechanism: rd_kafka_ScramMechanism_t,
    ) -> *mut rd_kafka_UserScramCredentialAlteration_t;
}
extern "C" {
    pub fn rd_kafka_AclOperation_name(acl_operation: rd_kafka_AclOperation_t) -> *const c_char;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_AclPermissionType_t(pub u32);
impl rd_kafka_AclPermissionType_t {
    pub const RD_KAFKA_ACL_PERMISSION_TYPE_UNKNOWN: Self = Self(0);
    pub const RD_KAFKA_ACL_PERMISSION_TYPE_ANY: Self = Self(1);
    pub const RD_KAFKA_ACL_PERMISSION_TYPE_DENY: Self = Self(2);
    pub const RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW: Self = Self(3);
    pub const RD_KAFKA_ACL_PERMISSION_TYPE__CNT: Self = Self(4);
}
extern "C" {
    pub fn rd_kafka_AclPermissionType_name(
        acl_permission_type: rd_kafka_AclPermissionType_t,
    ) -> *const c_char;
}
extern "C" {
    pub fn rd_kafka_AclBinding_new(
        restype: rd_kafka_ResourceType_t,
        name: *const c_char,
        resource_pattern_type: rd_kafka_ResourcePatternType_t,
        principal: *const c_char,
        host: *const c_char,
        operation: rd_kafka_AclOperation_t,
        permission_type: rd_kafka_AclPermissionType_t,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> *mut rd_kafka_AclBinding_t;
}
extern "C" {
    pub fn rd_kafka_AclBindingFilter_new(
        restype: rd_kafka_ResourceType_t,
        name: *const c_char,
        resource_pattern_type: rd_kafka_ResourcePatternType_t,
        principal: *const c_char,
        host: *const c_char,
        operation: rd_kafka_AclOperation_t,
        permission_type: rd_kafka_AclPermissionType_t,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> *mut rd_kafka_AclBindingFilter_t;
}
extern "C" {
    pub fn rd_kafka_AclBinding_restype(
        acl: *const rd_kafka_AclBinding_t,
    ) -> rd_kafka_ResourceType_t;
}
extern "C" {
    pub fn rd_kafka_AclBinding_operation(
        acl: *const rd_kafka_AclBinding_t,
    ) -> rd_kafka_AclOperation_t;
}
extern "C" {
    pub fn rd_kafka_AclBinding_permission_type(
        acl: *const rd_kafka_AclBinding_t,
    ) -> rd_kafka_AclPermissionType_t;
}
extern "C" {
    pub fn rd_kafka_AclBinding_resource_pattern_type(
        acl: *const rd_kafka_AclBinding_t,
    ) -> rd_kafka_ResourcePatternType_t;
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct rd_kafka_ElectionType_t(pub u32);
impl rd_kafka_ElectionType_t {
    pub const RD_KAFKA_ELECTION_TYPE_PREFERRED: Self = Self(0);
    pub const RD_KAFKA_ELECTION_TYPE_UNCLEAN: Self = Self(1);
}
extern "C" {
    pub fn rd_kafka_ElectLeaders_new(
        election_type: rd_kafka_ElectionType_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_ElectLeaders_t;
}
extern "C" {
    pub fn rd_kafka_oauthbearer_set_token(
        rk: *mut rd_kafka_t,
        token_value: *const c_char,
        md_lifetime_ms: i64,
        md_principal_name: *const c_char,
        extensions: *mut *const c_char,
        extension_size: usize,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_oauthbearer_set_token_failure(
        rk: *mut rd_kafka_t,
        errstr: *const c_char,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_send_offsets_to_transaction(
        rk: *mut rd_kafka_t,
        offsets: *const rd_kafka_topic_partition_list_t,
        cgmetadata: *const rd_kafka_consumer_group_metadata_t,
        timeout_ms: c_int,
    ) -> *mut rd_kafka_error_t;
}
extern "C" {
    pub fn rd_kafka_mock_push_request_errors_array(
        mcluster: *mut rd_kafka_mock_cluster_t,
        ApiKey: i16,
        cnt: usize,
        errors: *const rd_kafka_resp_err_t,
    );
}
extern "C" {
    pub fn rd_kafka_mock_broker_push_request_error_rtts(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
        ApiKey: i16,
        cnt: usize,
        ...
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_error_stack_cnt(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
        ApiKey: i16,
        cntp: *mut usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_topic_set_error(
        mcluster: *mut rd_kafka_mock_cluster_t,
        topic: *const c_char,
        err: rd_kafka_resp_err_t,
    );
}
extern "C" {
    pub fn rd_kafka_mock_topic_create(
        mcluster: *mut rd_kafka_mock_cluster_t,
        topic: *const c_char,
        partition_cnt: c_int,
        replication_factor: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_partition_set_leader(
        mcluster: *mut rd_kafka_mock_cluster_t,
        topic: *const c_char,
        partition: i32,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_partition_set_follower(
        mcluster: *mut rd_kafka_mock_cluster_t,
        topic: *const c_char,
        partition: i32,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_partition_set_follower_wmarks(
        mcluster: *mut rd_kafka_mock_cluster_t,
        topic: *const c_char,
        partition: i32,
        lo: i64,
        hi: i64,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_partition_push_leader_response(
        mcluster: *mut rd_kafka_mock_cluster_t,
        topic: *const c_char,
        partition: c_int,
        leader_id: i32,
        leader_epoch: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_set_down(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_set_up(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_set_rtt(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
        rtt_ms: c_int,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_set_rack(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
        rack: *const c_char,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_decommission(
        cluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_broker_add(
        mcluster: *mut rd_kafka_mock_cluster_t,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_coordinator_set(
        mcluster: *mut rd_kafka_mock_cluster_t,
        key_type: *const c_char,
        key: *const c_char,
        broker_id: i32,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_set_apiversion(
        mcluster: *mut rd_kafka_mock_cluster_t,
        ApiKey: i16,
        MinVersion: i16,
        MaxVersion: i16,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_telemetry_set_requested_metrics(
        mcluster: *mut rd_kafka_mock_cluster_t,
        metrics: *mut *mut c_char,
        metrics_cnt: usize,
    ) -> rd_kafka_resp_err_t;
}
extern "C" {
    pub fn rd_kafka_mock_telemetry_set_push_interval(
        mcluster: *mut rd_kafka_mock_cluster_t,
        push_interval_ms: i64,
    ) -> rd_kafka_resp_err_t;
}
pub type rd_kafka_mock_cgrp_consumer_target_assignment_t =
    rd_kafka_mock_cgrp_consumer_target_assignment_s;
extern "C" {
    pub fn rd_kafka_mock_cgrp_consumer_target_assignment_new(
        member_ids: *mut *mut c_char,
        member_cnt: c_int,
        assignment: *mut *mut rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_mock_cgrp_consumer_target_assignment_t;
}
extern "C" {
    pub fn rd_kafka_mock_cgrp_consumer_target_assignment_destroy(
        target_assignment: *mut rd_kafka_mock_cgrp_consumer_target_assignment_t,
    );
}
extern "C" {
    pub fn rd_kafka_mock_cgrp_consumer_target_assignment(
        mcluster: *mut rd_kafka_mock_cluster_t,
        group_id: *const c_char,
        target_assignment: *mut rd_kafka_mock_cgrp_consumer_target_assignment_t,
    );
}
