import LarderEngine

/// How a ``Cache`` reads and writes, and how its larder is opened.
///
/// The first group belongs to each cache. The second, from ``blockCacheBytes`` on, belongs to the larder, that is, to the
/// directory: it takes effect when the process opens the larder. While the larder is open, opening another cache throws
/// ``LarderError/Code/invalidArgument`` if one of these was set to something else than the larder has. Use the same options
/// for all caches of a larder, or set those of the second group for the first cache only.
public struct CacheOptions: Sendable {
    /// What acknowledged writes survive, unless a write says otherwise. Nil, the default, means the durability with
    /// which the larder was opened, which is ``Durability/everysecond`` by default.
    public var durability: Durability?
    /// How models are encoded. The default is ``ModelCodec/standard``: JSON, and bytes as they are.
    public var codec: ModelCodec = .standard
    /// What happens when files of a database turn out to be damaged: flipped bits, files that were cut short or are
    /// missing.
    public enum DamageAction: Sendable, Hashable {
        /// Reads that meet the damage throw ``LarderError/Code/damaged``, and nothing is changed before a call of
        /// `Cache.salvage(named:directory:)` or `Cache.setAsideDamaged(named:directory:)`.
        case throwError
        /// The larder does by itself what `Cache.salvage(named:directory:)` does: at once if the damage prevents
        /// opening a database, else on a background thread; until that is finished, reads that meet the damage throw.
        /// ``CacheOptions/onEvent`` reports it.
        case salvage
    }

    /// What happens when a stored value is not a model of the requested type. The default is an error. Calls with a closure
    /// that can make a new one, `value(_:forKey:options:fetch:)`, `values(_:forKeys:options:fetch:)` and `update`, take it for a
    /// miss in any case; with the default ``onEvent`` reports that.
    public var onDecodingFailure: DecodingFailureAction = .throwError
    /// Whether the decoded models of entries in memory are kept beside their bytes, within ``memoryBytes``, so that
    /// reading one again costs a lookup and no decoding. A model is kept if it, and its stored value, each take at most a
    /// quarter of ``memoryBytes``, 4 MiB with the default; larger ones are decoded at each read. The default is true. Any write to the entry in the process
    /// drops its model, and so do expiry and eviction. Objects and closures that a model's own initializer makes or
    /// refers to are not counted. Classes are always decoded again, so that no two readers share an object; so are
    /// models that are ``DecodedEachTime``. Set it to false if every read must decode.
    public var decodedModels = true

    /// Memory for uncompressed blocks read from tables, shared by all databases, in bytes. The default is 32 MiB, the
    /// range 0 to 1 TiB.
    public var blockCacheBytes = 32 << 20 { didSet { chosen.insert("blockCacheBytes") } }
    /// Memory for entries beside LevelDB, shared by all databases of the larder, keys and overhead included, in bytes:
    /// 16 MiB; 0 for none. Results are the same with and without. Written entries that are not in LevelDB yet are in
    /// memory in any case: those of some 64 MiB of journal, and 128 MiB at most, when writers wait.
    public var memoryBytes = 16 << 20 { didSet { chosen.insert("memoryBytes") } }
    /// The most bytes that all files of the larder may take on the disk: tables, journal, and what is being removed. What is
    /// worth the least is evicted: entries that were seldom read lately, in relation to their size. From 16 MiB to
    /// 1 PiB. Nil, the default, means no limit: a program that keeps entries for ever should not lose them unasked.
    public var diskBytesMax: Int? { didSet { chosen.insert("diskBytesMax") } }
    /// Bits per key of the Bloom filter, which saves reads of missing keys. The default is 10, the range 0 (none) to
    /// 64.
    public var bloomBitsPerKey = 10 { didSet { chosen.insert("bloomBitsPerKey") } }
    /// Whether tables are compressed with snappy. The default is true.
    public var compression = true { didSet { chosen.insert("compression") } }
    /// Memory for entries that are not yet in a table, per database, in bytes. The default is 4 MiB, the range 64 KiB
    /// to 1 GiB.
    public var writeBufferBytes = 4 << 20 { didSet { chosen.insert("writeBufferBytes") } }
    /// Files kept open, per database. The default is 1000, the range 74 to 50,000.
    public var openFilesMax = 1000 { didSet { chosen.insert("openFilesMax") } }
    /// The most databases with files in one larder. The default is 64, the range 1 to 10,000.
    public var databasesMax = 64 { didSet { chosen.insert("databasesMax") } }
    /// Whether the larder's background threads run. They sync every second, write entries from the journal to LevelDB,
    /// sweep expired entries and retry after failed writes. The default is true; false is for tests that move time by
    /// hand and call `Cache.sweep()`, which does all of that.
    public var backgroundMaintenance = true { didSet { chosen.insert("backgroundMaintenance") } }
    /// What happens when files of a database turn out to be damaged. The default is an error.
    public var onDamage: DamageAction = .throwError { didSet { chosen.insert("onDamage") } }
    /// The source of time. The default is the system's clocks; tests use a ``ManualTimeSource``.
    public var timeSource: any TimeSource = SystemTimeSource() { didSet { chosen.insert("timeSource") } }
    /// Called with events for the operator, such as a failed fsync in the background. Called from any thread, and must
    /// not call the cache, because locks may be held. A larder has one: caches of one larder take copies of the same options,
    /// or leave it nil. The default is nil.
    public var onEvent: (@Sendable (CacheEvent) -> Void)? { didSet { listener = onEvent.map { EventListener($0) } } }

    /// Which options of the larder were set.
    private var chosen: Set<String> = []
    private var listener: EventListener?

    /// The defaults; change what you need.
    public init(codec: ModelCodec = .standard, durability: Durability? = nil) {
        self.codec = codec
        self.durability = durability
    }
}

/// What happens when a stored value is not a model of the requested type.
public enum DecodingFailureAction: Sendable, Hashable {
    /// ``LarderError/Code/decoding``, naming key, type and codec.
    case throwError
    /// As if there were no such entry.
    case treatAsMiss
    /// As if there were no such entry, and the entry is removed, unless it was stored again meanwhile. A snapshot
    /// removes nothing.
    case removeAndMiss
}

/// An event in a larder that an operator should know.
public struct CacheEvent: Sendable, CustomStringConvertible {
    /// The importance of an event.
    public enum Level: String, Sendable, CaseIterable {
        /// For finding a fault in Larder itself.
        case debug
        /// Something was opened, created or repaired.
        case info
        /// Something was lost that can be made again, or may fail later.
        case warning
        /// Something failed: a write, an fsync, a database.
        case error
    }

    /// The importance of the event.
    public let level: Level
    /// What happened, in one line. Values are never part of it.
    public let message: String

    /// The level and the message.
    public var description: String { "\(level.rawValue): \(message)" }
}

extension CacheOptions {
    /// The options of the larder, validated.
    func engineOptions() throws(LarderError) -> EngineOptions {
        let ranges: [(String, Int, ClosedRange<Int>)] = [
            ("blockCacheBytes", blockCacheBytes, 0...1 << 40),
            ("memoryBytes", memoryBytes, 0...1 << 40),
            ("bloomBitsPerKey", bloomBitsPerKey, 0...64),
            ("writeBufferBytes", writeBufferBytes, 64 << 10...1 << 30),
            ("openFilesMax", openFilesMax, 74...50_000),
            ("databasesMax", databasesMax, 1...10_000),
            ("diskBytesMax", diskBytesMax ?? 16 << 20, 16 << 20...1 << 50),
        ]
        for (name, value, range) in ranges where !range.contains(value) {
            throw LarderError(
                .invalidArgument,
                "the option \(name) is \(value), and must be from \(range.lowerBound) to \(range.upperBound)",
                operation: "open")
        }
        var options = EngineOptions()
        options.startsThreadsOnDemand = true
        // A program knows its models: even large ones cost far more to decode than to keep.
        options.largestMemoryPart = 4
        options.durability = durability ?? .everysecond
        options.blockCacheBytes = blockCacheBytes
        options.memoryBytes = memoryBytes
        options.bloomBitsPerKey = bloomBitsPerKey
        options.compression = compression
        options.writeBufferBytes = writeBufferBytes
        options.openFilesMax = openFilesMax
        options.onDamage = onDamage == .salvage ? .salvage : .fail
        options.databasesMax = databasesMax
        options.diskBytesMax = diskBytesMax
        options.backgroundMaintenance = backgroundMaintenance
        if let listener {
            options.onEvent = { event in
                listener.body(CacheEvent(level: CacheEvent.Level(event.level), message: event.message))
            }
            options.listener = listener
        }
        return options
    }

    /// Refuses options that a larder which was open before does not have.
    func check(_ engine: Engine) throws(LarderError) {
        let present = engine.options
        if durability == .everysecond, present.durability == .os {
            throw LarderError(
                .invalidArgument,
                "the larder is open with durability 'os' and does not sync by itself; open it with 'everysecond' "
                    + "first, or use 'always'", operation: "open")
        }
        let others: [(String, Bool)] = [
            ("blockCacheBytes", blockCacheBytes != present.blockCacheBytes),
            ("memoryBytes", memoryBytes != present.memoryBytes),
            ("diskBytesMax", diskBytesMax != present.diskBytesMax),
            ("bloomBitsPerKey", bloomBitsPerKey != present.bloomBitsPerKey),
            ("compression", compression != present.compression),
            ("writeBufferBytes", writeBufferBytes != present.writeBufferBytes),
            ("openFilesMax", openFilesMax != present.openFilesMax),
            ("databasesMax", databasesMax != present.databasesMax),
            ("backgroundMaintenance", backgroundMaintenance != present.backgroundMaintenance),
            ("onDamage", (onDamage == .salvage) != (present.onDamage == .salvage)),
            ("timeSource", !engine.clock.follows(timeSource)),
        ]
        var refused = others.first { $0.1 && chosen.contains($0.0) }?.0
        if let listener, listener !== present.listener { refused = refused ?? "onEvent" }
        guard let refused else { return }
        throw LarderError(
            .invalidArgument,
            "the larder is open with another \(refused); open it with this one first, or leave the option alone",
            operation: "open")
    }
}

/// A program's closure for events, with an identity: copies of options have the same one.
private final class EventListener: Sendable {
    let body: @Sendable (CacheEvent) -> Void

    init(_ body: @escaping @Sendable (CacheEvent) -> Void) { self.body = body }
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
