import LarderPlatform
import LarderTestSupport

/// The history of a round: every write with the time of its acknowledgement, and every read with its result. All times
/// are milliseconds of one monotonic clock.
///
/// Each key is written by one writer, with ascending versions from 1. Version 0 is a missing key.
struct FleetHistory: Sendable {
    struct Write: Sendable {
        var key: String
        var version: Int
        var sent: Int64
        /// The time of the acknowledgement. Nil if there was none: the write may or may not have happened.
        var acknowledged: Int64?
        /// The time when the call ended, with or without an acknowledgement.
        var answered: Int64?
        /// Whether the acknowledged write survives all faults of the round at the origin.
        var isDurable = true
        /// Whether a tier acknowledged the write.
        var isByTier = false
        /// Whether the write is acknowledged before the origin has it. Reads need not return the write, but the origin
        /// must have it in the end.
        var isBehind = false
    }

    struct Read: Sendable {
        var tier: Int
        var connection: Int
        var key: String
        var sent: Int64
        var answered: Int64
        var answer: Answer
        /// The number of keys that were requested together.
        var keys = 1
    }

    enum Answer: Sendable, Equatable {
        case version(Int)
        case refused(String)
        /// A value that was never written under this key.
        case foreign(String)
    }

    /// A time in which the origin itself may return wrong values. An old primary may not know of its replacement yet,
    /// or a failover may have lost writes.
    struct Doubt: Sendable {
        var from: Int64
        var to: Int64
        /// Whether reads at the origin may be old.
        var isAboutReads: Bool
    }

    var writes: [Write] = []
    var reads: [Read] = []
    var doubts: [Doubt] = []
    /// The contents of the origin at the end, when all servers worked again, as a version for each key.
    var final: [String: Int] = [:]
    /// The longest time that a thread had to wait to be scheduled.
    var machineDelay: Int64 = 0
    /// The wrong replies that a tier still returned at the end, after the time limit.
    var late: [String] = []
}

extension Guarded<FleetHistory> {
    /// Records how busy the machine is: the most by which a short sleep takes longer than requested.
    func noteDelays(until isOver: Guarded<Bool>) {
        while !isOver.value {
            let start = MonotonicClock.milliseconds()
            WorkThread.sleep(nanoseconds: 5_000_000)
            let delay = MonotonicClock.milliseconds() - start - 5
            with { $0.machineDelay = max($0.machineDelay, delay) }
        }
    }
}

/// A violation of the guarantees in a history.
struct FleetFinding: CustomStringConvertible, Sendable {
    enum Kind: String, Sendable, CaseIterable {
        case stale = "read staler than the bound"
        case backwards = "an older version after a newer one on one connection"
        case foreign = "a value that nobody wrote"
        case future = "a version that was not written yet"
        case slow = "a call longer than its limit"
        case lost = "an acknowledged write is lost"
        case dead = "a tier does not come back"
    }

    var kind: Kind
    var text: String
    var description: String { "\(kind.rawValue): \(text)" }
}

/// Judges histories.
struct FleetJudge {
    /// The staleness bound: how old a read may be after an acknowledged write, in milliseconds.
    var bound: Int64
    /// The longest duration of a call on a machine where no thread waits to be scheduled, in milliseconds.
    var limit: Int64

    struct Verdict: Sendable {
        var findings: [FleetFinding] = []
        var reads = 0
        var refused = 0
        /// The longest time in milliseconds between the acknowledgement of a durable write and a read of an older
        /// version.
        var worstStaleness: Int64 = 0
        var longestCall: Int64 = 0
    }

    func judge(_ history: FleetHistory) -> Verdict {
        var verdict = Verdict()
        let limit = limit + 2 * history.machineDelay
        let writes = Dictionary(grouping: history.writes, by: \.key).mapValues { $0.sorted { $0.version < $1.version } }
        for read in history.reads {
            verdict.reads += 1
            verdict.longestCall = max(verdict.longestCall, read.answered - read.sent)
            if read.answered - read.sent > limit {
                verdict.findings.append(
                    .init(kind: .slow, text: "\(Self.text(read)) took \(read.answered - read.sent) ms of \(limit)"))
            }
            switch read.answer {
            case .refused: verdict.refused += 1
            case .foreign(let value):
                verdict.findings.append(.init(kind: .foreign, text: "\(Self.text(read)): \(value)"))
            case .version(let version): judge(read, version, writes[read.key] ?? [], history, &verdict)
            }
        }
        for write in history.writes where write.isByTier {
            let time = (write.answered ?? write.sent) - write.sent
            verdict.longestCall = max(verdict.longestCall, time)
            if time > limit {
                verdict.findings.append(
                    .init(kind: .slow, text: "SET of \(write.key) at \(write.sent) took \(time) ms of \(limit)"))
            }
        }
        judgeOrder(history, &verdict)
        verdict.findings += history.late.map { .init(kind: .dead, text: $0) }
        for (key, writes) in writes {
            guard let last = writes.last(where: { $0.acknowledged != nil && $0.isDurable }) else { continue }
            if let final = history.final[key], final < last.version {
                verdict.findings.append(
                    .init(
                        kind: .lost,
                        text: "\(key): version \(last.version) was acknowledged\(last.isByTier ? " by a tier" : "") at "
                            + "\(last.acknowledged ?? 0), and the origin ends with \(final)"))
            }
        }
        return verdict
    }

    private func judge(
        _ read: FleetHistory.Read, _ version: Int, _ writes: [FleetHistory.Write], _ history: FleetHistory,
        _ verdict: inout Verdict
    ) {
        if version > 0, !writes.contains(where: { $0.version == version && $0.sent <= read.answered }) {
            verdict.findings.append(.init(kind: .future, text: "\(Self.text(read)) got version \(version)"))
        }
        // Find the first durable write after the version that was read. Its acknowledgement made the read stale.
        guard
            let newer = writes.first(where: {
                $0.version > version && $0.isDurable && !$0.isBehind && $0.acknowledged != nil
            }),
            let acknowledged = newer.acknowledged, acknowledged < read.sent
        else { return }
        let isInDoubt = history.doubts.contains {
            $0.isAboutReads && $0.from <= read.answered && read.sent <= $0.to + bound
        }
        guard !isInDoubt else { return }
        verdict.worstStaleness = max(verdict.worstStaleness, read.sent - acknowledged)
        if read.sent - acknowledged > bound {
            verdict.findings.append(
                .init(
                    kind: .stale,
                    text: "\(Self.text(read)) got version \(version), \(read.sent - acknowledged) ms after the "
                        + "acknowledgement of \(newer.version); \(bound) ms are allowed"))
        }
    }

    /// Checks that versions on one connection only increase, as long as the origin loses no write.
    private func judgeOrder(_ history: FleetHistory, _ verdict: inout Verdict) {
        struct Place: Hashable {
            var tier: Int
            var connection: Int
            var key: String
        }
        var seen: [Place: (version: Int, answered: Int64)] = [:]
        for read in history.reads.sorted(by: { $0.sent < $1.sent }) {
            guard case .version(let version) = read.answer else { continue }
            let place = Place(tier: read.tier, connection: read.connection, key: read.key)
            if let before = seen[place], version < before.version {
                let isInDoubt = history.doubts.contains { $0.from <= read.answered && before.answered <= $0.to }
                if !isInDoubt {
                    verdict.findings.append(
                        .init(
                            kind: .backwards,
                            text: "\(Self.text(read)) got version \(version) after \(before.version) at "
                                + "\(before.answered)"))
                }
            }
            seen[place] = (version, read.answered)
        }
    }

    private static func text(_ read: FleetHistory.Read) -> String {
        "tier \(read.tier), connection \(read.connection), \(read.key)"
            + (read.keys > 1 ? ", one of \(read.keys) of an MGET," : "") + " at \(read.sent)"
    }
}
