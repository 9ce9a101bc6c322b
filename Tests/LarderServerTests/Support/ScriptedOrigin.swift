import LarderOriginClients
import LarderPlatform
import LarderRESP

@testable import LarderServer

/// An origin in memory that replies when the test requests it.
///
/// Thread-safe. `@unchecked Sendable`: all variables are guarded by the lock.
final class ScriptedOrigin: Origin, @unchecked Sendable {
    struct Entry {
        var value: [UInt8]
        var lifetime: Int64?
    }

    private let lock = Lock()
    private var entries: [[UInt8]: Entry] = [:]
    private var waiting: [@Sendable () -> Void] = []
    private var holdsAnswers = false
    private var ownFailure: OriginError?
    private var failure: OriginError? { ownFailure ?? heldReason.map { .unsuitable($0) } }
    private var keyFailures: [[UInt8]: OriginError] = [:]
    /// Whether calls are executed, but their replies are lost.
    private var losesAnswers = false
    private var beforeWrite: (@Sendable () -> Void)?
    private var epoch: UInt32 = 1
    private var isTracking = true
    private var otherTypes: Set<[UInt8]> = []
    private var beforeSettling: (@Sendable () -> Void)?
    private var beforeInquiry: (@Sendable () -> Void)?
    private var replica: [[UInt8]: String?] = [:]
    private var answersAge: Int64 = 0
    private var reading = OriginReads()
    private var readKeys: [String] = []
    private var performed: [String] = []
    private weak var listener: (any OriginListener)?
    private var isClosed = false
    private var pathBehind: [String] = []
    private var afterPath: [String]?
    private var recoveries = 1
    private var isNoLarder = false
    private var heldReason: String?

    /// Makes this object the origin of every database that has an origin.
    var factory: OriginFactory {
        { [self] (source, reads, _, listener) throws(OriginError) in
            if source.url.hasPrefix("bad:") { throw .unsuitable("'\(source.url)' is no address") }
            lock.withLock { (self.listener, reading) = (listener, reads) }
            return self
        }
    }

    let name = "redis://there"

    // MARK: Test controls

    /// Changes an entry as another client of the origin would. If `tells` is true, sends an invalidation.
    func change(_ key: String, to value: String?, lifetime: Int64? = nil, tells: Bool = true) {
        let key = Array(key.utf8)
        let listener = lock.withLock {
            entries[key] = value.map { Entry(value: Array($0.utf8), lifetime: lifetime) }
            return self.listener
        }
        if tells { listener?.originInvalidated([key]) }
    }

    func value(_ key: String) -> String? {
        lock.withLock { entries[Array(key.utf8)].map { String(decoding: $0.value, as: UTF8.self) } }
    }

    /// Makes replies wait for ``answer()`` from now on.
    func hold() { lock.withLock { holdsAnswers = true } }

    /// Ends the effect of ``hold()``.
    func letGo() { lock.withLock { holdsAnswers = false } }

    /// Sends the waiting replies in order, with the values from the time of their requests.
    func answer() {
        let calls = lock.withLock {
            defer { waiting = [] }
            return waiting
        }
        for call in calls { call() }
    }

    /// Makes all calls fail with `error` from now on; nil makes them succeed.
    func fail(_ error: OriginError?) { lock.withLock { ownFailure = error } }

    /// Makes writes of a key fail with `error` from now on; nil makes them succeed.
    func fail(_ key: String, _ error: OriginError?) { lock.withLock { keyFailures[Array(key.utf8)] = error } }

    /// Stores a value that is not a string under a key.
    func setOtherType(_ key: String) { _ = lock.withLock { otherTypes.insert(Array(key.utf8)) } }

    /// Runs `body` once, when the database waits for pending invalidations.
    func whenSettling(_ body: @escaping @Sendable () -> Void) { lock.withLock { beforeSettling = body } }

    /// Runs `body` once, during the next request for the upstream chain.
    func duringNextInquiry(_ body: @escaping @Sendable () -> Void) { lock.withLock { beforeInquiry = body } }

    /// Sets whether the replies to writes are lost. The writes then take effect, but seem to fail.
    func loseAnswers(_ isOn: Bool) { lock.withLock { losesAnswers = isOn } }

    /// Runs `body` once, during the next write.
    func duringNextWrite(_ body: @escaping @Sendable () -> Void) { lock.withLock { beforeWrite = body } }

    private static let lost = OriginError.timedOut(milliseconds: 2000)

    /// Sets the reply of a replica for a key, which arrives before the primary's; nil means that the key is absent.
    func setReplica(_ key: String, _ value: String?) { lock.withLock { replica[Array(key.utf8)] = .some(value) } }

    /// Makes replies look as if their requests had been sent this many milliseconds ago.
    func answerLate(milliseconds: Int64) { lock.withLock { answersAge = milliseconds } }

    /// The reads settings with which the origin was created.
    var reads: OriginReads { lock.withLock { reading } }

    /// Stops reporting changes.
    func stopTracking() { lock.withLock { isTracking = false } }

    /// Simulates that the connection is lost and made again.
    func lose() {
        let listener = lock.withLock {
            epoch += 1
            return self.listener
        }
        listener?.originLost("the test says so")
    }

    /// Reports that the origin replies again.
    func recover() { lock.withLock { listener }?.originRecovered(name) }

    /// Returns the keys that were requested since the last call.
    func takeReads() -> [String] {
        lock.withLock {
            defer { readKeys = [] }
            return readKeys
        }
    }

    /// Returns the commands that were received since the last call.
    func takeCommands() -> [String] {
        lock.withLock {
            defer { performed = [] }
            return performed
        }
    }

    /// Sets the upstream chain that the origin reports.
    /// - Parameter next: the chain to return after the first request; nil for the same chain.
    func setPath(_ path: [String], then next: [String]? = nil) {
        lock.withLock { (pathBehind, afterPath) = (path, next) }
    }

    /// Makes the origin behave like a server that is not a larder.
    func refuseInquiries() { lock.withLock { isNoLarder = true } }

    /// Simulates that the origin was not available, and replies again.
    func simulateRecovery() { lock.withLock { recoveries += 1 } }

    var hasClosed: Bool { lock.withLock { isClosed } }

    // MARK: Origin

    func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void
    ) {
        let said = lock.withLock { replica }
        for (index, key) in keys.enumerated() {
            guard let value = said[key] else { continue }
            meanwhile(
                index,
                OriginReading(
                    value: value.map { Array($0.utf8) }, lifetimeMilliseconds: nil,
                    sentAt: MonotonicClock.nanoseconds(), stamp: nil))
        }
        read(keys, completion: completion)
    }

    func read(_ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void) {
        let now = MonotonicClock.nanoseconds() - lock.withLock { answersAge } * 1_000_000
        let answers = lock.withLock { () -> [Result<OriginReading, OriginError>] in
            readKeys += keys.map { String(decoding: $0, as: UTF8.self) }
            return keys.map { key in
                if let failure { return .failure(failure) }
                if otherTypes.contains(key) {
                    return .failure(
                        .refused("WRONGTYPE Operation against a key holding the wrong kind of value"))
                }
                let entry = entries[key]
                return .success(
                    OriginReading(
                        value: entry?.value, lifetimeMilliseconds: entry?.lifetime, sentAt: now, stamp: stampLocked))
            }
        }
        end { completion(answers) }
    }

    private var stampLocked: OriginStamp? { isTracking ? OriginStamp(part: 0, epoch: epoch) : nil }

    func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void
    ) {
        let body = lock.withLock {
            defer { beforeWrite = nil }
            return beforeWrite
        }
        body?()
        let now = MonotonicClock.nanoseconds()
        let answer = lock.withLock { () -> Result<OriginAcknowledgement, OriginError> in
            performed.append("write \(String(decoding: write.key, as: UTF8.self)) \(write.lifetime)")
            if let failure = failure ?? keyFailures[write.key] { return .failure(failure) }
            var lifetime: Int64?
            if case .milliseconds(let count) = write.lifetime { lifetime = count }
            entries[write.key] = Entry(value: write.value, lifetime: lifetime)
            if losesAnswers { return .failure(Self.lost) }
            return .success(OriginAcknowledgement(lifetimeMilliseconds: lifetime, sentAt: now, stamp: stampLocked))
        }
        end { completion(answer) }
    }

    func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void) {
        let answer = lock.withLock { () -> Result<Int, OriginError> in
            performed.append("remove \(keys.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " "))")
            if let failure = failure ?? keys.compactMap({ keyFailures[$0] }).first { return .failure(failure) }
            return .success(keys.count { entries.removeValue(forKey: $0) != nil })
        }
        end { completion(answer) }
    }

    func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        if words.first == Array("EVAL".utf8), String(decoding: words[1], as: UTF8.self).contains("redis.sha1hex") {
            let answer = lock.withLock { runScript(words) }
            return end { completion(answer) }
        }
        let text = words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
        let answer = lock.withLock { () -> Result<RESPValue, OriginError> in
            performed.append(text)
            if let failure { return .failure(failure) }
            if let key, otherTypes.contains(key) { return .success(.bulk(words[0])) }
            switch String(decoding: words[0], as: UTF8.self).uppercased() {
            case "EVALSHA", "EVALSHA_RO":
                return .failure(.refused("NOSCRIPT No matching script. Please use EVAL."))
            case "EVAL", "EVAL_RO": return .success(.bulk(words[1]))
            case "FCALL": return .failure(.refused("ERR Function not found"))
            default: break
            }
            guard words.first == Array("INCR".utf8), let key else { return .failure(.refused("ERR only INCR")) }
            let number = entries[key].flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
            entries[key] = Entry(value: Array("\(number + 1)".utf8))
            return .success(.integer(Int64(number + 1)))
        }
        end { completion(answer) }
    }

    func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        let text = commands.map { $0.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ") }
        let answer = lock.withLock { () -> Result<RESPValue, OriginError> in
            performed.append("MULTI \(text.joined(separator: "; ")) EXEC")
            if let failure { return .failure(failure) }
            return .success(
                .array(
                    commands.map { words in
                        switch words[0] {
                        case Array("SET".utf8):
                            entries[words[1]] = Entry(value: words[2])
                            return .simpleString("OK")
                        case Array("GET".utf8): return entries[words[1]].map { .bulk($0.value) } ?? .null
                        default: return .error("ERR only SET and GET")
                        }
                    }))
        }
        end { completion(answer) }
    }

    func hold(_ reason: String?) { lock.withLock { heldReason = reason } }

    func sendSideRequest(
        _ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        let body = lock.withLock {
            defer { beforeInquiry = nil }
            return beforeInquiry
        }
        body?()
        let answer = lock.withLock { () -> Result<RESPValue, OriginError> in
            performed.append(words.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " "))
            if let ownFailure { return .failure(ownFailure) }
            if isNoLarder { return .failure(.refused("ERR unknown command 'ORIGIN'")) }
            defer { if let next = afterPath { (pathBehind, afterPath) = (next, nil) } }
            return .success(.array(pathBehind.map { .bulk(Array($0.utf8)) }))
        }
        end { completion(answer) }
    }

    func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void) {
        let body = lock.withLock {
            defer { beforeSettling = nil }
            return beforeSettling
        }
        body?()
        completion()
    }

    /// Runs a script with which an outbox delivers a write.
    private func runScript(_ words: [[UInt8]]) -> Result<RESPValue, OriginError> {
        if let failure { return .failure(failure) }
        let key = words[3]
        // Any text works as a digest, because it is only compared with other digests from this function.
        let digest = entries[key].map { "digest of \(String(decoding: $0.value, as: UTF8.self))" } ?? ""
        guard words.count > 4 else { return .success(.bulk(Array(digest.utf8))) }
        performed.append("repeat \(String(decoding: key, as: UTF8.self))")
        if let failure = keyFailures[key] { return .failure(failure) }
        let value = words[5].isEmpty ? nil : words[7]
        if words[4] == Array(digest.utf8) {
            entries[key] = value.map { Entry(value: $0) }
            return losesAnswers ? .failure(Self.lost) : .success(.integer(1))
        }
        return .success(.integer(entries[key]?.value == value ? 1 : 0))
    }

    private func end(_ call: @escaping @Sendable () -> Void) {
        let runs = lock.withLock { () -> Bool in
            if holdsAnswers { waiting.append(call) }
            return !holdsAnswers
        }
        if runs { call() }
    }

    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool {
        lock.withLock { stamp.epoch == epoch && heldReason == nil }
    }

    func status() -> OriginStatus {
        var status = OriginStatus()
        var server = OriginStatus.Server()
        (server.isUp, server.recoveries, server.lastError) = lock.withLock { (failure == nil, recoveries, heldReason) }
        status.servers = [server]
        return status
    }

    func close() { lock.withLock { isClosed = true } }
}
