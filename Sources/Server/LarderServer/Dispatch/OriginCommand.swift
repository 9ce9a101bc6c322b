import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP

/// A command that changes entries of a database with an origin, as the origin gets it.
enum OriginCommand {
    case write([OriginWrite])
    case remove([[UInt8]])
    /// As it is.
    case other(words: [[UInt8]], keys: [[UInt8]])
    /// A script or a function, which may change more than the keys that it names.
    /// - Parameter otherWords: with the text that EVALSHA names, if that is known here.
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
            self = .script(
                words: call.words, keys: names, otherWords: Self.wordsWithText(spec, call.words, call.server.scripts))
            return
        case .move: throw .betweenOrigins(call.database.name)
        case .copy where (3..<call.count).contains(where: { call.isWord($0, "DB") }):
            throw .betweenOrigins(call.database.name)
        case .release, .place, .unplace:
            throw CommandError(
                "ERR \(spec.name.uppercased()) is for what clients fetch themselves: this database has an origin, "
                    + "which the daemon asks")
        default: break
        }
        self = .other(words: call.words, keys: names)
    }

    /// EVALSHA as EVAL, if the script is known here. What EVAL brings is kept, so that EVALSHA finds it when the origin was
    /// started anew, and at each server of a cluster.
    static func wordsWithText(
        _ spec: CommandMetadata, _ words: [[UInt8]], _ scripts: ScriptCache
    ) -> [[UInt8]]? {
        switch spec {
        case .evalsha, .evalshaRO:
            let digest = words[1].withUnsafeBytes { ScriptDigest(hexadecimal: $0) }
            guard let script = digest.flatMap(scripts.find) else { return nil }
            let row = spec == .evalsha ? CommandMetadata.eval : .evalRO
            return [Array(row.name.utf8), script.text] + words[2...]
        // One that does not compile here may be one of the origin all the same.
        case .eval, .evalRO: _ = words[1].withUnsafeBytes { try? scripts.script($0, .ifThereIsRoom) }
        default: break
        }
        return nil
    }

    /// Whether it can wait for the origin: its result does not depend on what the origin has, and the outbox has room for
    /// values of that length.
    var canWait: Bool {
        switch self {
        case .write(let writes):
            writes.allSatisfy { $0.lifetime != .kept && $0.value.count <= Outbox.valueBytesMax }
        case .remove: true
        case .other, .script: false
        }
    }

    /// The keys that it concerns, as far as it names them.
    var keys: [[UInt8]] {
        switch self {
        case .write(let writes): writes.map(\.key)
        case .remove(let keys), .other(_, let keys), .script(_, let keys, _): keys
        }
    }

    /// The lifetime of a plain SET; nil for one that only the origin can decide.
    private static func lifetime(_ call: Call) throws(CommandError) -> OriginWrite.Lifetime? {
        let options = try SetOptions(call)
        guard !options.hasTags, options.grace == nil, options.jitter == nil, options.tokens.isEmpty,
            options.codec == .raw
        else {
            throw CommandError(
                "ERR GRACE, JITTER, TAGS, KEEPTAGS, CODEC and TOKEN are of this larder, and this database has an "
                    + "origin, which does not know them: leave them out")
        }
        guard case .none = options.condition, !options.returnsFormer else {
            if case .policy = options.lifetime {
                throw CommandError("ERR POLICY does not go with a condition here: name the lifetime with EX or PX")
            }
            return nil
        }
        switch options.lifetime {
        case .governed: return .unlimited
        case .keep: return .kept
        // The clocks need not agree.
        case .until(let deadline) where options.isSpan: return .milliseconds(deadline - call.now)
        case .until(let deadline): return .until(deadline - call.timeAhead)
        case .policy(let policy): return policy.intervalMilliseconds.map { .milliseconds($0) } ?? .unlimited
        }
    }

    /// - Parameter then: called once, on any thread.
    func send(to tier: OriginTier, then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        switch self {
        case .write(let writes) where writes.count == 1: tier.write(writes[0], then: then)
        case .write(let writes):
            let answers = OriginAnswers(writes.count, then: then)
            for write in writes { tier.write(write) { answers.take($0) } }
        case .remove(let keys): tier.remove(keys, then: then)
        case .other(let words, let keys): tier.perform(words, changing: keys, then: then)
        case .script(let words, let keys, let otherWords):
            tier.run(script: words, orElse: otherWords, changing: keys, then: then)
        }
    }
}

/// Waits for the answers to several writes: the first error, or what the last one said.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all is read and written with the lock held.
private final class OriginAnswers: @unchecked Sendable {
    private let lock = Lock()
    private var left: Int
    private var failure: OriginError?
    private let then: @Sendable (Result<RESPValue, OriginError>) -> Void

    init(_ count: Int, then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        left = count
        self.then = then
    }

    func take(_ answer: Result<RESPValue, OriginError>) {
        let end = lock.withLock { () -> Result<RESPValue, OriginError>? in
            if case .failure(let error) = answer, failure == nil { failure = error }
            left -= 1
            guard left == 0 else { return nil }
            return failure.map { .failure($0) } ?? answer
        }
        if let end { then(end) }
    }
}
