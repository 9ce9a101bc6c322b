import LarderPlatform

/// An event that an operator should know about: in a larder, or in a client of the daemon.
public struct CacheEvent: Sendable, CustomStringConvertible {
    /// The importance of an event.
    public enum Level: String, Sendable, CaseIterable, Comparable {
        /// Details for finding a bug in Larder itself.
        case debug
        /// Something was opened, created or repaired.
        case info
        /// Something that can be recreated was lost, or something may fail later.
        case warning
        /// Something failed: a write, an fsync, a database.
        case error

        private var rank: Int {
            switch self {
            case .debug: 0
            case .info: 1
            case .warning: 2
            case .error: 3
            }
        }

        /// Whether `left` is less important.
        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// The importance of the event.
    public let level: Level
    /// A description of the event in one line. Never contains values.
    public let message: String
    /// What the event is about, for a structured log: `larder` (the directory) or `socket` (the daemon's path), and
    /// where they apply `database`, `key` (printable, and cut to 64 bytes), and `damage`, which is `true` for damaged
    /// files that are salvaged or set aside. Further names may be added.
    public let metadata: [String: String]
    /// The error that caused the event, if a call has thrown one to Larder.
    public let error: (any Error)?

    package init(
        _ level: Level, _ message: String, metadata: [String: String] = [:], error: (any Error)? = nil
    ) { (self.level, self.message, self.metadata, self.error) = (level, message, metadata, error) }

    /// Whether the event reports damaged files of the larder that are salvaged or set aside.
    package var isDamage: Bool { metadata["damage"] != nil }

    /// The level and the message.
    public var description: String { "\(level.rawValue): \(message)" }
}

/// A measured value, for a metrics system.
public struct CacheMeasurement: Sendable {
    /// How a metrics system should treat the value.
    public enum Kind: String, Sendable, CaseIterable {
        /// The value replaces the previous one. Sent only by `CacheStatistics.measurements` of the library.
        case gauge
        /// Record the value, a time in seconds, in a histogram.
        case duration
    }

    /// The name, for example `larder.fetch.duration`.
    public let name: String
    /// How to treat the value.
    public let kind: Kind
    /// The value.
    public let value: Double
    /// The dimensions, by name: `database`, and for durations `operation` and `outcome` (`ok` or `error`). They never
    /// contain keys, so the number of their combinations is small.
    public let dimensions: [String: String]

    package init(_ name: String, _ kind: Kind, _ value: Double, _ dimensions: [String: String]) {
        (self.name, self.kind, self.value, self.dimensions) = (name, kind, value, dimensions)
    }
}

/// A call that has begun, for a tracing system.
public struct CacheCall: Sendable {
    /// Called when the call has ended, with its error or nil.
    public typealias End = @Sendable ((any Error)?) -> Void

    /// The name of the span, for example `larder.fetch`.
    public let name: String
    /// The attributes of the span, by name: `database` and `operation`.
    public let attributes: [String: String]
}

/// The hooks around calls that a program has set.
package struct CallHooks: Sendable {
    private let measurement: (@Sendable (CacheMeasurement) -> Void)?
    private let call: (@Sendable (CacheCall) -> CacheCall.End)?

    /// Returns nil if neither hook is set, so that a call without hooks costs a comparison.
    package init?(
        _ measurement: (@Sendable (CacheMeasurement) -> Void)?, _ call: (@Sendable (CacheCall) -> CacheCall.End)?
    ) {
        guard measurement != nil || call != nil else { return nil }
        self.measurement = measurement
        self.call = call
    }

    /// Reports the beginning of a call.
    /// - Parameter isTraced: false if only the duration is of interest.
    /// - Returns: a closure that reports the end.
    package func begin(_ name: String, _ operation: String, _ database: String, isTraced: Bool = true) -> CacheCall.End
    {
        let attributes = ["database": database, "operation": operation]
        let end = isTraced ? call?(CacheCall(name: name, attributes: attributes)) : nil
        guard let measurement else { return end ?? { _ in } }
        let began = MonotonicClock.nanoseconds()
        return { error in
            end?(error)
            let seconds = Double(MonotonicClock.nanoseconds() - began) / 1e9
            let dimensions = attributes.merging(["outcome": error == nil ? "ok" : "error"]) { $1 }
            measurement(CacheMeasurement(name + ".duration", .duration, seconds, dimensions))
        }
    }
}

extension CallHooks? {
    /// Runs `body`, and reports its beginning and end if a hook is set.
    package nonisolated(nonsending) func around<Result>(
        _ name: String, _ operation: String, _ database: String,
        _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
        guard let end = self?.begin(name, operation, database) else { return try await body() }
        do {
            let result = try await body()
            end(nil)
            return result
        } catch {
            end(error)
            throw error
        }
    }
}
