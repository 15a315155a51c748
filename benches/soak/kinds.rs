//! What the parts of a draw are chosen from.

use anyhow::Context as _;
use serde::Serialize;

/// Words of an enumeration: for pins, lines and documents.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The one with this word.
            pub fn parse(word: &str) -> anyhow::Result<Self> {
                let known = || Self::ALL.iter().map(|one| one.word()).collect::<Vec<_>>().join(", ");
                Self::ALL.iter().copied().find(|one| one.word() == word).with_context(|| format!("{word} is none of {}", known()))
            }
        }
    };
}

words! {
    /// How the table is made.
    Kind {
        /// One table.
        Plain => "plain",
        /// Four partitions by a hash of the id.
        Hash => "hash",
        /// Partitions of ten seconds each by `created_at`.
        Range => "range",
        /// A table with two children that rows are inserted into directly, too.
        Inheritance => "inheritance",
    }
}

words! {
    /// Where `created_at` comes from.
    CreatedAt {
        /// `DEFAULT clock_timestamp()`.
        Clock => "clock",
        /// The same, and the stamp trigger.
        Stamp => "stamp",
        /// The same, and the stamp trigger, `ENABLE ALWAYS`.
        Always => "always",
        /// `DEFAULT now()`.
        Now => "now",
        /// No default: writers send the server's clock, read inside the transaction.
        Sent => "sent",
    }
}

words! {
    /// Where messages go.
    Sink {
        /// A real Apache Kafka.
        Kafka => "kafka",
        /// The SMS gateway.
        Sms => "sms",
        /// The HTTP provider.
        Http => "http",
        /// Standard output, appended to one file by all replicas.
        Stdout => "stdout",
    }
}

words! {
    /// What a writer's transaction does; all draws have `single` and `block`.
    Move {
        /// A statement of its own.
        Single => "single",
        /// Several statements with pauses, savepoints kept and undone, sometimes rolled back.
        Block => "block",
        /// COPY inside a block.
        Copy => "copy",
        /// Two-phase commit; the session goes on to its next transaction before the second phase.
        Prepared => "prepared",
        /// One message to the server that holds two transactions.
        Message => "message",
        /// UPDATE of recent rows; neither keys nor `created_at` change.
        Update => "update",
        /// INSERT into a child of an inheritance table.
        Child => "child",
    }
}

words! {
    /// What the owner does to the table meanwhile.
    Ddl {
        /// `ALTER TABLE … ADD COLUMN … DEFAULT random()`.
        Rewrite => "rewrite",
        /// `VACUUM FULL` of a member.
        VacuumFull => "vacuum_full",
        /// `CLUSTER` of a member.
        Cluster => "cluster",
        /// `SET ACCESS METHOD` of a member, to a second name of heap and back.
        AccessMethod => "access_method",
        /// A member emptied and filled again in one transaction.
        Swap => "swap",
        /// `pg_repack` of a member.
        Repack => "repack",
        /// `DETACH` and `ATTACH` (or `NO INHERIT` and `INHERIT`) in one transaction.
        Reattach => "reattach",
        /// The same in two transactions, so that the table is seen without the member.
        Detach => "detach",
        /// `DETACH CONCURRENTLY`, then `ATTACH`.
        DetachConcurrently => "detach_concurrently",
    }
}

words! {
    /// What goes wrong.
    Fault {
        /// SIGKILL to a replica, which is started again.
        Kill => "kill",
        /// SIGTERM to a replica, which is started again.
        Term => "term",
        /// SIGSTOP for up to ten seconds, past every time-out of the relay.
        Stop => "stop",
        /// Sessions of the relay ended by `pg_terminate_backend`.
        Sessions => "sessions",
        /// Sessions of writers ended the same way.
        Writers => "writers",
        /// PostgreSQL killed with SIGKILL and started again.
        Postgres => "postgres",
        /// PostgreSQL shut down (fast) and started again.
        Restart => "restart",
        /// The broker killed with SIGKILL and started again; the other receivers refuse for a while.
        Receiver => "receiver",
        /// The receiver hangs for some seconds.
        Hang => "hang",
        /// The network delays by up to 200 ms, to PostgreSQL and to Kafka.
        Delay => "delay",
        /// The network cuts all connections, to PostgreSQL and to Kafka.
        Cut => "cut",
        /// The network carries nothing for some seconds, and connections stay.
        Silence => "silence",
    }
}

words! {
    /// How rows are lost on purpose (`planted`).
    Plant {
        /// A topic is copied without the records of some rows.
        TopicCopy => "topic_copy",
        /// A cursor is moved over rows by hand.
        CursorMoved => "cursor_moved",
        /// The record of an interrupted turn says of rows that they were acknowledged.
        ProgressTouched => "progress_touched",
        /// A dead letter is deleted.
        LetterDeleted => "letter_deleted",
        /// Rows come below the position, and what the audit has recorded of their place is deleted.
        SlicesDeleted => "slices_deleted",
        /// The owner sends a `created_at` that was passed.
        ValueSent => "value_sent",
        /// The same through a view.
        View => "view",
        /// The same through a `SECURITY DEFINER` function.
        Definer => "definer",
        /// An `AFTER` trigger changes `created_at`.
        Trigger => "trigger",
        /// A rule sends `created_at`.
        Rule => "rule",
        /// `session_replication_role = replica` skips the stamp trigger.
        ReplicaRole => "replica_role",
        /// A transaction commits after its rows were passed.
        LongTransaction => "long_transaction",
        /// The same with savepoints.
        Savepoint => "savepoint",
        /// The same in two phases.
        Prepared => "prepared",
        /// The second transaction of one message to the server stamps its rows with `now()`.
        Message => "message",
        /// A transaction with COPY commits after its rows were passed.
        Copy => "copy",
        /// The same by the relay's own role.
        OwnRole => "own_role",
        /// A row's shard key is updated: neither shard delivers it.
        ShardKey => "shard_key",
    }
}
