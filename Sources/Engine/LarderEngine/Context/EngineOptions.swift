import LarderLevelDB
import LarderPlatform

/// How a larder is opened. Every limit has a name and a default.
package struct EngineOptions: Sendable {
    /// What to do when a database's files turn out to be damaged.
    package enum DamageAction: Sendable {
        /// Throw ``LarderError/Code/damaged`` and change nothing. The library's default.
        case fail
        /// Continue with what can be read, in a new epoch, and keep the damaged files in `DAMAGED/`. What the daemon
        /// does.
        case salvage
    }

    /// What acknowledged writes survive, unless a write says otherwise.
    package var durability: Durability = .everysecond
    package var onDamage: DamageAction = .fail
    /// The policy of databases that are created without one.
    package var defaultPolicy: UpdatePolicy = .lowest
    /// The most databases with files in one larder.
    package var databasesMax = 64
    /// Bytes that may wait to be committed before writers wait too: 64 MiB.
    package var pendingBytesMax = 64 << 20
    /// How many bytes of journal make a checkpoint due: 64 MiB. With twice as many, writers wait.
    package var checkpointBytes = 64 << 20
    /// The longest time between two checkpoints, in milliseconds, if there is anything to write.
    package var checkpointMilliseconds: Int64 = 30_000
    /// Bytes of one segment of the journal: 16 MiB.
    package var journalSegmentBytes = 16 << 20
    /// Bytes of damaged files to keep: 1 GiB. The oldest are removed first.
    package var damagedBytesMax = 1 << 30
    /// The most bytes that the larder's files may take on the disk; nil for no limit. What is worth the least is evicted:
    /// see ``DiskBudget``.
    package var diskBytesMax: Int?
    /// Memory for the latest changes of databases that somebody follows, in bytes: 32 MiB. On the disk they take at most
    /// half of it. See ``ChangeLog``.
    package var changeLogBytes = 32 << 20
    /// Which start of the machine this is: what was not synced under another one may be lost. Tests have several.
    var machineStart = MachineStart.identifier
    /// How often sweep, sync and retries run, and a due checkpoint is looked for, in milliseconds.
    package var maintenanceMilliseconds: Int64 = 250
    /// How many bytes the sweep must have deleted from a database, in addition to half of its size on the disk, before
    /// its tables are merged to give them back: 16 MiB, for more than two databases less in proportion.
    package var compactionBytesMin = 16 << 20
    /// Whether the background threads run. Tests that move time by hand turn them off and call ``Engine/maintain()``.
    package var backgroundMaintenance = true
    /// Whether threads that are rarely needed are started when they are, and only those: an embedding program pays for
    /// each. The daemon finds out at its start whether it may have them all.
    package var startsThreadsOnDemand = false
    /// The second line of LOCK, after the holder's pid, so that a second opener knows where to ask.
    package var holderSocket = ""

    /// Memory for entries beside LevelDB, shared by all databases, keys and overhead included, in bytes: 16 MiB; 0 for
    /// none. Results are the same with and without. Dirty entries count against it and cannot be evicted: a checkpoint
    /// is due when they take half of this, at least 32 MiB, or with ``checkpointBytes`` of journal.
    package var memoryBytes = 16 << 20
    /// Which part of ``memoryBytes`` one record, or one attachment, may take to be kept: a 32nd. Longer ones would push out
    /// too much that others need.
    package var largestMemoryPart = 32
    /// From how many bytes on a record in memory is pinned while it is copied, instead of locked: 1 MiB.
    package var pinnedBytesMin = 1 << 20
    /// Memory for uncompressed blocks read from tables, shared by all databases, in bytes: 32 MiB.
    package var blockCacheBytes = 32 << 20
    /// Bits per key of the Bloom filter, which saves reads of missing keys; 0 for none.
    package var bloomBitsPerKey = 10
    /// Whether tables are compressed with snappy.
    package var compression = true
    /// Memory for entries that LevelDB has not yet written to a table, per database, in bytes: 4 MiB.
    package var writeBufferBytes = 4 << 20
    /// Bytes per block of a table before compression.
    package var blockBytes = 4096
    /// Files kept open, per database.
    package var openFilesMax = 1000

    /// Called with events for the operator, from any thread.
    package var onEvent: @Sendable (EngineEvent) -> Void = { _ in }
    /// Who gets the events, so that it can be told from others.
    package var listener: (any AnyObject & Sendable)?
    /// Called when the larder was shut down and no longer uses its directory.
    package var onShutdown: @Sendable () -> Void = {}
    /// Called before each commit group is written; throwing makes the commit fail. For tests of failing disks.
    package var beforeCommit: (@Sendable () throws(LarderError) -> Void)?

    /// Makes the journal's calls to the operating system fail. For tests of failing disks.
    var journalFaults: JournalFaults?

    package init() {}
}

/// An event in the engine that an operator should know.
package struct EngineEvent: Sendable {
    package enum Level: Int, Sendable, Comparable {
        case debug, info, warning, error
        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }
    package let level: Level
    package let message: String
}
