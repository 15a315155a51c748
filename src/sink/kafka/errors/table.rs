//! Every code of the client library, and what follows from it.
//!
//! Retrying delays and never skips, so that is what follows from a code that is not about this message.

use rdkafka::error::RDKafkaErrorCode::*;

use super::Meaning;
use crate::sink::Class::{Fatal as Halt, Poison, Retry as Again};
use crate::sink::Phase::{Answered, Unknown as Unclear, Unsent};

/// Each code once, by what follows from it.
pub(super) const TABLE: &[Meaning] = &[
    Meaning {
        class: Poison,
        phase: Answered,
        hint: "The broker refuses a record, and its batch with it; compare the topic's max.message.bytes and validation \
               settings with this row.",
        codes: &[
            MessageSizeTooLarge,
            InvalidMessage,
            InvalidMessageSize,
            MessageBatchTooLarge,
            InvalidRecord,
            InvalidDifferentRecord,
        ],
    },
    Meaning {
        class: Halt,
        phase: Answered,
        hint: "No row sets a record's timestamp: it is this machine's clock when the record is sent, and the broker finds it too far from \
               its own. Correct the clocks (NTP), or the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms \
               (message.timestamp.difference.max.ms before Kafka 3.6), then `outbox-relay cursor resume NAME`.",
        codes: &[InvalidTimestamp],
    },
    Meaning {
        class: Poison,
        phase: Unsent,
        hint: "The client cannot make a record of this row; correct the row, or the relay's payload and headers.",
        codes: &[KeySerialization, ValueSerialization],
    },
    Meaning {
        class: Halt,
        phase: Answered,
        hint: "Create the topic, or correct `topic`; topics are never created automatically.",
        codes: &[UnknownTopicOrPartition, UnknownTopic, InvalidTopic, UnknownTopicId],
    },
    Meaning {
        class: Again,
        phase: Unsent,
        hint: "The client knew fewer partitions of the topic than records are spread over, as after partitions were added: it is dropped, \
               and a new one asks the cluster. If it persists, the brokers disagree about the topic: compare what each of them answers to \
               `kafka-topics --describe`. A topic that was made again with fewer partitions halts a relay with a key as \
               `partition_count_changed`, within seconds.",
        codes: &[UnknownPartition],
    },
    Meaning {
        class: Halt,
        phase: Answered,
        hint: "Grant this user Write and Describe on the topic, and IdempotentWrite on clusters before 3.0.",
        codes: &[
            TopicAuthorizationFailed,
            ClusterAuthorizationFailed,
            GroupAuthorizationFailed,
            TransactionalIdAuthorizationFailed,
            DelegationTokenAuthorizationFailed,
        ],
    },
    Meaning {
        class: Halt,
        phase: Unsent,
        hint: "Check how [kafka] logs in: sasl_password_file, [kafka.oauth2], [kafka.aws_iam], and the security.*, sasl.* and ssl.* \
               properties under [kafka.properties].",
        codes: &[
            Authentication,
            SaslAuthenticationFailed,
            UnsupportedSASLMechanism,
            IllegalSASLState,
            SSL,
            SecurityDisabled,
            DelegationTokenAuthDisabled,
            DelegationTokenNotFound,
            DelegationTokenOwnerMismatch,
            DelegationTokenRequestNotAllowed,
            DelegationTokenExpired,
            InvalidPrincipalType,
            UnacceptableCredential,
            PrincipalDeserializationFailure,
        ],
    },
    Meaning {
        class: Halt,
        phase: Answered,
        hint: "The cluster or the client refuses a setting; check [kafka.properties] and the topic's settings.",
        codes: &[
            InvalidRequiredAcks,
            UnsupportedVersion,
            UnsupportedForMessageFormat,
            UnsupportedCompressionType,
            BadCompression,
            PolicyViolation,
            InvalidArgument,
            InvalidConfig,
            InvalidType,
            InvalidRequest,
            NotImplemented,
            UnsupportedFeature,
            UnknownProtocol,
            NotConfigured,
            ReadOnly,
        ],
    },
    Meaning {
        class: Again,
        phase: Unclear,
        hint: "The relay retries by itself; check that the brokers of bootstrap_servers run and can be reached, and that security.protocol \
               under [kafka.properties] is what that port speaks: to a client without TLS, a port with TLS says nothing.",
        codes: &[BrokerTransportFailure, AllBrokersDown],
    },
    Meaning {
        class: Again,
        phase: Unclear,
        hint: "The relay retries by itself. The brokers have not acknowledged in time: check that they run and can be reached, that each \
               partition of the topic has a leader and no fewer in-sync replicas than min.insync.replicas, and that no quota throttles \
               this client.",
        codes: &[MessageTimedOut, RequestTimedOut, PurgeInflight, NotEnoughReplicasAfterAppend],
    },
    Meaning {
        class: Again,
        phase: Unclear,
        hint: "The relay retries by itself; check that the brokers run and can be reached.",
        codes: &[OperationTimedOut, NetworkException, Fail, Fatal, Interrupted],
    },
    Meaning {
        class: Again,
        phase: Unsent,
        hint: "The relay retries by itself; check that the brokers run, and that their advertised names can be \
               reached from here.",
        codes: &[
            PurgeQueue,
            TimedOutQueue,
            QueueFull,
            Resolve,
            BrokerDestroy,
            DestroyBroker,
            UnknownBroker,
            NodeUpdate,
            CriticalSystemResource,
            FileSystem,
            WaitCache,
            WaitingForCoordinator,
            InProgress,
            PreviousInProgress,
            State,
            Conflict,
            Outdated,
            Retry,
            Application,
        ],
    },
    Meaning {
        class: Again,
        phase: Answered,
        hint: "The relay retries by itself; look at the partition's leader, its replicas, and the brokers' disks.",
        codes: &[
            LeaderNotAvailable,
            NotLeaderForPartition,
            BrokerNotAvailable,
            ReplicaNotAvailable,
            NotEnoughReplicas,
            ISRInsufficient,
            KafkaStorageError,
            LogDirNotFound,
            ThrottlingQuotaExceeded,
            PreferredLeaderNotAvailable,
            EligibleLeadersNotAvailable,
            FencedLeaderEpoch,
            UnknownLeaderEpoch,
            ListenerNotFound,
            ReassignmentInProgress,
            CoordinatorLoadInProgress,
            CoordinatorNotAvailable,
            NotCoordinator,
            NotController,
            StaleControllerEpoch,
            StaleBrokerEpoch,
            TopicDeletionDisabled,
            RebootstrapRequired,
            Unknown,
        ],
    },
    Meaning {
        class: Again,
        phase: Unclear,
        hint: "The producer has lost its place in the partition: it is dropped, and a new one goes on at the first row \
               that was not acknowledged.",
        codes: &[
            GaplessGuarantee,
            OutOfOrderSequenceNumber,
            DuplicateSequenceNumber,
            UnknownProducerId,
            InvalidProducerEpoch,
            InvalidProducerIdMapping,
            Fenced,
            ProducerFenced,
            Inconsistent,
            InvalidTransactionalState,
            InvalidTransactionTimeout,
            ConcurrentTransactions,
            TransactionCoordinatorFenced,
            OperationNotAttempted,
        ],
    },
    Meaning {
        class: Again,
        phase: Unclear,
        hint: "The broker's answer cannot be read: the relay retries. If it persists, find what changes bytes between here and the \
               broker; TLS shows it.",
        codes: &[BadMessage, Underflow],
    },
    Meaning {
        class: Again,
        phase: Unclear,
        hint: "A producer should never see this code (it belongs to consumers and administrators): the relay retries; \
               please report it.",
        codes: &[
            NoError,
            PartitionEOF,
            UnknownGroup,
            ExistingSubscription,
            AssignPartitions,
            RevokePartitions,
            NoOffset,
            KeyDeserialization,
            ValueDeserialization,
            Partial,
            NoEnt,
            PollExceeded,
            AssignmentLost,
            Noop,
            AutoOffsetReset,
            LogTruncation,
            OffsetOutOfRange,
            OffsetMetadataTooLarge,
            IllegalGeneration,
            InconsistentGroupProtocol,
            InvalidGroupId,
            UnknownMemberId,
            InvalidSessionTimeout,
            RebalanceInProgress,
            InvalidCommitOffsetSize,
            TopicAlreadyExists,
            InvalidPartitions,
            InvalidReplicationFactor,
            InvalidReplicaAssignment,
            NonEmptyGroup,
            GroupIdNotFound,
            FetchSessionIdNotFound,
            InvalidFetchSessionEpoch,
            OffsetNotAvailable,
            MemberIdRequired,
            GroupMaxSizeReached,
            FencedInstanceId,
            ElectionNotNeeded,
            NoReassignmentInProgress,
            GroupSubscribedToTopic,
            UnstableOffsetCommit,
            ResourceNotFound,
            DuplicateResource,
            InconsistentVoterSet,
            InvalidUpdateVersion,
            FeatureUpdateFailed,
            FencedMemberEpoch,
            UnreleasedInstanceId,
            UnsupportedAssignor,
            StaleMemberEpoch,
            UnknownSubscriptionId,
            TelemetryTooLarge,
        ],
    },
];

/// What follows from a code that has no name: a newer broker's, or a garbled one.
pub(super) const UNHEARD_OF: Meaning = Meaning {
    class: Again,
    phase: Unclear,
    hint: "The broker has sent a code that this version does not list: the relay retries. If it persists, look for the number in \
           Kafka's list of error codes, and report it.",
    codes: &[],
};

#[cfg(test)]
mod tests;
