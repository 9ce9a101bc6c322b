import LarderLevelDB
import LarderPlatform

/// The options of a larder. Every limit has a name and a default.
package struct EngineOptions: Sendable {
    /// How to handle damaged files of a database.
    package enum DamageAction: Sendable {
        /// Throw ``LarderError/Code/damaged`` and change nothing. The library's default.
        case fail
        /// Continue with the readable entries, in new files, and keep the damaged files in `DAMAGED/`. The daemon's
        /// default.
        case salvage
    }

    /// The durability of writes, unless a write has its own.
    package var durability: Durability = .everysecond
    package var onDamage: DamageAction = .fail
    /// The policy of databases that are created without one.
    package var defaultPolicy: UpdatePolicy = .lowest
    /// The maximum number of databases in one larder. Databases without files do not count.
    package var databasesMax = 64
    /// The number of uncommitted bytes above which writers block: 64 MiB.
    package var pendingBytesMax = 64 << 20
    /// The size of the journal at which a checkpoint is due: 64 MiB. At twice this size, writers wait.
    package var checkpointBytes = 64 << 20
    /// The size limit of a run of entries that a checkpoint sorts, writes and syncs together, in bytes: 16 MiB. Then its
    /// entries become clean. With longer runs, LevelDB's tables overlap less, so merging them is cheaper.
    package var checkpointRunBytes = 16 << 20
    /// The longest time between two checkpoints, in milliseconds, if there is anything to write: ten minutes.
    package var checkpointMilliseconds: Int64 = 600_000
    /// The same if the journal is larger than a quarter of ``memoryBytes``, so that its entries leave little memory for
    /// others: half a minute.
    package var crowdedCheckpointMilliseconds: Int64 = 30_000
    /// The size of one segment of the journal: 16 MiB.
    package var journalSegmentBytes = 16 << 20
    /// The maximum number of bytes of damaged files to keep: 1 GiB. The oldest are removed first.
    package var damagedBytesMax = 1 << 30
    /// The disk limit for the larder's files in bytes; nil for none. Near the limit, the least valuable entries are
    /// evicted: see ``DiskBudget``.
    package var diskBytesMax: Int?
    /// Memory for the latest changes of the databases that have followers, in bytes: 32 MiB. The files with these
    /// changes take at most half as much. See ``ChangeLog``.
    package var changeLogBytes = 32 << 20
    /// Identifies the current boot of the machine, because a reboot may lose unsynced writes. Tests set it to simulate
    /// reboots.
    var machineStart = MachineStart.identifier
    /// The interval of the sweep, of syncs and retries, and of the check for a due checkpoint, in milliseconds.
    package var maintenanceMilliseconds: Int64 = 250
    /// The minimum number of bytes that the sweep must have deleted from a database before its tables are merged to
    /// free space: 16 MiB (proportionally less with more than two databases), and half of the size on the disk.
    package var compactionBytesMin = 16 << 20
    /// Whether the background threads run. Tests that control the time turn them off and call ``Engine/maintain()``.
    package var backgroundMaintenance = true
    /// Whether rarely needed threads are started on demand, so that an embedding program has fewer threads. The daemon
    /// starts all threads at once, so that a failure to create a thread is detected at the start.
    package var startsThreadsOnDemand = false
    /// The socket to which another process can connect if it finds the larder in use. Its path is the second line of
    /// LOCK, after the pid of this process.
    package var holderSocket = ""

    /// Whether ``memoryBytes`` limits the memory of the whole process, if possible, and not only that of the entries:
    /// see ``MemoryBudget/note(residentBytes:)``. For a process that does nothing else.
    package var memoryIncludesProcess = false
    /// Memory for entries, shared by all databases, in bytes: 16 MiB; 0 for none. Includes keys and overhead, but not
    /// LevelDB's own memory. The size does not affect the results of commands. Dirty entries count too, and cannot be
    /// evicted. A checkpoint is due when dirty entries take half of this size (but at least 32 MiB), or when the
    /// journal reaches ``checkpointBytes``.
    package var memoryBytes = 16 << 20
    /// The size limit of a record or attachment that is kept in memory, as a fraction of ``memoryBytes``: 32 means a
    /// 32nd. Larger records would evict too many other entries.
    package var largestMemoryPart = 32
    /// The size in bytes from which a record is pinned in memory while it is copied: 1 MiB. Its shard is then not
    /// locked during the copy.
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
    /// The maximum number of files that LevelDB keeps open per database. Reading a table that is not open costs ten
    /// times as much. Open tables are mapped into memory, usually without a descriptor; of each table, up to 15 KiB
    /// (the index) are copied.
    package var openFilesMax = 10_000

    /// Makes the extractors of indexes; nil if the program uses no indexes. Databases whose indexes cannot be read stay
    /// usable, without these indexes.
    package var indexMaker: (any IndexMaker)?

    /// Called with events for the operator, from any thread.
    package var onEvent: @Sendable (CacheEvent) -> Void = { _ in }
    /// Identifies the receiver of the events, so that opening the larder again with another receiver can be refused.
    package var listener: (any AnyObject & Sendable)?
    /// If not nil, a larder opens after one pass through the journal, and the replay continues in the background (see
    /// ``BackgroundReplay``). Called if that replay fails. Must terminate the process, because entries are missing. For
    /// daemons.
    package var onReplayFailure: (@Sendable (LarderError) -> Void)?
    /// Called in the background after the part of the database with this name was replayed. For tests; may wait.
    package var onReplayed: @Sendable (_ database: String) -> Void = { _ in }
    /// Called after the larder was shut down and no longer uses its directory.
    package var onShutdown: @Sendable () -> Void = {}
    /// Called before each commit group is written; throwing makes the commit fail. For tests of failing disks.
    package var beforeCommit: (@Sendable () throws(LarderError) -> Void)?

    /// Makes the journal's calls to the operating system fail. For tests of failing disks.
    var journalFaults: JournalFaults?

    package init() {}
}

/// The failures that a write survives once it is acknowledged.
public enum Durability: String, Sendable, CaseIterable {
    /// Written to the operating system: survives the death of the process (SIGKILL), but not a failure of the machine.
    case os
    /// Like ``os``, plus an fsync at least once a second. The default.
    case everysecond
    /// The fsync has returned before the write is acknowledged; concurrent writes share an fsync.
    case always

    /// The strictness: a level has all guarantees of the levels with lower ranks.
    var rank: Int {
        switch self {
        case .os: 0
        case .everysecond: 1
        case .always: 2
        }
    }
}

/// A system call on the journal's files that a test can make fail.
enum JournalCall: Hashable, Sendable {
    case create
    case rename
    case write(Int)
    case fsync
    case ftruncate(Int)
    case unlink
    case fsyncDirectory
    /// Opens a segment before it is read.
    case open
}

/// The fault that a test injects into a call.
enum JournalFault: Hashable, Sendable {
    /// The call fails with this errno, and does nothing.
    case fail(Int32)
    /// A write takes only this many bytes.
    case shorten(Int)
}

/// For tests: makes system calls of the journal fail. Before each call, `answer` is called with the path of the call's
/// file. `answer` returns the fault, or nil to let the call proceed. It runs on every thread that uses the journal.
struct JournalFaults: Sendable {
    let answer: @Sendable (_ call: JournalCall, _ path: String) -> JournalFault?
}
