import LarderClient
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that at most one of many tasks and processes holds a lock.
@Suite(.timeLimit(.minutes(10))) struct LockContentionTests {
    /// The resource protected by the lock: a directory that one holder creates and removes, and a list of tokens.
    private final class Protected: Sendable {
        let path: String
        private let tokens = Recorder<UInt64>()

        init(_ directory: TemporaryDirectory) { path = directory.path }

        var place: String { path + "/inside" }
        var log: String { path + "/log" }

        func use(_ token: UInt64) async {
            if mkdir(place, 0o700) != 0 { Issue.record("two hold the lock: \(token)") }
            note(token)
            await Task.yield()
            if rmdir(place) != 0 { Issue.record("two held the lock: \(token)") }
        }

        private func note(_ token: UInt64) {
            let file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
            let line = Array("\(token)\n".utf8)
            if write(file, line, line.count) != line.count { Issue.record("the log cannot be written") }
            close(file)
        }

        /// A shell command that does the same as ``use(_:)``.
        var command: String {
            "mkdir '\(place)' || exit 99; echo $LARDER_LOCK_TOKEN >> '\(log)'; rmdir '\(place)' || exit 99"
        }

        func allTokens() throws -> [UInt64] {
            String(decoding: try Files.read(log), as: UTF8.self).split(separator: "\n").compactMap { UInt64($0) }
        }
    }

    @Test func aLockHasAtMostOneHolder() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(["--threads", "2"], in: directory)
        let protected = Protected(directory)
        let rounds = TestSetting.rounds.number() ?? 1
        for _ in 0..<rounds {
            // Every fourth holder is killed while it holds the lock. The lock then lasts until it expires.
            let processes = try (0..<16).map { number in
                // The other holders have a long lock time, so that they do not lose the lock while they wait for a CPU.
                let (end, time) = number.isMultiple(of: 4) ? ("; kill -9 $PPID", "1") : ("", "600")
                return try ChildProcess(
                    try DaemonProcess.program("larderctl"),
                    ["lock", "l", "--for", time, "--", "sh", "-c", protected.command + end],
                    environment: ["LARDER_SOCKET=\(daemon.socketPath)", "PATH=/usr/bin:/bin"])
            }
            var clients: [LarderClient] = []
            for _ in 0..<3 { clients.append(try await LarderClient.connect(socketPath: daemon.socketPath)) }
            try await withThrowingTaskGroup { group in
                for number in 0..<300 {
                    group.addTask { [client = clients[number % 3]] in
                        try await client.lock("l", for: .seconds(600)) { await protected.use($0.token) }
                    }
                }
                try await group.waitForAll()
            }
            for (number, process) in processes.enumerated() {
                let end = try process.waitForExit()
                #expect(end == (number.isMultiple(of: 4) ? .killed(signal: SIGKILL) : .exited(0)), "\(process.errors)")
            }
            // If the last holders were killed, the lock is free only after it has expired.
            try await clients[0].lock("l", for: .seconds(20)) { await protected.use($0.token) }
            #expect(try await clients[0].command("EXISTS", "l", "l:queue") == .integer(0))
            for client in clients { client.close() }
        }
        let tokens = try protected.allTokens()
        #expect(tokens.count == 317 * rounds)
        #expect(zip(tokens, tokens.dropFirst()).allSatisfy { $0 < $1 }, "a token is not greater than the one before")
        let observer = try daemon.connect()
        func isIdle() throws -> Bool {
            let info = try observer.call("INFO")
            return info.contains("\nleases:0\r\n") && info.contains("\nlease_waiters:0\r\n")
        }
        // The daemon releases the state of a closed connection when it notices the close.
        try await eventually { try isIdle() }
    }
}
