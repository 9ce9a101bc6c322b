/// Commands that compare values: common subsequences (LCS), digests, and conditional changes.
extension CommandMetadata {
    static let comparison: [CommandMetadata] = [.lcs, .digest, .delex, .msetex]

    package static let lcs = CommandMetadata(
        "lcs", arity: -3, [.readonly], keys: .two, group: .string, since: "7.0.0",
        complexity: "O(N*M) with N and M the values' lengths, in time and memory",
        syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        summary: "Returns the longest common subsequence of two values.",
        reply: "bulk; LEN: integer; IDX: map of the matching ranges, from the last to the first, and the length")

    package static let digest = CommandMetadata(
        "digest", arity: 2, [.readonly, .fast], keys: .one, group: .string, since: "8.4.0",
        complexity: "O(N) with N the value's length", syntax: "key",
        summary: "Returns the XXH3 hash of a value, to compare it without sending it.",
        reply: "bulk of 16 hexadecimal digits; null when there is no fresh entry")

    package static let delex = CommandMetadata(
        "delex", arity: -2, [.write, .fast], keys: .one, group: .string, since: "8.4.0",
        complexity: "O(N) with N the value's length",
        syntax: "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
        summary: "Removes a key if its value, or the digest of its value, equals or differs from the given one.",
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RM delete"], tag: .delete)

    package static let msetex = CommandMetadata(
        "msetex", arity: -4, [.write, .denyOOM, .creates], keys: .countedPairs,
        group: .string, since: "8.4.0", complexity: "O(N)",
        syntax: "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT "
            + "unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL | POLICY name|seconds] [CODEC "
            + "raw|json|plist|custom] [GRACE seconds] [JITTER percent] [TOKEN token ...] [TAGS count tag [tag "
            + "...] | KEEPTAGS]",
        summary: "Stores several values with one lifetime, all or none. NX requires that none of the keys has a "
            + "fresh entry, XX that all have one.", reply: "1; 0 when the condition is not met", access: ["OW update"],
        tag: .set)
}
