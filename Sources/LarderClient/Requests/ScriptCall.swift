import LarderPlatform
import LarderRESP

/// A validated call of a script: its requests and the decoding of its reply. A value type.
struct ScriptCall: Sendable {
    private let script: Script
    /// The keys that the script may change; empty for a read-only call.
    private let keys: [[UInt8]]
    /// The words after the script: the number of keys, the keys, the arguments.
    private let words: [[UInt8]]
    /// The key, if the call has a single one, for error messages.
    private let key: [UInt8]?
    private let isReadOnly: Bool
    private let isRead: Bool

    /// Validates the arguments of a call.
    /// - Parameters:
    ///   - readOnly: whether the server refuses commands that would change anything.
    ///   - mayRepeat: whether running the script twice is harmless.
    /// - Throws: `encode` for an argument that has no bytes, `invalidArgument` for one that is too long.
    init(
        _ script: Script, keys: [any CacheKey], arguments: [any ScriptArgument], readOnly: Bool,
        mayRepeat: Bool = false
    ) throws(LarderClientError) {
        let keys = keys.map(\.keyBytes)
        var words = wordList("\(keys.count)") + keys
        for (index, argument) in arguments.enumerated() {
            do {
                words.append(try argument.scriptBytes)
            } catch {
                throw LarderClientError(
                    .encode,
                    "argument \(index + 1) of the script cannot be encoded: " + CodingProblem.encoding(error, .json),
                    operation: "EVALSHA",
                    underlying: error)
            }
        }
        try CommandRules.checkLengths(words)
        self.script = script
        self.keys = readOnly ? [] : keys
        self.words = words
        key = keys.count == 1 ? keys.first : nil
        isReadOnly = readOnly
        isRead = readOnly || mayRepeat
    }

    /// The script's digest, if it is known.
    var digest: String? { digests.withLock { $0[script] } }

    /// The request that stores the script at the server, and returns its digest.
    var load: Request<String> {
        Request([Array("SCRIPT".utf8), Array("LOAD".utf8), Array(script.text.utf8)], isRead: true, expects: "a SHA-1") {
            [script] reply in
            guard let digest = reply.string, digest.utf8.count == 40 else { return nil }
            digests.withLock { $0[script] = digest }
            return digest
        }
    }

    func run(_ digest: String) -> Request<RESPValue> { request("EVALSHA", digest) }

    var runText: Request<RESPValue> { request("EVAL", script.text) }

    private func request(_ command: String, _ script: String) -> Request<RESPValue> {
        Request(
            wordList(command + (isReadOnly ? "_RO" : ""), script) + words, key: key, isRead: isRead, changing: keys,
            expects: "a reply"
        ) { $0 }
    }

    /// Returns whether an error means that the server does not have the script, and so has not run it.
    static func isUnknown(_ error: LarderClientError) -> Bool {
        error.serverText?.hasPrefix("NOSCRIPT No matching script") ?? false
    }

    /// Converts the reply to the caller's type.
    /// - Throws: `decode` if the reply is of another type.
    static func result<Result: ScriptResult>(_ reply: RESPValue) throws(LarderClientError) -> Result {
        do throws(ScriptMismatch) {
            return try Result(scriptReply: reply)
        } catch {
            throw LarderClientError(.decode, error.description, operation: "EVALSHA", underlying: error)
        }
    }
}

/// The SHA-1 digests by which servers identify scripts, as returned by a server. All servers use the same digests. A
/// program has fewer scripts than this limit, unless it writes arguments into their text.
private let digests = Locked(BoundedTable<Script, String>(most: 1_000))
