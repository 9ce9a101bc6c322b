import LarderPlatform
import Synchronization

/// The last slow commands, for SLOWLOG. Thread-safe.
final class SlowLog: Sendable {
    struct Entry: Sendable {
        let id: Int
        /// The time at which the command was logged, in seconds since 1970.
        let time: Int64
        let microseconds: Int64
        let words: [[UInt8]]
        let address: String
        let name: String
    }

    /// The maximum number of stored words of a command, as in Redis. `wordBytesMax` limits the length of each word.
    private static let wordsMax = 32
    private static let wordBytesMax = 128

    /// The duration from which a command is slow, in microseconds; negative for no commands. The default is 10,000.
    let threshold = Atomic<Int64>(10_000)
    /// The maximum number of entries that are kept. The default is 128.
    let lengthMax = Atomic<Int>(128)
    private let log = Locked<(entries: [Entry], nextID: Int)>(([], 0))

    /// Whether a command with this duration is slow.
    func takes(microseconds: Int64) -> Bool {
        let threshold = threshold.load(ordering: .relaxed)
        return threshold >= 0 && microseconds >= threshold
    }

    func add(
        time: Int64, microseconds: Int64, count: Int, word: (Int) -> UnsafeRawBufferPointer, address: String,
        name: String
    ) {
        let shown = count > Self.wordsMax ? Self.wordsMax - 1 : count
        var words = (0..<shown).map { Self.cut(word($0)) }
        if shown < count { words.append(Array("... (\(count - shown) more arguments)".utf8)) }
        log.withLock { [words] in
            $0.entries.append(
                Entry(
                    id: $0.nextID, time: time, microseconds: microseconds, words: words, address: address, name: name))
            $0.nextID += 1
            trim(&$0.entries)
        }
    }

    private static func cut(_ word: UnsafeRawBufferPointer) -> [UInt8] {
        guard word.count > wordBytesMax else { return Array(word) }
        return Array(word.prefix(wordBytesMax)) + Array("... (\(word.count - wordBytesMax) more bytes)".utf8)
    }

    /// Removes the oldest entries beyond the limit.
    private func trim(_ entries: inout [Entry]) {
        let extra = entries.count - max(0, lengthMax.read())
        if extra > 0 { entries.removeFirst(extra) }
    }

    /// Returns at most `count` entries, newest first.
    func newest(_ count: Int) -> [Entry] { log.withLock { $0.entries.suffix(count).reversed() } }
    var count: Int { log.withLock { $0.entries.count } }
    func reset() { log.withLock { $0.entries = [] } }
    func changeLength(_ most: Int) {
        lengthMax.store(most, ordering: .relaxed)
        log.withLock { trim(&$0.entries) }
    }
}

/// Events that took longer than a threshold, grouped by the name of the event, for LATENCY. Thread-safe.
final class LatencyMonitor: Sendable {
    struct Sample: Sendable {
        /// The time of the event, in seconds since 1970.
        let time: Int64
        var milliseconds: Int64
    }

    struct Event: Sendable {
        var samples: [Sample] = []
        var longest: Int64 = 0
    }

    /// The maximum number of samples that are kept for each event, as in Redis.
    private static let samplesMax = 160

    /// The duration from which an event is recorded, in milliseconds; 0, the default, records none.
    let threshold = Atomic<Int64>(0)
    private let events = Locked<[String: Event]>([:])

    func note(_ event: String, time: Int64, milliseconds: Int64) {
        let threshold = threshold.load(ordering: .relaxed)
        guard threshold > 0, milliseconds >= threshold else { return }
        events.withLock { events in
            var known = events[event] ?? Event()
            known.longest = max(known.longest, milliseconds)
            if let last = known.samples.indices.last, known.samples[last].time == time {
                known.samples[last].milliseconds = max(known.samples[last].milliseconds, milliseconds)
            } else {
                known.samples.append(Sample(time: time, milliseconds: milliseconds))
                if known.samples.count > Self.samplesMax { known.samples.removeFirst() }
            }
            events[event] = known
        }
    }

    var all: [(name: String, event: Event)] {
        events.withLock { $0.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }

    func event(_ name: String) -> Event? { events.withLock { $0[name] } }

    /// Removes some events with their samples.
    /// - Parameter names: the names of the events; empty for all.
    /// - Returns: the number of removed events.
    func reset(_ names: [String]) -> Int {
        events.withLock { events in
            let before = events.count
            if names.isEmpty { events = [:] } else { for name in names { events[name] = nil } }
            return before - events.count
        }
    }
}
