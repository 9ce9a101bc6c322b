import LarderVocabulary

/// The errors of calls that fetch, in addition to those of the cache and of the origin's closure.
public struct FetchError: Error, Sendable {
    /// A kind of error. New kinds may be added without breaking sources.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String
        private init(_ name: String) { description = name }

        /// The cache has no acceptable value, and the source was ``FetchSource/cacheOnly``.
        public static let notCached = Code("notCached")
        /// The origin has no value: a cached result of a recent fetch.
        public static let absent = Code("absent")
        /// No value arrived within ``FetchOptions/hardTimeout``.
        public static let timeout = Code("timeout")
        /// The origin failed recently in another process, ``FetchOptions/backOff`` is not over, and the cache has
        /// nothing to serve. In the process whose closure failed, callers get the closure's error.
        public static let originRests = Code("originRests")
        /// A closure that fetches a key needs the same key, or one whose closure waits for it: a deadlock.
        public static let recursion = Code("recursion")
        /// An option is outside the allowed range.
        public static let invalidArgument = Code("invalidArgument")
    }

    /// The kind of the error, for programs.
    public let code: Code
    /// A message for people.
    public let message: String
    /// The database.
    public let database: String
    /// The key, printable and cut to 64 bytes.
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
        FetchError(.notCached, "the cache has no value, and the origin may not be asked (cacheOnly)", name)
    }

    package static func absent(_ name: FetchName) -> FetchError {
        FetchError(
            .absent,
            "the origin has no value, as somebody else has found out; a closure that returns an optional gets nil",
            name)
    }

    package static func recursion(_ name: FetchName) -> FetchError {
        FetchError(
            .recursion,
            "the closure that fetches this key has asked for it again, and would wait for itself: "
                + "read what is cached without a closure instead", name)
    }

    /// - Parameter closure: the key whose closure makes the call.
    package static func cycle(_ name: FetchName, _ closure: FetchName) -> FetchError {
        FetchError(
            .recursion,
            "the closure that fetches '\(closure.printable)' has asked for this key, whose closure waits for that one: "
                + "both would wait for ever; read what is cached without a closure instead", name)
    }

    package static func timeout(_ name: FetchName, _ milliseconds: Int64) -> FetchError {
        FetchError(.timeout, "the value did not come within \(milliseconds) ms", name)
    }

    package static func originRests(_ name: FetchName, _ milliseconds: Int64) -> FetchError {
        FetchError(
            .originRests,
            "the origin has failed, and is not asked again before \(milliseconds) ms are over; there is "
                + "nothing to serve meanwhile", name)
    }
}
