import LarderVocabulary

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The errors of calls that fetch, in addition to the errors of the cache and of the origin's closure.
public struct FetchError: Error, Sendable {
    /// A kind of error. New kinds may be added without breaking sources.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String
        private init(_ name: String) { description = name }

        /// The cache has no acceptable value, and the source was ``FetchSource/cacheOnly``.
        public static let notCached = Code("notCached")
        /// A recent fetch, whose result is cached, has found that the origin has no value.
        public static let absent = Code("absent")
        /// No value arrived within ``FetchOptions/hardTimeout``.
        public static let timeout = Code("timeout")
        /// The fetch failed recently in another process, ``FetchOptions/backOff`` is not over, and the cache has no
        /// value to serve. In the process where the closure failed, callers get the closure's error instead.
        public static let originRests = Code("originRests")
        /// A deadlock: the closure of a key requests the same key, or a key whose closure waits for the first one.
        public static let recursion = Code("recursion")
        /// An option is outside the allowed range.
        public static let invalidArgument = Code("invalidArgument")
    }

    /// The kind of the error, for programs.
    public let code: Code
    /// A message for people.
    public let message: String
    /// The name of the database.
    public let database: String
    /// The key in printable form, cut to 64 bytes.
    public let key: String

    package init(_ code: Code, _ message: String, _ name: FetchName) {
        self.code = code
        self.message = message
        database = name.database
        key = name.printable
    }
}

extension FetchError: CustomStringConvertible {
    public var description: String { "fetch in database '\(database)', key '\(key)': \(message)" }
}

extension FetchError {
    package static func notCached(_ name: FetchName) -> FetchError {
        FetchError(.notCached, "the cache has no value, and the source is cacheOnly", name)
    }

    package static func absent(_ name: FetchName) -> FetchError {
        FetchError(
            .absent,
            "the origin has no value (cached result); use a closure that returns an optional to get nil",
            name)
    }

    package static func recursion(_ name: FetchName) -> FetchError {
        FetchError(
            .recursion,
            "deadlock: the closure that fetches this key needs the key itself; "
                + "read the cached value without a closure instead", name)
    }

    /// - Parameter closure: the key whose closure makes the call.
    package static func cycle(_ name: FetchName, _ closure: FetchName) -> FetchError {
        FetchError(
            .recursion,
            "deadlock: the closure that fetches '\(closure.printable)' needs this key, and the fetch of this key waits "
                + "for that closure; read the cached value without a closure instead", name)
    }

    package static func timeout(_ name: FetchName, _ milliseconds: Int64) -> FetchError {
        FetchError(.timeout, "no value within \(milliseconds) ms", name)
    }

    package static func originRests(_ name: FetchName, _ milliseconds: Int64) -> FetchError {
        FetchError(
            .originRests,
            "the origin failed and is retried in \(milliseconds) ms at the earliest; "
                + "there is no value to serve until then", name)
    }
}

// Foundation shows errors by `localizedDescription`, which does not use `description`.

extension FetchError: LocalizedError {
    /// The description of the error.
    public var errorDescription: String? { description }
}
