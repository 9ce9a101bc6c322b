import RESP

extension LarderClient {
    /// One database of the daemon's larder. An element of the answer to `DATABASES`.
    ///
    /// Thread-safe: a value.
    public struct DatabaseInfo: Hashable, Sendable {
        public let name: String
        /// The policy, as the daemon writes it: `lowest`, `every 90`.
        public let policy: String
        /// How long its entries stay fresh, in milliseconds; nil when they do not expire.
        public let intervalMilliseconds: Int64?
        /// How many entries it has, those included that expired and were not yet swept; nil when they cannot be
        /// counted, because the database cannot be opened.
        public let entries: Int64?
        /// Its size on disk, roughly.
        public let bytes: Int64
        /// `open`, `closed`, `failed` or `damaged`.
        public let state: String

        package init(reply: RESPValue) throws(LarderClientError) {
            let fields = try ReplyFields(reply, of: "DATABASES")
            name = try fields.string("name")
            policy = try fields.string("policy")
            intervalMilliseconds = try fields.milliseconds("interval")
            let count = try fields.integer("entries")
            entries = count < 0 ? nil : count
            bytes = try fields.integer("bytes")
            state = try fields.string("state")
        }
    }

    /// What a purge removed.
    ///
    /// Thread-safe: a value.
    public struct PurgeResult: Hashable, Sendable {
        /// How many entries were removed.
        public let entries: Int64
        /// How many bytes they took, roughly.
        public let bytes: Int64
        /// How long it took.
        public let milliseconds: Int64

        package init(reply: RESPValue) throws(LarderClientError) {
            let fields = try ReplyFields(reply, of: "PURGE")
            entries = try fields.integer("entries")
            bytes = try fields.integer("bytes")
            milliseconds = try fields.integer("milliseconds")
        }
    }

    /// A database's policy. The answer to `POLICY`.
    ///
    /// Thread-safe: a value.
    public struct PolicyInfo: Hashable, Sendable {
        /// The policy, as the daemon writes it: `lowest`, `every 90`.
        public let policy: String
        /// How long entries stay fresh, in milliseconds; nil when they do not expire.
        public let intervalMilliseconds: Int64?

        package init(reply: RESPValue) throws(LarderClientError) {
            let fields = try ReplyFields(reply, of: "POLICY")
            policy = try fields.string("policy")
            intervalMilliseconds = try fields.milliseconds("interval")
        }
    }
}
