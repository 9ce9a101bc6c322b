import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// The connections whose clients have sent MONITOR. They receive a line for each command. Thread-safe.
final class Monitors: Sendable {
    private typealias Groups = [(queue: PushQueue, group: MonitorGroup)]

    /// The connections, grouped by event loop. A loop without such connections has no group.
    private let groups = Locked<Groups>([])
    private let count = Atomic<Int>(0)

    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    func add(_ subscriber: Subscriber) {
        change { groups in
            let index = groups.firstIndex { $0.queue === subscriber.queue }
            let members = (index.map { groups[$0].group.members } ?? []).filter { $0 != subscriber.id }
            let group = MonitorGroup(members + [subscriber.id])
            if let index { groups[index].group = group } else { groups.append((subscriber.queue, group)) }
        }
    }

    func remove(_ id: Int64) {
        change { groups in
            guard let index = groups.firstIndex(where: { $0.group.members.contains(id) }) else { return }
            groups[index].group = MonitorGroup(groups[index].group.members.filter { $0 != id })
            if groups[index].group.members.isEmpty { groups.remove(at: index) }
        }
    }

    private func change(_ body: (inout Groups) -> Void) {
        groups.withLock {
            body(&$0)
            count.store($0.reduce(0) { $0 + $1.group.members.count }, ordering: .relaxed)
        }
    }

    /// Sends a line to all clients that use MONITOR. Each event loop gets the line only once.
    /// - Parameter excepted: a connection that receives no more output, and so does not get the line; nil for none.
    func show(_ line: [UInt8], except excepted: Int64?) {
        let message = PushMessage.line(line)
        for (queue, group) in groups.withLock({ $0 }) {
            if let excepted, group.members.contains(excepted) {
                queue.add(
                    PushQueue.Delivery(message: message, connections: group.members.filter { $0 != excepted }))
            } else {
                queue.add(PushQueue.Delivery(message: message, monitors: group))
            }
        }
    }

    /// Returns the line for a command: its time, database and client, followed by its words in quotes.
    static func line(
        now: Int64, database: String, address: String, count: Int, word: (Int) -> UnsafeRawBufferPointer
    ) -> [UInt8] {
        var clock = timespec()
        clock_gettime(CLOCK_REALTIME, &clock)
        let micros = now % 1000 * 1000 + Int64(clock.tv_nsec) / 1000 % 1000
        var line = Array("+\(now / 1000).\(micros.zeroPadded(6)) [\(database) \(address)]".utf8)
        for index in 0..<count {
            line += [0x20, 0x22]
            for byte in word(index) { append(byte, to: &line) }
            line.append(0x22)
        }
        return line + [0x0D, 0x0A]
    }

    private static func append(_ byte: UInt8, to line: inout [UInt8]) {
        switch byte {
        case 0x22, 0x5C: line += [0x5C, byte]
        case 0x0A: line += Array("\\n".utf8)
        case 0x0D: line += Array("\\r".utf8)
        case 0x09: line += Array("\\t".utf8)
        case 0x07: line += Array("\\a".utf8)
        case 0x08: line += Array("\\b".utf8)
        case 0x20...0x7E: line.append(byte)
        default:
            let digits = Array("0123456789abcdef".utf8)
            line += [0x5C, 0x78, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
}
