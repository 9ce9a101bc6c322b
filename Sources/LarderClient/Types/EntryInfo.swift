import RESP

// Nested in the client, because a program that also imports Larder finds a type of that name there.
extension LarderClient {
    /// How long an entry still has.
    public enum TimeToLive: Hashable, Sendable {
        /// It does not expire.
        case never
        case milliseconds(Int64)
    }

    /// What the daemon knows about an entry besides its value. The answer to `META`.
    ///
    /// Thread-safe: a value.
    public struct EntryInfo: Hashable, Sendable {
        /// Where an entry's deadline comes from. New rules may be added without breaking sources.
        public struct Rule: Hashable, Sendable, CustomStringConvertible {
            public let description: String
            init(_ name: String) { description = name }

            /// Its database's policy: a change of the policy applies to the entry.
            public static let governed = Rule("governed")
            /// It has its own.
            public static let own = Rule("own")
            /// It never expires, whatever the policy says.
            public static let never = Rule("never")
        }

        /// How the value's bytes are to be read. New codecs may be added without breaking sources.
        public struct Codec: Hashable, Sendable, CustomStringConvertible {
            public let description: String
            init(_ name: String) { description = name }

            /// Bytes about which nothing is said.
            public static let raw = Codec("raw")
            /// JSON.
            public static let json = Codec("json")
            /// A property list.
            public static let propertyList = Codec("plist")
            /// What a program's own encoder wrote.
            public static let custom = Codec("custom")
        }

        /// When the value was last written, in milliseconds since 1970.
        public let storedAtMilliseconds: Int64
        /// How long ago that was when the daemon answered.
        public let ageMilliseconds: Int64
        /// The instant from which the entry is not fresh, in milliseconds since 1970; nil for never.
        public let deadlineMilliseconds: Int64?
        /// How long until then, when the daemon answered; nil for never.
        public let timeToLiveMilliseconds: Int64?
        public let rule: Rule
        /// The policy of the entry's database, as the daemon writes it.
        public let databasePolicy: String
        /// Size of the value.
        public let sizeBytes: Int64
        public let codec: Codec
        /// `fresh`, so far: an entry that is not is absent to this call.
        public let state: String

        /// The codec, if this version knows it.
        var storedCodec: LarderVocabulary.Codec? { LarderVocabulary.Codec(name: codec.description) }

        /// Reads the answer to `META`.
        package init(reply: RESPValue) throws(LarderClientError) {
            let fields = try ReplyFields(reply, of: "META")
            storedAtMilliseconds = try fields.integer("stored-at")
            ageMilliseconds = try fields.integer("age")
            deadlineMilliseconds = try fields.milliseconds("deadline")
            timeToLiveMilliseconds = try fields.milliseconds("ttl")
            rule = Rule(try fields.string("rule"))
            databasePolicy = try fields.string("policy")
            sizeBytes = try fields.integer("size")
            codec = Codec(try fields.string("codec"))
            state = try fields.string("state")
        }
    }
}
