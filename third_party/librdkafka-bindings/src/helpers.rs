// Written by scripts/kafka-bindings from rdkafka-sys 4.10.0+2.12.1; do not edit.

//! Utility functions.

use crate::types::RDKafkaErrorCode;
use crate::types::RDKafkaErrorCode::*;
use crate::types::RDKafkaRespErr;

pub fn rd_kafka_resp_err_t_to_rdkafka_error(err: RDKafkaRespErr) -> RDKafkaErrorCode {
    match err {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__BEGIN => Begin,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__BAD_MSG => BadMessage,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__BAD_COMPRESSION => BadCompression,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__DESTROY => BrokerDestroy,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__FAIL => Fail,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT => BrokerTransportFailure,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE => CriticalSystemResource,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__RESOLVE => Resolve,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__MSG_TIMED_OUT => MessageTimedOut,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTITION_EOF => PartitionEOF,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION => UnknownPartition,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__FS => FileSystem,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC => UnknownTopic,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN => AllBrokersDown,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__INVALID_ARG => InvalidArgument,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__TIMED_OUT => OperationTimedOut,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__QUEUE_FULL => QueueFull,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__ISR_INSUFF => ISRInsufficient,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NODE_UPDATE => NodeUpdate,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__SSL => SSL,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__WAIT_COORD => WaitingForCoordinator,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_GROUP => UnknownGroup,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__IN_PROGRESS => InProgress,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS => PreviousInProgress,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__EXISTING_SUBSCRIPTION => ExistingSubscription,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => AssignPartitions,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => RevokePartitions,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__CONFLICT => Conflict,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__STATE => State,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_PROTOCOL => UnknownProtocol,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED => NotImplemented,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__AUTHENTICATION => Authentication,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NO_OFFSET => NoOffset,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__OUTDATED => Outdated,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE => TimedOutQueue,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE => UnsupportedFeature,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__WAIT_CACHE => WaitCache,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__INTR => Interrupted,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__KEY_SERIALIZATION => KeySerialization,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION => ValueSerialization,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__KEY_DESERIALIZATION => KeyDeserialization,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION => ValueDeserialization,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTIAL => Partial,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__READ_ONLY => ReadOnly,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOENT => NoEnt,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNDERFLOW => Underflow,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__INVALID_TYPE => InvalidType,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__RETRY => Retry,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__PURGE_QUEUE => PurgeQueue,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__PURGE_INFLIGHT => PurgeInflight,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__FATAL => Fatal,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__INCONSISTENT => Inconsistent,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE => GaplessGuarantee,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED => PollExceeded,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_BROKER => UnknownBroker,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOT_CONFIGURED => NotConfigured,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__FENCED => Fenced,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__APPLICATION => Application,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST => AssignmentLost,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOOP => Noop,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET => AutoOffsetReset,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__END => End,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN => Unknown,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => NoError,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE => OffsetOutOfRange,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG => InvalidMessage,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART => UnknownTopicOrPartition,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE => InvalidMessageSize,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE => LeaderNotAvailable,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION => NotLeaderForPartition,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT => RequestTimedOut,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE => BrokerNotAvailable,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE => ReplicaNotAvailable,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE => MessageSizeTooLarge,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_STALE_CTRL_EPOCH => StaleControllerEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE => OffsetMetadataTooLarge,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION => NetworkException,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS => CoordinatorLoadInProgress,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE => CoordinatorNotAvailable,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_COORDINATOR => NotCoordinator,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION => InvalidTopic,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE => MessageBatchTooLarge,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS => NotEnoughReplicas,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND => {
            NotEnoughReplicasAfterAppend
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS => InvalidRequiredAcks,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION => IllegalGeneration,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL => InconsistentGroupProtocol,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_GROUP_ID => InvalidGroupId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID => UnknownMemberId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT => InvalidSessionTimeout,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS => RebalanceInProgress,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE => InvalidCommitOffsetSize,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED => TopicAuthorizationFailed,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED => GroupAuthorizationFailed,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED => {
            ClusterAuthorizationFailed
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP => InvalidTimestamp,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM => UnsupportedSASLMechanism,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE => IllegalSASLState,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION => UnsupportedVersion,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS => TopicAlreadyExists,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PARTITIONS => InvalidPartitions,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR => InvalidReplicationFactor,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REPLICA_ASSIGNMENT => InvalidReplicaAssignment,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_CONFIG => InvalidConfig,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_CONTROLLER => NotController,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REQUEST => InvalidRequest,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT => {
            UnsupportedForMessageFormat
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION => PolicyViolation,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER => OutOfOrderSequenceNumber,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER => DuplicateSequenceNumber,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH => InvalidProducerEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE => InvalidTransactionalState,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING => InvalidProducerIdMapping,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT => InvalidTransactionTimeout,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS => ConcurrentTransactions,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TRANSACTION_COORDINATOR_FENCED => {
            TransactionCoordinatorFenced
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED => {
            TransactionalIdAuthorizationFailed
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_SECURITY_DISABLED => SecurityDisabled,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OPERATION_NOT_ATTEMPTED => OperationNotAttempted,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR => KafkaStorageError,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_LOG_DIR_NOT_FOUND => LogDirNotFound,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED => SaslAuthenticationFailed,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID => UnknownProducerId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REASSIGNMENT_IN_PROGRESS => ReassignmentInProgress,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTH_DISABLED => {
            DelegationTokenAuthDisabled
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_NOT_FOUND => DelegationTokenNotFound,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_OWNER_MISMATCH => {
            DelegationTokenOwnerMismatch
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED => {
            DelegationTokenRequestNotAllowed
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTHORIZATION_FAILED => {
            DelegationTokenAuthorizationFailed
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_EXPIRED => DelegationTokenExpired,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRINCIPAL_TYPE => InvalidPrincipalType,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP => NonEmptyGroup,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND => GroupIdNotFound,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_FETCH_SESSION_ID_NOT_FOUND => FetchSessionIdNotFound,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_FETCH_SESSION_EPOCH => InvalidFetchSessionEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND => ListenerNotFound,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_DELETION_DISABLED => TopicDeletionDisabled,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH => FencedLeaderEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH => UnknownLeaderEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE => {
            UnsupportedCompressionType
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_STALE_BROKER_EPOCH => StaleBrokerEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE => OffsetNotAvailable,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_MEMBER_ID_REQUIRED => MemberIdRequired,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE => {
            PreferredLeaderNotAvailable
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED => GroupMaxSizeReached,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID => FencedInstanceId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE => {
            EligibleLeadersNotAvailable
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_ELECTION_NOT_NEEDED => ElectionNotNeeded,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_REASSIGNMENT_IN_PROGRESS => NoReassignmentInProgress,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_SUBSCRIBED_TO_TOPIC => GroupSubscribedToTopic,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_RECORD => InvalidRecord,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT => UnstableOffsetCommit,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED => ThrottlingQuotaExceeded,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_PRODUCER_FENCED => ProducerFenced,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND => ResourceNotFound,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_DUPLICATE_RESOURCE => DuplicateResource,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNACCEPTABLE_CREDENTIAL => UnacceptableCredential,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INCONSISTENT_VOTER_SET => InconsistentVoterSet,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_UPDATE_VERSION => InvalidUpdateVersion,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_FEATURE_UPDATE_FAILED => FeatureUpdateFailed,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_PRINCIPAL_DESERIALIZATION_FAILURE => {
            PrincipalDeserializationFailure
        }
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_END_ALL => EndAll,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__LOG_TRUNCATION => LogTruncation,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD => InvalidDifferentRecord,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__DESTROY_BROKER => DestroyBroker,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID => UnknownTopicId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH => FencedMemberEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNRELEASED_INSTANCE_ID => UnreleasedInstanceId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_ASSIGNOR => UnsupportedAssignor,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH => StaleMemberEpoch,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_SUBSCRIPTION_ID => UnknownSubscriptionId,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_TELEMETRY_TOO_LARGE => TelemetryTooLarge,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBOOTSTRAP_REQUIRED => RebootstrapRequired,
        RDKafkaRespErr(number) => Unlisted(number),
    }
}

/// The number of an error code.
pub fn number(code: RDKafkaErrorCode) -> i32 {
    match code {
        Begin => RDKafkaRespErr::RD_KAFKA_RESP_ERR__BEGIN.0,
        BadMessage => RDKafkaRespErr::RD_KAFKA_RESP_ERR__BAD_MSG.0,
        BadCompression => RDKafkaRespErr::RD_KAFKA_RESP_ERR__BAD_COMPRESSION.0,
        BrokerDestroy => RDKafkaRespErr::RD_KAFKA_RESP_ERR__DESTROY.0,
        Fail => RDKafkaRespErr::RD_KAFKA_RESP_ERR__FAIL.0,
        BrokerTransportFailure => RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT.0,
        CriticalSystemResource => RDKafkaRespErr::RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE.0,
        Resolve => RDKafkaRespErr::RD_KAFKA_RESP_ERR__RESOLVE.0,
        MessageTimedOut => RDKafkaRespErr::RD_KAFKA_RESP_ERR__MSG_TIMED_OUT.0,
        PartitionEOF => RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTITION_EOF.0,
        UnknownPartition => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION.0,
        FileSystem => RDKafkaRespErr::RD_KAFKA_RESP_ERR__FS.0,
        UnknownTopic => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC.0,
        AllBrokersDown => RDKafkaRespErr::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN.0,
        InvalidArgument => RDKafkaRespErr::RD_KAFKA_RESP_ERR__INVALID_ARG.0,
        OperationTimedOut => RDKafkaRespErr::RD_KAFKA_RESP_ERR__TIMED_OUT.0,
        QueueFull => RDKafkaRespErr::RD_KAFKA_RESP_ERR__QUEUE_FULL.0,
        ISRInsufficient => RDKafkaRespErr::RD_KAFKA_RESP_ERR__ISR_INSUFF.0,
        NodeUpdate => RDKafkaRespErr::RD_KAFKA_RESP_ERR__NODE_UPDATE.0,
        SSL => RDKafkaRespErr::RD_KAFKA_RESP_ERR__SSL.0,
        WaitingForCoordinator => RDKafkaRespErr::RD_KAFKA_RESP_ERR__WAIT_COORD.0,
        UnknownGroup => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_GROUP.0,
        InProgress => RDKafkaRespErr::RD_KAFKA_RESP_ERR__IN_PROGRESS.0,
        PreviousInProgress => RDKafkaRespErr::RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS.0,
        ExistingSubscription => RDKafkaRespErr::RD_KAFKA_RESP_ERR__EXISTING_SUBSCRIPTION.0,
        AssignPartitions => RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS.0,
        RevokePartitions => RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS.0,
        Conflict => RDKafkaRespErr::RD_KAFKA_RESP_ERR__CONFLICT.0,
        State => RDKafkaRespErr::RD_KAFKA_RESP_ERR__STATE.0,
        UnknownProtocol => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_PROTOCOL.0,
        NotImplemented => RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED.0,
        Authentication => RDKafkaRespErr::RD_KAFKA_RESP_ERR__AUTHENTICATION.0,
        NoOffset => RDKafkaRespErr::RD_KAFKA_RESP_ERR__NO_OFFSET.0,
        Outdated => RDKafkaRespErr::RD_KAFKA_RESP_ERR__OUTDATED.0,
        TimedOutQueue => RDKafkaRespErr::RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE.0,
        UnsupportedFeature => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE.0,
        WaitCache => RDKafkaRespErr::RD_KAFKA_RESP_ERR__WAIT_CACHE.0,
        Interrupted => RDKafkaRespErr::RD_KAFKA_RESP_ERR__INTR.0,
        KeySerialization => RDKafkaRespErr::RD_KAFKA_RESP_ERR__KEY_SERIALIZATION.0,
        ValueSerialization => RDKafkaRespErr::RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION.0,
        KeyDeserialization => RDKafkaRespErr::RD_KAFKA_RESP_ERR__KEY_DESERIALIZATION.0,
        ValueDeserialization => RDKafkaRespErr::RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION.0,
        Partial => RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTIAL.0,
        ReadOnly => RDKafkaRespErr::RD_KAFKA_RESP_ERR__READ_ONLY.0,
        NoEnt => RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOENT.0,
        Underflow => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNDERFLOW.0,
        InvalidType => RDKafkaRespErr::RD_KAFKA_RESP_ERR__INVALID_TYPE.0,
        Retry => RDKafkaRespErr::RD_KAFKA_RESP_ERR__RETRY.0,
        PurgeQueue => RDKafkaRespErr::RD_KAFKA_RESP_ERR__PURGE_QUEUE.0,
        PurgeInflight => RDKafkaRespErr::RD_KAFKA_RESP_ERR__PURGE_INFLIGHT.0,
        Fatal => RDKafkaRespErr::RD_KAFKA_RESP_ERR__FATAL.0,
        Inconsistent => RDKafkaRespErr::RD_KAFKA_RESP_ERR__INCONSISTENT.0,
        GaplessGuarantee => RDKafkaRespErr::RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE.0,
        PollExceeded => RDKafkaRespErr::RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED.0,
        UnknownBroker => RDKafkaRespErr::RD_KAFKA_RESP_ERR__UNKNOWN_BROKER.0,
        NotConfigured => RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOT_CONFIGURED.0,
        Fenced => RDKafkaRespErr::RD_KAFKA_RESP_ERR__FENCED.0,
        Application => RDKafkaRespErr::RD_KAFKA_RESP_ERR__APPLICATION.0,
        AssignmentLost => RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST.0,
        Noop => RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOOP.0,
        AutoOffsetReset => RDKafkaRespErr::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET.0,
        End => RDKafkaRespErr::RD_KAFKA_RESP_ERR__END.0,
        Unknown => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN.0,
        NoError => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR.0,
        OffsetOutOfRange => RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE.0,
        InvalidMessage => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG.0,
        UnknownTopicOrPartition => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART.0,
        InvalidMessageSize => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE.0,
        LeaderNotAvailable => RDKafkaRespErr::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE.0,
        NotLeaderForPartition => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION.0,
        RequestTimedOut => RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT.0,
        BrokerNotAvailable => RDKafkaRespErr::RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE.0,
        ReplicaNotAvailable => RDKafkaRespErr::RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE.0,
        MessageSizeTooLarge => RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE.0,
        StaleControllerEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_STALE_CTRL_EPOCH.0,
        OffsetMetadataTooLarge => RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE.0,
        NetworkException => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION.0,
        CoordinatorLoadInProgress => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS.0
        }
        CoordinatorNotAvailable => RDKafkaRespErr::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE.0,
        NotCoordinator => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_COORDINATOR.0,
        InvalidTopic => RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION.0,
        MessageBatchTooLarge => RDKafkaRespErr::RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE.0,
        NotEnoughReplicas => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS.0,
        NotEnoughReplicasAfterAppend => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND.0
        }
        InvalidRequiredAcks => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS.0,
        IllegalGeneration => RDKafkaRespErr::RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION.0,
        InconsistentGroupProtocol => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL.0
        }
        InvalidGroupId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_GROUP_ID.0,
        UnknownMemberId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID.0,
        InvalidSessionTimeout => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT.0,
        RebalanceInProgress => RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS.0,
        InvalidCommitOffsetSize => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE.0,
        TopicAuthorizationFailed => RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED.0,
        GroupAuthorizationFailed => RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED.0,
        ClusterAuthorizationFailed => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED.0
        }
        InvalidTimestamp => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP.0,
        UnsupportedSASLMechanism => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM.0,
        IllegalSASLState => RDKafkaRespErr::RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE.0,
        UnsupportedVersion => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION.0,
        TopicAlreadyExists => RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS.0,
        InvalidPartitions => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PARTITIONS.0,
        InvalidReplicationFactor => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR.0,
        InvalidReplicaAssignment => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REPLICA_ASSIGNMENT.0,
        InvalidConfig => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_CONFIG.0,
        NotController => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_CONTROLLER.0,
        InvalidRequest => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_REQUEST.0,
        UnsupportedForMessageFormat => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT.0
        }
        PolicyViolation => RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION.0,
        OutOfOrderSequenceNumber => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER.0
        }
        DuplicateSequenceNumber => RDKafkaRespErr::RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER.0,
        InvalidProducerEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH.0,
        InvalidTransactionalState => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE.0,
        InvalidProducerIdMapping => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING.0,
        InvalidTransactionTimeout => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT.0
        }
        ConcurrentTransactions => RDKafkaRespErr::RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS.0,
        TransactionCoordinatorFenced => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_TRANSACTION_COORDINATOR_FENCED.0
        }
        TransactionalIdAuthorizationFailed => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED.0
        }
        SecurityDisabled => RDKafkaRespErr::RD_KAFKA_RESP_ERR_SECURITY_DISABLED.0,
        OperationNotAttempted => RDKafkaRespErr::RD_KAFKA_RESP_ERR_OPERATION_NOT_ATTEMPTED.0,
        KafkaStorageError => RDKafkaRespErr::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR.0,
        LogDirNotFound => RDKafkaRespErr::RD_KAFKA_RESP_ERR_LOG_DIR_NOT_FOUND.0,
        SaslAuthenticationFailed => RDKafkaRespErr::RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED.0,
        UnknownProducerId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID.0,
        ReassignmentInProgress => RDKafkaRespErr::RD_KAFKA_RESP_ERR_REASSIGNMENT_IN_PROGRESS.0,
        DelegationTokenAuthDisabled => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTH_DISABLED.0
        }
        DelegationTokenNotFound => RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_NOT_FOUND.0,
        DelegationTokenOwnerMismatch => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_OWNER_MISMATCH.0
        }
        DelegationTokenRequestNotAllowed => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.0
        }
        DelegationTokenAuthorizationFailed => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_AUTHORIZATION_FAILED.0
        }
        DelegationTokenExpired => RDKafkaRespErr::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_EXPIRED.0,
        InvalidPrincipalType => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRINCIPAL_TYPE.0,
        NonEmptyGroup => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP.0,
        GroupIdNotFound => RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND.0,
        FetchSessionIdNotFound => RDKafkaRespErr::RD_KAFKA_RESP_ERR_FETCH_SESSION_ID_NOT_FOUND.0,
        InvalidFetchSessionEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_FETCH_SESSION_EPOCH.0,
        ListenerNotFound => RDKafkaRespErr::RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND.0,
        TopicDeletionDisabled => RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_DELETION_DISABLED.0,
        FencedLeaderEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH.0,
        UnknownLeaderEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH.0,
        UnsupportedCompressionType => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE.0
        }
        StaleBrokerEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_STALE_BROKER_EPOCH.0,
        OffsetNotAvailable => RDKafkaRespErr::RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE.0,
        MemberIdRequired => RDKafkaRespErr::RD_KAFKA_RESP_ERR_MEMBER_ID_REQUIRED.0,
        PreferredLeaderNotAvailable => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE.0
        }
        GroupMaxSizeReached => RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED.0,
        FencedInstanceId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID.0,
        EligibleLeadersNotAvailable => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE.0
        }
        ElectionNotNeeded => RDKafkaRespErr::RD_KAFKA_RESP_ERR_ELECTION_NOT_NEEDED.0,
        NoReassignmentInProgress => RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_REASSIGNMENT_IN_PROGRESS.0,
        GroupSubscribedToTopic => RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_SUBSCRIBED_TO_TOPIC.0,
        InvalidRecord => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_RECORD.0,
        UnstableOffsetCommit => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT.0,
        ThrottlingQuotaExceeded => RDKafkaRespErr::RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED.0,
        ProducerFenced => RDKafkaRespErr::RD_KAFKA_RESP_ERR_PRODUCER_FENCED.0,
        ResourceNotFound => RDKafkaRespErr::RD_KAFKA_RESP_ERR_RESOURCE_NOT_FOUND.0,
        DuplicateResource => RDKafkaRespErr::RD_KAFKA_RESP_ERR_DUPLICATE_RESOURCE.0,
        UnacceptableCredential => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNACCEPTABLE_CREDENTIAL.0,
        InconsistentVoterSet => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INCONSISTENT_VOTER_SET.0,
        InvalidUpdateVersion => RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_UPDATE_VERSION.0,
        FeatureUpdateFailed => RDKafkaRespErr::RD_KAFKA_RESP_ERR_FEATURE_UPDATE_FAILED.0,
        PrincipalDeserializationFailure => {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_PRINCIPAL_DESERIALIZATION_FAILURE.0
        }
        EndAll => RDKafkaRespErr::RD_KAFKA_RESP_ERR_END_ALL.0,
        LogTruncation => RDKafkaRespErr::RD_KAFKA_RESP_ERR__LOG_TRUNCATION.0,
        InvalidDifferentRecord => RDKafkaRespErr::RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD.0,
        DestroyBroker => RDKafkaRespErr::RD_KAFKA_RESP_ERR__DESTROY_BROKER.0,
        UnknownTopicId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID.0,
        FencedMemberEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH.0,
        UnreleasedInstanceId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNRELEASED_INSTANCE_ID.0,
        UnsupportedAssignor => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNSUPPORTED_ASSIGNOR.0,
        StaleMemberEpoch => RDKafkaRespErr::RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH.0,
        UnknownSubscriptionId => RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_SUBSCRIPTION_ID.0,
        TelemetryTooLarge => RDKafkaRespErr::RD_KAFKA_RESP_ERR_TELEMETRY_TOO_LARGE.0,
        RebootstrapRequired => RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBOOTSTRAP_REQUIRED.0,
        Unlisted(number) => number,
    }
}
