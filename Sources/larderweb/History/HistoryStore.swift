import Larder

/// The samples of one daemon in larderweb's own larder, one per minute. They expire after 25 hours.
///
/// Thread-safe, like its cache.
struct HistoryStore: Sendable {
    /// The larder that has the samples, and the daemon they belong to.
    struct Place: Sendable {
        /// The larder's directory; nil for the default in the user's cache directory.
        let directory: String?
        /// The daemon's socket, so that the samples of different daemons are separate.
        let daemon: String
    }

    private let cache: Cache
    private let prefix: String

    private static let secondsKept = 90_000.0

    private static let database = "samples"

    /// Opens the larder, and creates it if it is missing. Damaged files are salvaged. Throws an error if the larder has
    /// databases of another program, whose entries the disk limit set here would evict.
    /// - Parameter onEvent: receives the larder's events, like ``CacheOptions/onEvent``.
    init(_ place: Place, onEvent: @escaping @Sendable (CacheEvent) -> Void) throws(LarderError) {
        if let other = try Cache.databases(in: place.directory).first(where: { $0 != Self.database }) {
            throw LarderError(
                .invalidArgument, "the larder of --history must be larderweb's own, but this one has other databases",
                operation: "open", database: other)
        }
        var options = CacheOptions()
        // A day's samples are less than a megabyte, and are read only once, so do not cache them.
        options.memoryBytes = 0
        options.blockCacheBytes = 0
        options.decodedModels = false
        options.writeBufferBytes = 1 << 20
        options.diskBytesMax = 16 << 20
        options.openFilesMax = 74
        options.onDamage = .salvage
        options.onEvent = onEvent
        options.onDecodingFailure = .treatAsMiss
        cache = try Cache(
            named: Self.database, interval: Self.secondsKept, directory: place.directory,
            options: options)
        prefix = "sample:\(place.daemon):"
    }

    /// The path of the larder.
    var directory: String { cache.directory }

    /// Returns the key of a sample, which ends with the number of minutes since 1970. This number has eight digits for
    /// the next century, so keys are in the order of time.
    private func key(_ seconds: Int64) -> String { prefix + "\(seconds / 60)" }

    func keep(_ sample: Sample) throws(LarderError) { try cache.set(sample, forKey: key(sample.time)) }

    /// Returns the samples since a time, oldest first. Skips unreadable samples.
    func kept(since start: Int64) throws(LarderError) -> [Sample] {
        try cache.entries(of: Sample.self, EntryOptions(prefix: prefix, from: key(start))).values()
            .filter { $0.time >= start }
    }

    func close() { cache.close() }
}
