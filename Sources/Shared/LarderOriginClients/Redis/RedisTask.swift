import LarderPlatform
import LarderRESP

/// Receives the result of a task. Called on the loop's thread.
protocol RedisTaskOwner: AnyObject {
    /// The sequence number of the last invalidation, for ``RedisTask/heard``.
    var invalidationSequence: UInt64 { get }
    /// All replies have arrived, and are in ``RedisTask/replies``.
    func taskAnswered(_ task: RedisTask)
    /// - Parameter error: why the task was not sent, or why not all replies arrived.
    func taskFailed(_ task: RedisTask, _ error: OriginError)
}

/// A call's commands for one server. A task can be sent again, also to another server. Used on the loop's thread only.
final class RedisTask {
    enum Work {
        case read(RedisReadCall, index: Int)
        case write(RedisWriteCall, OriginWrite)
        case remove(RedisRemoveCall, [[UInt8]])
        /// - Parameter keys: the keys that the commands may change.
        case commands(RedisCommandCall, [[[UInt8]]], keys: [[UInt8]], isTransaction: Bool)
    }

    let work: Work
    /// The hash slot of the keys; nil if any server will do.
    let slot: Int?
    /// How often the task was sent, postponed for a retry, and redirected.
    private(set) var attempts = 0
    var rests = 0
    var redirections = 0
    /// Whether this is a second read, sent to a replica in addition to the first read. Its own error is ignored.
    var isSecond = false
    /// For a second read: the error of the read from the primary; nil while the primary may still reply. The call gets
    /// this error if the second read fails too.
    var firstError: OriginError?
    /// Whether to send ASKING first, because the slot is migrating to the server.
    var isAsking = false
    /// Whether the commands were sent, and may therefore have been executed.
    private(set) var isSent = false
    private(set) var sentAt: Int64 = 0
    private(set) var replies: [RESPValue] = []
    private(set) var skippedBytes = 0
    /// The sequence number of the last invalidation when the value was received.
    private(set) var heard: UInt64 = 0
    /// The receiver of the result, usually the server to which the task was sent, in the server's epoch `sentEpoch`.
    weak var owner: (any RedisTaskOwner)?
    var sentEpoch: UInt32 = 0
    /// The epoch of the slot when the task was sent.
    var sentSlotEpoch: UInt32 = 0
    private var valueReply = 0

    init(_ work: Work, slot: Int?) { (self.work, self.slot) = (work, slot) }

    var call: RedisCall {
        switch work {
        case .read(let call, _): call
        case .write(let call, _): call
        case .remove(let call, _): call
        case .commands(let call, _, _, _): call
        }
    }

    /// Whether the task is sent on the connection for other commands, which has no tracking.
    var isForeign: Bool { if case .commands = work { true } else { false } }

    var isRead: Bool { if case .read = work { true } else { false } }

    /// The keys that the commands may change.
    var keysWritten: [[UInt8]] {
        switch work {
        case .read: []
        case .write(_, let write): [write.key]
        case .remove(_, let keys): keys
        case .commands(_, _, let keys, _): keys
        }
    }

    /// The key that selects the server.
    var key: [UInt8]?

    /// Whether the value is read again after the write, to confirm that it was stored and to subscribe to its changes.
    var readsBack: Bool {
        guard case .write(_, let write) = work else { return false }
        return write.isKept && !isAsking && write.value.count <= Self.readBackBytesMax
    }

    /// The maximum length, in bytes, of a value to read again after a write. The next reader fetches longer values.
    private static let readBackBytesMax = 16 << 10

    /// Completes this task's part of the call with an error.
    func answer(_ error: OriginError) {
        guard !isSecond else { return }
        switch work {
        case .read(let call, let index): call.answer(index, .failure(error))
        case .remove(let call, _): call.answer(.failure(error))
        case .write, .commands: call.fail(error)
        }
    }

    /// Prepares the task to be sent again.
    func reset() {
        replies = []
        skippedBytes = 0
        isSent = false
        owner = nil
    }

    // MARK: Commands

    /// Appends the encoded commands.
    /// - Returns: the number of replies to expect, at least one.
    func encode(into output: inout [UInt8]) -> Int {
        isSent = true
        sentAt = MonotonicClock.nanoseconds()
        attempts += 1
        var count = 0
        valueReply = isAsking || !isRead ? 1 : 0
        func add(_ words: [[UInt8]]) {
            RequestEncoder.encode(words, into: &output)
            count += 1
        }
        if isAsking { add([Words.asking]) }
        switch work {
        case .read:
            add([Words.get, key ?? []])
            if isAsking { add([Words.asking]) }
            add([Words.pttl, key ?? []])
        case .write(_, let write):
            add(Self.set(write))
            // Because of this read, the server tracks the key. The reply is the key's current value. (`readsBack` is
            // false while the slot is migrating, because the server would then not track the key.)
            if readsBack {
                add([Words.get, write.key])
                add([Words.pttl, write.key])
            }
        case .remove(_, let keys): add([Words.del] + keys)
        case .commands(_, let commands, _, let isTransaction):
            if isTransaction { add([Words.multi]) }
            for words in commands { add(words) }
            if isTransaction { add([Words.exec]) }
        }
        return count
    }

    private static func set(_ write: OriginWrite) -> [[UInt8]] {
        let words = [Words.set, write.key, write.value]
        switch write.lifetime {
        case .unlimited: return words
        case .milliseconds(let count): return words + [Words.px, Array(String(max(1, count)).utf8)]
        case .until(let instant): return words + [Words.pxat, Array(String(max(1, instant)).utf8)]
        case .kept: return words + [Words.keepttl]
        }
    }

    /// Notes that a reply has arrived.
    /// - Returns: whether to keep it: not if it replies to a read whose call has ended.
    func note(_ index: Int, skippedBytes: Int) -> Bool {
        self.skippedBytes = max(self.skippedBytes, skippedBytes)
        if index == valueReply { heard = owner?.invalidationSequence ?? 0 }
        return !call.isDone || !isRead
    }

    /// Whether a reply can belong to the command with this index.
    func accepts(_ index: Int, _ reply: RESPValue) -> Bool {
        if isAsking, index == 0 || isRead && index == 2 { return reply == Self.ok }
        switch (work, isAsking && !isRead ? index - 1 : index) {
        case (.read, let index): return index == (isAsking ? 1 : 0) ? reply.isValue : reply.int != nil
        case (.write, 0): return reply == Self.ok
        case (.write, 1): return reply.isValue
        case (.write, _), (.remove, _): return reply.int != nil
        case (.commands(_, _, _, isTransaction: false), _): return true
        case (.commands(_, let commands, _, isTransaction: true), let index):
            if index <= commands.count { return reply == (index == 0 ? Self.ok : .simpleString("QUEUED")) }
            return reply == .null || reply.elements != nil
        }
    }

    private static let ok = RESPValue.simpleString("OK")

    func end(_ replies: [RESPValue]) {
        self.replies = replies
        guard let owner else { return }
        self.owner = nil
        owner.taskAnswered(self)
    }

    func fail(_ error: OriginError) {
        guard let owner else { return }
        self.owner = nil
        owner.taskFailed(self, error)
    }
}

extension RESPValue {
    /// Whether this can be the reply to GET.
    fileprivate var isValue: Bool {
        switch self {
        case .bulk, .null: true
        default: false
        }
    }
}

/// Words of Redis commands as bytes.
enum Words {
    static let get = Array("GET".utf8)
    static let pttl = Array("PTTL".utf8)
    static let set = Array("SET".utf8)
    static let px = Array("PX".utf8)
    static let pxat = Array("PXAT".utf8)
    static let keepttl = Array("KEEPTTL".utf8)
    static let multi = Array("MULTI".utf8)
    static let exec = Array("EXEC".utf8)
    static let del = Array("DEL".utf8)
    static let asking = Array("ASKING".utf8)
    static let ping = Array("PING".utf8)
}
