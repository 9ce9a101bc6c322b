import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP

/// A command that may change entries of a database with an origin, as it is sent to the origin.
enum OriginCommand {
    case write([OriginWrite])
    case remove([[UInt8]])
    /// Any other command, which is sent to the origin unchanged.
    case other(words: [[UInt8]], keys: [[UInt8]])
    /// A script or a function. It may change other keys than those in its arguments.
    /// - Parameter otherWords: for EVALSHA, an equivalent EVAL call with the script's source; nil if the daemon does
    ///   not know the source.
    case script(words: [[UInt8]], keys: [[UInt8]], otherWords: [[UInt8]]?)

    init(_ spec: CommandMetadata, _ keys: [Int], _ call: Call) throws(CommandError) {
        let names = keys.map { call.array($0) }
        switch spec {
        case .set:
            if let lifetime = try Self.lifetime(call) {
                self = .write([OriginWrite(key: names[0], value: call.array(2), lifetime: lifetime)])
                return
            }
        case .mset:
            guard call.count % 2 == 1 else { throw .arity(spec.name) }
            self = .write(
                keys.map { OriginWrite(key: call.array($0), value: call.array($0 + 1), lifetime: .unlimited) })
            return
        case .del, .unlink:
            self = .remove(names)
            return
        case _ where spec.flags.contains(.runsScript):
            let words = call.allWords
            self = .script(
                words: words, keys: names, otherWords: Self.wordsWithText(spec, words, call.server.scripts))
            return
        case .move: throw .betweenOrigins(call.database.name)
        case .copy where (3..<call.count).contains(where: { call.isWord($0, "DB") }):
            throw .betweenOrigins(call.database.name)
        case .release, .place, .unplace:
            throw CommandError(
                "ERR \(spec.name.uppercased()) is not allowed in a database with an origin: the daemon itself fetches "
                    + "entries from the origin")
        default: break
        }
        self = .other(words: call.allWords, keys: names)
    }

    /// Converts an EVALSHA command to EVAL if `scripts` has the script; otherwise returns nil. Adds the script of an
    /// EVAL command to `scripts`. An origin may not know the digest: an origin that restarts loses its scripts, and
    /// each server of a cluster needs the script.
    static func wordsWithText(_ spec: CommandMetadata, _ words: [[UInt8]], _ scripts: ScriptCache) -> [[UInt8]]? {
        switch spec {
        case .evalsha, .evalshaRO:
            let digest = words[1].withUnsafeBytes { ScriptDigest(hexadecimal: $0) }
            guard let script = digest.flatMap(scripts.find) else { return nil }
            let row = spec == .evalsha ? CommandMetadata.eval : .evalRO
            return [Array(row.name.utf8), script.text] + words[2...]
        // Ignore errors: a script that does not compile here may be valid at the origin.
        case .eval, .evalRO: _ = words[1].withUnsafeBytes { try? scripts.script($0, .ifThereIsRoom) }
        default: break
        }
        return nil
    }

    /// Whether the command can be queued in the outbox. Its result must not depend on values at the origin, and the
    /// values that it writes must not be too long.
    var canWait: Bool {
        switch self {
        case .write(let writes):
            writes.allSatisfy { $0.lifetime != .kept && $0.value.count <= Outbox.valueBytesMax }
        case .remove: true
        case .other, .script: false
        }
    }

    /// The keys in the command's arguments.
    var keys: [[UInt8]] {
        switch self {
        case .write(let writes): writes.map(\.key)
        case .remove(let keys), .other(_, let keys), .script(_, let keys, _): keys
        }
    }

    /// Returns the lifetime that a SET command gives to its entry; nil if the origin must execute the command
    /// unchanged.
    private static func lifetime(_ call: Call) throws(CommandError) -> OriginWrite.Lifetime? {
        let options = try SetOptions(call)
        guard !options.hasTags, options.grace == nil, options.jitter == nil, options.tokens == nil,
            options.codec == nil
        else {
            throw CommandError(
                "ERR GRACE, JITTER, TAGS, KEEPTAGS, CODEC and TOKEN cannot be used in a database with an origin, "
                    + "because origins do not support them")
        }
        guard case .none = options.condition, !options.returnsPrevious else {
            if case .policy = options.lifetime {
                throw CommandError(
                    "ERR POLICY cannot be combined with a condition or GET in a database with an origin; EX and PX can")
            }
            return nil
        }
        switch options.lifetime {
        case .governed: return .unlimited
        case .keep: return .kept
        // Send a time span, not an instant, because the origin's clock may differ.
        case .until(let deadline) where options.isSpan: return .milliseconds(deadline - call.now)
        case .until(let deadline): return .until(deadline - call.timeAhead)
        case .policy(let policy): return policy.intervalMilliseconds.map { .milliseconds($0) } ?? .unlimited
        }
    }

    /// Explains the error of an origin that does not know the commands for JSON.
    private static func explained(
        _ answer: Result<RESPValue, OriginError>, _ words: [[UInt8]]
    ) -> Result<RESPValue, OriginError> {
        guard case .failure(.refused(let text)) = answer, text.hasPrefix("ERR unknown command"),
            CommandMetadata.named(words[0])?.group == .json
        else { return answer }
        return .failure(
            .refused(
                "ERR the origin does not know this command, which only larders and servers with RedisJSON do; use GET "
                    + "and SET"))
    }

    /// Sends the command to the origin.
    /// - Parameter then: called once with the origin's reply, on any thread.
    func send(to tier: OriginTier, then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        switch self {
        case .write(let writes) where writes.count == 1: tier.write(writes[0], then: then)
        case .write(let writes):
            let answers = OriginAnswers(writes.count, then: then)
            for write in writes { tier.write(write) { answers.take($0) } }
        case .remove(let keys): tier.remove(keys, then: then)
        case .other(let words, let keys):
            tier.perform(words, changing: keys) { then(Self.explained($0, words)) }
        case .script(let words, let keys, let otherWords):
            tier.run(script: words, orElse: otherWords, changing: keys, then: then)
        }
    }
}

/// Collects the replies to several writes, and calls `then` once: with the first error if any, else the last reply.
private final class OriginAnswers: Sendable {
    private let state: Locked<(left: Int, failure: OriginError?)>
    private let then: @Sendable (Result<RESPValue, OriginError>) -> Void

    init(_ count: Int, then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        state = Locked((count, nil))
        self.then = then
    }

    func take(_ answer: Result<RESPValue, OriginError>) {
        let end = state.withLock { (state) -> Result<RESPValue, OriginError>? in
            if case .failure(let error) = answer, state.failure == nil { state.failure = error }
            state.left -= 1
            guard state.left == 0 else { return nil }
            return state.failure.map { .failure($0) } ?? answer
        }
        if let end { then(end) }
    }
}
