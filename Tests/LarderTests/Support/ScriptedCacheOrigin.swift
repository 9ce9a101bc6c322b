import Larder
import LarderPlatform
import LarderTestSupport

/// A scripted origin in memory, which records its calls.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class ScriptedCacheOrigin: CacheOrigin, @unchecked Sendable {
    struct Failure: Error, Hashable {}

    private struct State {
        var values: [String: String] = [:]
        var reads: [[String]] = []
        var writes: [String] = []
        var running = 0
        var isHeld = false
        var holdsWrites = false
        var fails = false
        var epoch: UInt64? = 0
        var lifetime: Duration?
        var isWatched = true
        var tellsOwnWrites = false
        var changes: OriginChanges?
        var answersMissing = 0
    }

    let tellsChanges: Bool
    private let lock = Lock()
    private var state = State()

    init(_ values: [String: String] = [:], tells: Bool = false) {
        tellsChanges = tells
        state.values = values
    }

    private func with<Result>(_ body: (inout State) -> Result) -> Result { lock.withLock { body(&state) } }

    var epoch: UInt64? {
        get { with { $0.epoch } }
        set { with { $0.epoch = newValue } }
    }
    var fails: Bool {
        get { with { $0.fails } }
        set { with { $0.fails = newValue } }
    }
    var isHeld: Bool {
        get { with { $0.isHeld } }
        set { with { $0.isHeld = newValue } }
    }
    /// Whether writes and removals wait before they return, when they have already taken effect. Reads do not wait. As
    /// with ``isHeld``, cancelled calls keep waiting.
    var holdsWrites: Bool {
        get { with { $0.holdsWrites } }
        set { with { $0.holdsWrites = newValue } }
    }
    var lifetime: Duration? {
        get { with { $0.lifetime } }
        set { with { $0.lifetime = newValue } }
    }
    var isWatched: Bool {
        get { with { $0.isWatched } }
        set { with { $0.isWatched = newValue } }
    }
    /// Whether the origin reports each write as a change of the key, and then confirms the written value, as Redis
    /// does.
    var tellsOwnWrites: Bool {
        get { with { $0.tellsOwnWrites } }
        set { with { $0.tellsOwnWrites = newValue } }
    }
    var answersMissing: Int {
        get { with { $0.answersMissing } }
        set { with { $0.answersMissing = newValue } }
    }
    /// The keys of each read request.
    var reads: [[String]] { with { $0.reads } }
    var writes: [String] { with { $0.writes } }
    var running: Int { with { $0.running } }
    /// Receives the reported changes, once a cache has subscribed.
    var changes: OriginChanges? { with { $0.changes } }
    subscript(key: String) -> String? { with { $0.values[key] } }

    /// Changes a value, and reports the change to a subscriber unless `silently` is true.
    func change(_ key: String, to value: String?, silently: Bool = false) {
        let changes = with {
            $0.values[key] = value
            return $0.changes
        }
        if !silently { changes?.changed([key]) }
    }

    private func waitWhileHeld(isWrite: Bool = false) async {
        with { $0.running += 1 }
        // Waits in a separate task, so that a cancelled caller does not spin.
        await Task { await eventually { !self.isHeld && !(isWrite && self.holdsWrites) } }.value
        with { $0.running -= 1 }
    }

    func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer] {
        let names = keys.map { String(decoding: $0, as: UTF8.self) }
        // The reply has the state at the time of the request.
        let (answers, fails) = with { state in
            state.reads.append(names)
            let answers = names.dropFirst(state.answersMissing).map { name -> OriginAnswer in
                guard let value = state.values[name] else { return .absent }
                var answer = OriginAnswer(Array(value.utf8), lifetime: state.lifetime)
                answer.isWatched = state.isWatched
                return answer
            }
            return (answers, state.fails)
        }
        await waitWhileHeld()
        if fails { throw Failure() }
        return answers
    }

    func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement {
        if tellsOwnWrites { changes?.changed([key]) }
        let (fails, acknowledgement) = with { state in
            let text = String(decoding: value.bytes, as: UTF8.self)
            state.writes.append(String(decoding: key, as: UTF8.self) + "=" + text)
            state.values[String(decoding: key, as: UTF8.self)] = text
            var acknowledgement = OriginAcknowledgement(lifetime: value.lifetime, isWatched: state.isWatched)
            if state.tellsOwnWrites { acknowledgement.confirmedAt = .now() }
            return (state.fails, acknowledgement)
        }
        await waitWhileHeld(isWrite: true)
        if fails { throw Failure() }
        return acknowledgement
    }

    func remove(_ keys: [[UInt8]]) async throws {
        with { state in
            for key in keys { state.values[String(decoding: key, as: UTF8.self)] = nil }
        }
        await waitWhileHeld(isWrite: true)
        if fails { throw Failure() }
    }

    func tellChanges(to changes: OriginChanges) async throws {
        with { $0.changes = changes }
        changes.begin()
        await changes.untilClosed()
    }
}
