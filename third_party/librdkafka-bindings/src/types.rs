// Written by scripts/kafka-bindings from rdkafka-sys 4.10.0+2.12.1; do not edit.

//! Aliases for types defined in the auto-generated bindings.

use std::error::Error;
use std::ffi::CStr;
use std::fmt;

use crate::bindings;
use crate::helpers;

// TYPES

/// Native rdkafka client.
pub type RDKafka = bindings::rd_kafka_t;

/// Native rdkafka configuration.
pub type RDKafkaConf = bindings::rd_kafka_conf_t;

/// Native rdkafka message.
pub type RDKafkaMessage = bindings::rd_kafka_message_t;

/// Native rdkafka topic.
pub type RDKafkaTopic = bindings::rd_kafka_topic_t;

/// Native rdkafka topic configuration.
pub type RDKafkaTopicConf = bindings::rd_kafka_topic_conf_t;

/// Native rdkafka topic partition.
pub type RDKafkaTopicPartition = bindings::rd_kafka_topic_partition_t;

/// Native rdkafka topic partition list.
pub type RDKafkaTopicPartitionList = bindings::rd_kafka_topic_partition_list_t;

/// Native rdkafka metadata container.
pub type RDKafkaMetadata = bindings::rd_kafka_metadata_t;

/// Native rdkafka topic information.
pub type RDKafkaMetadataTopic = bindings::rd_kafka_metadata_topic_t;

/// Native rdkafka partition information.
pub type RDKafkaMetadataPartition = bindings::rd_kafka_metadata_partition_t;

/// Native rdkafka broker information.
pub type RDKafkaMetadataBroker = bindings::rd_kafka_metadata_broker_t;

/// Native rdkafka consumer group metadata.
pub type RDKafkaConsumerGroupMetadata = bindings::rd_kafka_consumer_group_metadata_t;

/// Native rdkafka state.
pub type RDKafkaState = bindings::rd_kafka_s;

/// Native rdkafka list of groups.
pub type RDKafkaGroupList = bindings::rd_kafka_group_list;

/// Native rdkafka group information.
pub type RDKafkaGroupInfo = bindings::rd_kafka_group_info;

/// Native rdkafka group member information.
pub type RDKafkaGroupMemberInfo = bindings::rd_kafka_group_member_info;

/// Native rdkafka group member information.
pub type RDKafkaHeaders = bindings::rd_kafka_headers_t;

/// Native rdkafka queue.
pub type RDKafkaQueue = bindings::rd_kafka_queue_t;

/// Native rdkafka new topic object.
pub type RDKafkaNewTopic = bindings::rd_kafka_NewTopic_t;

/// Native rdkafka delete topic object.
pub type RDKafkaDeleteTopic = bindings::rd_kafka_DeleteTopic_t;

/// Native rdkafka delete group object.
pub type RDKafkaDeleteGroup = bindings::rd_kafka_DeleteGroup_t;

/// Native rdkafka new partitions object.
pub type RDKafkaNewPartitions = bindings::rd_kafka_NewPartitions_t;

/// Native rdkafka delete records object.
pub type RDKafkaDeleteRecords = bindings::rd_kafka_DeleteRecords_t;

/// Native rdkafka config resource.
pub type RDKafkaConfigResource = bindings::rd_kafka_ConfigResource_t;

/// Native rdkafka event.
pub type RDKafkaEvent = bindings::rd_kafka_event_t;

/// Native rdkafka admin options.
pub type RDKafkaAdminOptions = bindings::rd_kafka_AdminOptions_t;

/// Native rdkafka topic result.
pub type RDKafkaTopicResult = bindings::rd_kafka_topic_result_t;

/// Native rdkafka group result.
pub type RDKafkaGroupResult = bindings::rd_kafka_group_result_t;

/// Native rdkafka mock cluster.
pub type RDKafkaMockCluster = bindings::rd_kafka_mock_cluster_t;

// ENUMS

/// Client types.
pub use bindings::rd_kafka_type_t as RDKafkaType;

/// Configuration result.
pub use bindings::rd_kafka_conf_res_t as RDKafkaConfRes;

/// Response error.
pub use bindings::rd_kafka_resp_err_t as RDKafkaRespErr;

/// Admin operation.
pub use bindings::rd_kafka_admin_op_t as RDKafkaAdminOp;

/// Config resource type.
pub use bindings::rd_kafka_ResourceType_t as RDKafkaResourceType;

/// Config source.
pub use bindings::rd_kafka_ConfigSource_t as RDKafkaConfigSource;

// Errors enum

/// Native rdkafka error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RDKafkaErrorCode {
    #[doc(hidden)]
    Begin,
    /// Received message is incorrect.
    BadMessage,
    /// Bad/unknown compression.
    BadCompression,
    /// Broker is going away.
    BrokerDestroy,
    /// Generic failure.
    Fail,
    /// Broker transport failure.
    BrokerTransportFailure,
    /// Critical system resource.
    CriticalSystemResource,
    /// Failed to resolve broker.
    Resolve,
    /// Produced message timed out.
    MessageTimedOut,
    /// Reached the end of the topic+partition queue on the broker. Not really an error.
    PartitionEOF,
    /// Permanent: Partition does not exist in cluster.
    UnknownPartition,
    /// File or filesystem error.
    FileSystem,
    /// Permanent: Topic does not exist in cluster.
    UnknownTopic,
    /// All broker connections are down.
    AllBrokersDown,
    /// Invalid argument, or invalid configuration.
    InvalidArgument,
    /// Operation timed out.
    OperationTimedOut,
    /// Queue is full.
    QueueFull,
    /// ISR count < required.acks.
    ISRInsufficient,
    /// Broker node update.
    NodeUpdate,
    /// SSL error.
    SSL,
    /// Waiting for coordinator to become available.
    WaitingForCoordinator,
    /// Unknown client group.
    UnknownGroup,
    /// Operation in progress.
    InProgress,
    /// Previous operation in progress, wait for it to finish.
    PreviousInProgress,
    /// This operation would interfere with an existing subscription.
    ExistingSubscription,
    /// Assigned partitions (rebalance_cb).
    AssignPartitions,
    /// Revoked partitions (rebalance_cb).
    RevokePartitions,
    /// Conflicting use.
    Conflict,
    /// Wrong state.
    State,
    /// Unknown protocol.
    UnknownProtocol,
    /// Not implemented.
    NotImplemented,
    /// Authentication failure.
    Authentication,
    /// No stored offset.
    NoOffset,
    /// Outdated.
    Outdated,
    /// Timed out in queue.
    TimedOutQueue,
    /// Feature not supported by broker.
    UnsupportedFeature,
    /// Awaiting cache update.
    WaitCache,
    /// Operation interrupted (e.g., due to yield).
    Interrupted,
    /// Key serialization error.
    KeySerialization,
    /// Value serialization error.
    ValueSerialization,
    /// Key deserialization error.
    KeyDeserialization,
    /// Value deserialization error.
    ValueDeserialization,
    /// Partial response.
    Partial,
    /// Modification attempted on read-only object.
    ReadOnly,
    /// No such entry or item not found.
    NoEnt,
    /// Read underflow.
    Underflow,
    /// Invalid type.
    InvalidType,
    /// Retry operation.
    Retry,
    /// Purged in queue.
    PurgeQueue,
    /// Purged in flight.
    PurgeInflight,
    /// Fatal error: see rd_kafka_fatal_error().
    Fatal,
    /// Inconsistent state.
    Inconsistent,
    /// Gap-less ordering would not be guaranteed if proceeding.
    GaplessGuarantee,
    /// Maximum poll interval exceeded.
    PollExceeded,
    /// Unknown broker.
    UnknownBroker,
    /// Functionality not configured.
    NotConfigured,
    /// Instance has been fenced.
    Fenced,
    /// Application generated error.
    Application,
    /// Assignment lost.
    AssignmentLost,
    /// No operation performed.
    Noop,
    /// No offset to automatically reset to.
    AutoOffsetReset,
    /// Partition log truncation detected
    LogTruncation,
    /// A different record in the batch was invalid and this message failed persisting.
    InvalidDifferentRecord,
    /// Broker is going away but client isn't terminating */
    DestroyBroker,
    #[doc(hidden)]
    End,
    /// Unknown broker error.
    Unknown,
    /// Success.
    NoError,
    /// Offset out of range.
    OffsetOutOfRange,
    /// Invalid message.
    InvalidMessage,
    /// Unknown topic or partition.
    UnknownTopicOrPartition,
    /// Invalid message size.
    InvalidMessageSize,
    /// Leader not available.
    LeaderNotAvailable,
    /// Not leader for partition.
    NotLeaderForPartition,
    /// Request timed out.
    RequestTimedOut,
    /// Broker not available.
    BrokerNotAvailable,
    /// Replica not available.
    ReplicaNotAvailable,
    /// Message size too large.
    MessageSizeTooLarge,
    /// Stale controller epoch code.
    StaleControllerEpoch,
    /// Offset metadata string too large.
    OffsetMetadataTooLarge,
    /// Broker disconnected before response received.
    NetworkException,
    /// Coordinator load in progress.
    CoordinatorLoadInProgress,
    /// Coordinator not available.
    CoordinatorNotAvailable,
    /// Not coordinator.
    NotCoordinator,
    /// Invalid topic.
    InvalidTopic,
    /// Message batch larger than configured server segment size.
    MessageBatchTooLarge,
    /// Not enough in-sync replicas.
    NotEnoughReplicas,
    /// Message(s) written to insufficient number of in-sync replicas.
    NotEnoughReplicasAfterAppend,
    /// Invalid required acks value.
    InvalidRequiredAcks,
    /// Specified group generation id is not valid.
    IllegalGeneration,
    /// Inconsistent group protocol.
    InconsistentGroupProtocol,
    /// Invalid group.id.
    InvalidGroupId,
    /// Unknown member.
    UnknownMemberId,
    /// Invalid session timeout.
    InvalidSessionTimeout,
    /// Group rebalance in progress.
    RebalanceInProgress,
    /// Commit offset data size is not valid.
    InvalidCommitOffsetSize,
    /// Topic authorization failed.
    TopicAuthorizationFailed,
    /// Group authorization failed.
    GroupAuthorizationFailed,
    /// Cluster authorization failed.
    ClusterAuthorizationFailed,
    /// Invalid timestamp.
    InvalidTimestamp,
    /// Unsupported SASL mechanism.
    UnsupportedSASLMechanism,
    /// Illegal SASL state.
    IllegalSASLState,
    /// Unsupported version.
    UnsupportedVersion,
    /// Topic already exists.
    TopicAlreadyExists,
    /// Invalid number of partitions.
    InvalidPartitions,
    /// Invalid replication factor.
    InvalidReplicationFactor,
    /// Invalid replica assignment.
    InvalidReplicaAssignment,
    /// Invalid config.
    InvalidConfig,
    /// Not controller for cluster.
    NotController,
    /// Invalid request.
    InvalidRequest,
    /// Message format on broker does not support request.
    UnsupportedForMessageFormat,
    /// Policy violation.
    PolicyViolation,
    /// Broker received an out of order sequence number.
    OutOfOrderSequenceNumber,
    /// Broker received a duplicate sequence number.
    DuplicateSequenceNumber,
    /// Producer attempted an operation with an old epoch.
    InvalidProducerEpoch,
    /// Producer attempted a transactional operation in an invalid state.
    InvalidTransactionalState,
    /// Producer attempted to use a producer id which is currently assigned to
    /// its transactional id.
    InvalidProducerIdMapping,
    /// Transaction timeout is larger than the maxi value allowed by the
    /// broker's max.transaction.timeout.ms.
    InvalidTransactionTimeout,
    /// Producer attempted to update a transaction while another concurrent
    /// operation on the same transaction was ongoing.
    ConcurrentTransactions,
    /// Indicates that the transaction coordinator sending a WriteTxnMarker is
    /// no longer the current coordinator for a given producer.
    TransactionCoordinatorFenced,
    /// Transactional Id authorization failed.
    TransactionalIdAuthorizationFailed,
    /// Security features are disabled.
    SecurityDisabled,
    /// Operation not attempted.
    OperationNotAttempted,
    /// Disk error when trying to access log file on the disk.
    KafkaStorageError,
    /// The user-specified log directory is not found in the broker config.
    LogDirNotFound,
    /// SASL Authentication failed.
    SaslAuthenticationFailed,
    /// Unknown Producer Id.
    UnknownProducerId,
    /// Partition reassignment is in progress.
    ReassignmentInProgress,
    /// Delegation Token feature is not enabled.
    DelegationTokenAuthDisabled,
    /// Delegation Token is not found on server.
    DelegationTokenNotFound,
    /// Specified Principal is not valid Owner/Renewer.
    DelegationTokenOwnerMismatch,
    /// Delegation Token requests are not allowed on this connection.
    DelegationTokenRequestNotAllowed,
    /// Delegation Token authorization failed.
    DelegationTokenAuthorizationFailed,
    /// Delegation Token is expired.
    DelegationTokenExpired,
    /// Supplied principalType is not supported.
    InvalidPrincipalType,
    /// The group is not empty.
    NonEmptyGroup,
    /// The group id does not exist.
    GroupIdNotFound,
    /// The fetch session ID was not found.
    FetchSessionIdNotFound,
    /// The fetch session epoch is invalid.
    InvalidFetchSessionEpoch,
    /// No matching listener.
    ListenerNotFound,
    /// Topic deletion is disabled.
    TopicDeletionDisabled,
    /// Leader epoch is older than broker epoch.
    FencedLeaderEpoch,
    /// Leader epoch is newer than broker epoch.
    UnknownLeaderEpoch,
    /// Unsupported compression type.
    UnsupportedCompressionType,
    /// Broker epoch has changed.
    StaleBrokerEpoch,
    /// Leader high watermark is not caught up.
    OffsetNotAvailable,
    /// Group member needs a valid member ID.
    MemberIdRequired,
    /// Preferred leader was not available.
    PreferredLeaderNotAvailable,
    /// Consumer group has reached maximum size.
    GroupMaxSizeReached,
    /// Static consumer fenced by other consumer with same group.instance.id.
    FencedInstanceId,
    /// Eligible partition leaders are not available.
    EligibleLeadersNotAvailable,
    /// Leader election not needed for topic partition.
    ElectionNotNeeded,
    /// No partition reassignment is in progress.
    NoReassignmentInProgress,
    /// Deleting offsets of a topic while the consumer group is subscribed to
    /// it.
    GroupSubscribedToTopic,
    /// Broker failed to validate record.
    InvalidRecord,
    /// There are unstable offsets that need to be cleared.
    UnstableOffsetCommit,
    /// Throttling quota has been exceeded.
    ThrottlingQuotaExceeded,
    /// There is a newer producer with the same transactional ID which fences
    /// the current one.
    ProducerFenced,
    /// Request illegally referred to resource that does not exist.
    ResourceNotFound,
    /// Request illegally referred to the same resource twice.
    DuplicateResource,
    /// Requested credential would not meet criteria for acceptability.
    UnacceptableCredential,
    /// Either the sender or recipient of a voter-only request is not one of the
    /// expected voters.
    InconsistentVoterSet,
    /// Invalid update version.
    InvalidUpdateVersion,
    /// Unable to update finalized features due to server error.
    FeatureUpdateFailed,
    /// Request principal deserialization failed during forwarding.
    PrincipalDeserializationFailure,
    /// Unknown Topic Id
    UnknownTopicId,
    /// The member epoch is fenced by the group coordinator
    FencedMemberEpoch,
    /// The instance ID is still used by another member in the consumer group
    UnreleasedInstanceId,
    /// The assignor or its version range is not supported by the consumer group
    UnsupportedAssignor,
    /// The member epoch is stale
    StaleMemberEpoch,
    /// Client sent a push telemetry request with an invalid or outdated
    /// subscription ID.
    UnknownSubscriptionId,
    /// Client sent a push telemetry request larger than the maximum size
    /// the broker will accept.
    TelemetryTooLarge,
    /// Client metadata is stale,
    /// client should rebootstrap to obtain new metadata.
    RebootstrapRequired,
    #[doc(hidden)]
    EndAll,
    /// A code that this librdkafka does not list, as it came.
    Unlisted(i32),
}

impl From<RDKafkaRespErr> for RDKafkaErrorCode {
    fn from(err: RDKafkaRespErr) -> RDKafkaErrorCode {
        helpers::rd_kafka_resp_err_t_to_rdkafka_error(err)
    }
}

impl fmt::Display for RDKafkaErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let known = original::types::RDKafkaRespErr::try_from(helpers::number(*self));
        let description = match known {
            Ok(err) => {
                let cstr = unsafe { original::rd_kafka_err2str(err) };
                unsafe { CStr::from_ptr(cstr) }
                    .to_string_lossy()
                    .into_owned()
            }
            Err(_) => "no name in this version of librdkafka".to_owned(),
        };

        write!(f, "{:?} ({})", self, description)
    }
}

impl Error for RDKafkaErrorCode {}

pub use original::types::RDKafkaApiKey;
