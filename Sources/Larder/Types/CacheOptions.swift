import LarderEngine
import LarderQuerying

/// How a ``Cache`` reads and writes, and how its larder is opened.
///
/// The first group applies to each cache. The second group, starting with ``blockCacheBytes``, applies to the larder,
/// that is, to the directory: it takes effect when the process opens the larder. While the larder is open, opening
/// another cache throws ``LarderError/Code/invalidArgument`` if one of these options is set to another value. Use the
/// same options for all caches of a larder, or set the options of the second group for the first cache only.
public struct CacheOptions: Sendable {
    /// The failures that acknowledged writes survive, unless a write specifies its own durability. Nil, the default,
    /// means the durability with which the larder was opened, by default ``Durability/everysecond``.
    public var durability: Durability?
    /// How models are encoded. The default is ``ModelCodec/standard``: JSON, and bytes unchanged.
    public var codec: ModelCodec = .standard
    /// The reaction to damaged files of a database: flipped bits, truncated or missing files.
    public enum DamageAction: Sendable, Hashable {
        /// Reads that meet the damage throw ``LarderError/Code/damaged``. Nothing is changed until
        /// `Cache.salvage(named:directory:)` or `Cache.setAsideDamaged(named:directory:)` is called.
        case throwError
        /// The larder calls `Cache.salvage(named:directory:)` itself: immediately if the damage prevents opening a
        /// database, otherwise on a background thread. Until the salvage has finished, reads that meet the damage
        /// throw. ``CacheOptions/onEvent`` reports the salvage.
        case salvage
    }

    /// The reaction to a stored value that is not a model of the requested type. The default is an error.
    /// `value(_:forKey:options:fetch:)`, `values(_:forKeys:options:fetch:)` and `update` always treat such a value as a
    /// miss, because their closures can make a new value. With the default they also report the failure to ``onEvent``.
    public var onDecodingFailure: DecodingFailureAction = .throwError
    /// Whether decoded models of entries in memory are kept with the entries, within ``memoryBytes``. Reading a model
    /// again then costs only a lookup. The default is true; set it to false if every read must decode.
    ///
    /// A model is kept if the model and its stored value each take at most a quarter of ``memoryBytes``, by default 4
    /// MiB. Larger models are decoded at each read. A model is dropped when its entry is written in this process,
    /// expires or is evicted. Objects and closures that a model's own initializer creates or refers to are not counted.
    /// Instances of classes are decoded at each read, so that no two reads return the same object, and so are models of
    /// types that conform to ``DecodedEachTime``. Callers that wait for the same fetch get the same object.
    public var decodedModels = true

    /// A handler for measurements, called on any thread; it must not call the cache. The default is nil, and then
    /// nothing is measured. All are durations in seconds: `larder.operation.duration` (calls for keys and batches that
    /// decode, write, or read the disk), `larder.fetch.duration` (fetch closures), `larder.origin.duration` (calls to an
    /// ``OriginCache``'s origin) and `larder.outbox.duration` (deliveries). `Cache.statistics()` returns counters.
    public var onMeasurement: (@Sendable (CacheMeasurement) -> Void)?
    /// A handler for calls that leave the larder, for tracing: `larder.fetch`, `larder.origin` and `larder.outbox`, as
    /// for ``onMeasurement``. It is called in the task that makes the call, before the call, and returns a closure that
    /// is called after it. The default is nil.
    public var onCall: (@Sendable (CacheCall) -> CacheCall.End)?

    /// The memory for uncompressed blocks that were read from LevelDB's tables, shared by all databases, in bytes. The
    /// default is 32 MiB, the range 0 to 1 TiB.
    public var blockCacheBytes = 32 << 20 { didSet { chosen.insert("blockCacheBytes") } }
    /// The memory for the cache of entries in front of LevelDB, in bytes, including keys and overhead. All databases of
    /// the larder share it. The default is 16 MiB; 0 means none. The size does not change the results of calls. Entries
    /// that are not in LevelDB yet take additional memory: usually the entries in about 64 MiB of journal. Writers wait
    /// when the journal reaches 128 MiB.
    public var memoryBytes = 16 << 20 { didSet { chosen.insert("memoryBytes") } }
    /// The disk limit for all files of the larder in bytes: tables, journal, and files being removed. Entries with few
    /// recent reads in relation to their size are evicted first. From 16 MiB to 1 PiB. Nil, the default, means no
    /// limit, because a larder should not evict entries unless the program asks for it.
    public var diskBytesMax: Int? { didSet { chosen.insert("diskBytesMax") } }
    /// The bits per key of the Bloom filter, which saves disk reads for missing keys. The default is 10, the range 0
    /// (none) to 64.
    public var bloomBitsPerKey = 10 { didSet { chosen.insert("bloomBitsPerKey") } }
    /// Whether tables are compressed with snappy. The default is true.
    public var compression = true { didSet { chosen.insert("compression") } }
    /// The memory of LevelDB for entries that are not yet in a table, per database, in bytes. The default is 4 MiB, the
    /// range 64 KiB to 1 GiB.
    public var writeBufferBytes = 4 << 20 { didSet { chosen.insert("writeBufferBytes") } }
    /// The maximum number of files kept open per database. The default is 10,000, the range 74 to 50,000. Files are
    /// mapped into memory and need descriptors only above 30,000 in the process.
    public var openFilesMax = 10_000 { didSet { chosen.insert("openFilesMax") } }
    /// The maximum number of databases with files in one larder. The default is 64, the range 1 to 10,000.
    public var databasesMax = 64 { didSet { chosen.insert("databasesMax") } }
    /// Whether the larder's background threads run. They sync every second, write entries from the journal to LevelDB,
    /// sweep expired entries and retry after failed writes. The default is true. Set it to false for tests that control
    /// the time and call `Cache.sweep()`, which does all of that.
    public var backgroundMaintenance = true { didSet { chosen.insert("backgroundMaintenance") } }
    /// The reaction to damaged files of a database. The default is an error.
    public var onDamage: DamageAction = .throwError { didSet { chosen.insert("onDamage") } }
    /// The source of time. The default is the system's clocks. Tests use a ``ManualTimeSource``, or any clock of
    /// Swift's protocol `Clock`, which a ``ClockTimeSource`` adapts. Timers, such as
    /// ``FetchOptions/hardTimeout``, always use the system's clocks.
    public var timeSource: any TimeSource = SystemTimeSource() { didSet { chosen.insert("timeSource") } }
    /// A handler for events that an operator should see, such as a failed fsync in the background. It is called from
    /// any thread, and must not call the cache, because locks may be held. A larder has one handler, so all its caches
    /// must use copies of the same options, or leave the handler nil. The default is nil.
    public var onEvent: (@Sendable (CacheEvent) -> Void)? { didSet { listener = onEvent.map { EventListener($0) } } }

    /// The names of the larder's options that the program has set.
    private var chosen: Set<String> = []
    private var listener: EventListener?

    /// Creates the default options.
    public init(codec: ModelCodec = .standard, durability: Durability? = nil) {
        (self.codec, self.durability) = (codec, durability)
    }
}

/// The reaction to a stored value that is not a model of the requested type.
public enum DecodingFailureAction: Sendable, Hashable {
    /// Throw ``LarderError/Code/decoding``, naming key, type and codec.
    case throwError
    /// Treat the entry as missing.
    case treatAsMiss
    /// Treat the entry as missing, and remove it unless it was stored again in the meantime. A snapshot removes
    /// nothing.
    case removeAndMiss
}

extension CacheOptions {
    /// Returns the options of the larder after checking their ranges.
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
        // Allow a model to take a quarter of the memory: even large models are much cheaper to keep than to decode
        // again.
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
        options.indexMaker = DocumentIndexMaker()
        if let listener {
            options.onEvent = listener.body
            options.listener = listener
        }
        return options
    }

    /// Throws an error if an option differs from that of the open larder.
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
            "the larder is already open with another \(refused); use this value when it is first opened, or omit the option",
            operation: "open")
    }
}

/// Wraps a program's event handler in an object, so that copies of the options have the same handler by identity.
private final class EventListener: Sendable {
    let body: @Sendable (CacheEvent) -> Void

    init(_ body: @escaping @Sendable (CacheEvent) -> Void) { self.body = body }
}
