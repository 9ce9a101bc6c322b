import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderClient

/// A larder with its daemon.
final class FollowedLarder {
    let place: TemporaryDirectory
    private(set) var daemon: DaemonProcess
    private let options: [String]

    init(changeLog: String = "32M", _ more: [String] = []) throws {
        place = try TemporaryDirectory(inMemory: true)
        options = ["--policy", "never", "--max-change-log", changeLog, "--durability", "os"] + more
        daemon = try DaemonProcess(options, in: place)
    }

    var path: String { daemon.socketPath }

    func client() throws -> BlockingLarderClient { try BlockingLarderClient(socketPath: path) }

    func call(_ words: String...) throws -> String {
        String(decoding: try daemon.connect().call(words), as: UTF8.self)
    }

    /// The time at which an entry was stored, in milliseconds since 1970.
    func storedAt(_ key: String) throws -> Int64 {
        try #require(try client().info(forKey: key)?.storedAtMilliseconds)
    }

    /// - Parameter forgets: whether the larder loses its change log.
    func restart(kills: Bool, forgets: Bool = false) throws {
        if kills { daemon.kill() } else { try daemon.stop() }
        if forgets { try FileSystem.removeTree(place.path + "/larder/CHANGES") }
        daemon = try DaemonProcess(options, in: place)
    }

    /// Replaces the larder's files by a saved copy, and restarts the daemon.
    func restart(with copy: String) throws {
        daemon.kill()
        try FileSystem.removeTree(place.path + "/larder")
        try FileSystem.rename(copy, to: place.path + "/larder")
        daemon = try DaemonProcess(options, in: place)
    }

    /// The contents of a database as text, for comparing larders: key, value, rule, tags and time of each entry. Omits
    /// data that differs between larders.
    func contents(_ database: String = "0") throws -> [String] {
        let client = try client()
        try client.select(database)
        let reply = try client.command(["ENTRIES", "COUNT", "10000"])
        let list = try #require(reply.elements?[1].elements)
        return list.map { entry in
            let fields = entry.elements ?? []
            return fields.map { field in
                field.string ?? field.int.map { "\($0)" }
                    ?? (field.elements ?? []).map { $0.string ?? "?" }.joined(separator: "+")
            }.joined(separator: " ")
        }
    }

    /// Makes one change of a random kind, with a new client.
    func act(_ random: inout SeededGenerator, _ number: Int, purges: Bool = true) throws {
        try Self.act(try daemon.connect(), &random, number, purges: purges)
    }

    /// Makes one change of a random kind with `client`.
    static func act(
        _ client: SocketClient, _ random: inout SeededGenerator, _ number: Int, purges: Bool = true
    ) throws {
        let key = ["", "a", "ab", "b"][random.below(4)] + "\(random.below(15))"
        let other = "a\(random.below(15))"
        switch random.below(purges ? 26 : 20) {
        case 0..<5: _ = try client.call(["SET", key, "\(number)"])
        case 5, 6: _ = try client.call(["SET", key, "\(number)", "EX", "1000", "GRACE", "5"])
        case 7, 8:
            _ = try client.call(["SET", key, "\(number)", "TAGS", "2", "t\(random.below(3))", "t\(random.below(3))"])
        case 9..<13: _ = try client.call(["DEL", key, other])
        case 13: _ = try client.call(["RENAME", key, other])
        case 14: _ = try client.call(["COPY", key, other, "REPLACE"])
        case 15: _ = try client.call(["EXPIRE", key, "\(1000 + number)"])
        case 16: _ = try client.call(["PERSIST", key])
        case 17: _ = try client.call(["APPEND", key, "+"])
        case 18: _ = try client.call(["SET", key, "soon", "PX", "1"])
        case 19:
            for words in [["MULTI"], ["SET", key, "m\(number)"], ["DEL", other], ["EXEC"]] {
                _ = try client.call(words)
            }
        case 20: _ = try client.call(["PURGE", "TAG", "t\(random.below(3))"])
        case 21: _ = try client.call(["PURGE", "PREFIX", "a"])
        case 22: _ = try client.call(["PURGE"])
        case 23: _ = try client.call(["FLUSHDB"])
        case 24:
            _ = try client.call(["SELECT", "5"])
            _ = try client.call(["SET", key, "five \(number)"])
            _ = try client.call(["SWAPDB", "0", "5"])
        default: _ = try client.call(["SAVE"])
        }
    }
}
