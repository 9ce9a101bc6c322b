import LarderEngine

/// How a ``Cache`` reads and writes, and how its larder is opened.
///
/// The first group is each cache's own. The second belongs to the larder, that is, to the directory: it counts when the
/// process opens the larder, and is ignored while the larder is open already.
public struct CacheOptions: Sendable {
    /// What acknowledged writes have survived, where a write does not say otherwise. Nil, the default, means what the
    /// larder was opened with, which is ``Durability/everysecond`` where nobody said otherwise.
    public var durability: Durability?
    /// How models become bytes. The default is ``ModelCodec/standard``: JSON, and bytes as they are.
    public var codec: ModelCodec = .standard
    /// What happens when the files of a database turn out to be damaged: bits that flipped, files that were cut short or are gone.
    public enum DamageAction: Sendable, Hashable {
        /// Reads that meet the damage throw ``LarderError/Code/damaged``, and nothing is changed until
        /// `Cache.salvage(named:directory:)` or `Cache.setAsideDamaged(named:directory:)` is called.
        case throwError
        /// What `Cache.salvage(named:directory:)` does is done by itself: at once where the damage keeps a database from being
        /// opened, else by the background thread, and reads that meet the damage throw until it is through. Told of through
        /// ``CacheOptions/onEvent``.
        case salvage
    }

    /// What happens when a stored value is not the model that is asked for. The default is an error.
    public var onDecodingFailure: DecodingFailureAction = .throwError
    /// Whether the decoded models of hot entries are kept beside their bytes, within ``memoryBytes``, so that to read one
    /// again costs a lookup and no decoding. The default is true. Any write to the entry from anywhere in the process drops
    /// them, as do its expiry and eviction. What counts is what is read from the entry, and what can be seen of what the model
    /// makes of it: objects and closures that a model's own initializer makes or refers to are not counted. Classes are always decoded anew, so that no two readers share an object; so are
    /// models that are ``DecodedEachTime``. False where decoding must happen with every read.
    public var decodedModels = true

    /// Memory for uncompressed blocks read from tables, shared by all databases, in bytes. The default is 32 MiB, the
    /// range 0 to 1 TiB.
    public var blockCacheBytes = 32 << 20
    /// Memory for hot entries beside LevelDB, shared by all databases of the larder, keys and overhead included, in bytes:
    /// 16 MiB; 0 for none. Results are the same with and without. Entries that were written and are not in LevelDB yet are
    /// in memory whatever this says: those of some 64 MiB of journal, of 128 MiB at the most before writers wait.
    public var memoryBytes = 16 << 20
    /// Bits per key of the Bloom filter, which spares reads of absent keys. The default is 10, the range 0 (none) to
    /// 64.
    public var bloomBitsPerKey = 10
    /// Whether tables are compressed with snappy. The default is true.
    public var compression = true
    /// Memory for entries that are not yet in a table, per database, in bytes. The default is 4 MiB, the range 64 KiB
    /// to 1 GiB.
    public var writeBufferBytes = 4 << 20
    /// Files kept open, per database. The default is 1000, the range 74 to 50,000.
    public var openFilesMax = 1000
    /// The most databases with files in one larder. The default is 64, the range 1 to 10,000.
    public var databasesMax = 64
    /// Whether the larder's background threads run, which sync every second, write what is in the journal to LevelDB, sweep
    /// expired entries and retry after failed writes. The default is true; false is for tests that move time by hand and
    /// call `Cache.sweep()`, which does all of that.
    public var backgroundMaintenance = true
    /// What happens when the files of a database turn out to be damaged. The default is an error.
    public var onDamage: DamageAction = .throwError
    /// Where time comes from. The default is the clocks of the system; tests use a ``ManualTimeSource``.
    public var timeSource: any TimeSource = SystemTimeSource()
    /// Told of what an operator wants to know, such as an fsync in the background that failed. Called from any thread,
    /// and must not call the cache: locks may be held. The default is nil.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?

    /// The defaults; change what you need.
    public init(codec: ModelCodec = .standard, durability: Durability? = nil) {
        self.codec = codec
        self.durability = durability
    }
}

/// What happens when a stored value is not the model that is asked for.
public enum DecodingFailureAction: Sendable, Hashable {
    /// ``LarderError/Code/decoding``, naming key, type and codec.
    case throwError
    /// As if there were no such entry.
    case treatAsMiss
    /// As if there were no such entry, and the entry is removed, unless it was stored anew meanwhile. A snapshot removes
    /// nothing.
    case removeAndMiss
}

/// Something that happened in a larder which an operator wants to know.
public struct CacheEvent: Sendable, CustomStringConvertible {
    /// How much it matters.
    public enum Level: String, Sendable, CaseIterable {
        /// For whoever looks for a fault in Larder itself.
        case debug
        /// Something was opened, created or set right again.
        case info
        /// Something was lost that can be made again, or may go wrong.
        case warning
        /// Something failed: a write, an fsync, a database.
        case error
    }

    /// How much it matters.
    public let level: Level
    /// What happened, in one line. Values are never part of it.
    public let message: String

    /// The level and the message.
    public var description: String { "\(level.rawValue): \(message)" }
}

extension CacheOptions {
    /// The larder's part, checked.
    func engineOptions() throws(LarderError) -> EngineOptions {
        let ranges: [(String, Int, ClosedRange<Int>)] = [
            ("blockCacheBytes", blockCacheBytes, 0...1 << 40),
            ("memoryBytes", memoryBytes, 0...1 << 40),
            ("bloomBitsPerKey", bloomBitsPerKey, 0...64),
            ("writeBufferBytes", writeBufferBytes, 64 << 10...1 << 30),
            ("openFilesMax", openFilesMax, 74...50_000),
            ("databasesMax", databasesMax, 1...10_000),
        ]
        for (name, value, range) in ranges where !range.contains(value) {
            throw LarderError(
                .invalidArgument,
                "the option \(name) is \(value), and must be from \(range.lowerBound) to \(range.upperBound)",
                operation: "open")
        }
        var options = EngineOptions()
        options.durability = durability ?? .everysecond
        options.blockCacheBytes = blockCacheBytes
        options.memoryBytes = memoryBytes
        options.bloomBitsPerKey = bloomBitsPerKey
        options.compression = compression
        options.writeBufferBytes = writeBufferBytes
        options.openFilesMax = openFilesMax
        options.onDamage = onDamage == .salvage ? .salvage : .fail
        options.databasesMax = databasesMax
        options.backgroundMaintenance = backgroundMaintenance
        if let onEvent {
            options.onEvent = { event in
                onEvent(CacheEvent(level: CacheEvent.Level(event.level), message: event.message))
            }
        }
        return options
    }
}

extension CacheEvent.Level {
    init(_ level: EngineEvent.Level) {
        switch level {
        case .debug: self = .debug
        case .info: self = .info
        case .warning: self = .warning
        case .error: self = .error
        }
    }
}
