import Platform

/// A `redis-server` on a socket of its own, which replies are compared with.
package final class RedisProcess {
    package let socketPath: String
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    /// - Parameter settings: more words of its command line.
    package init(_ settings: [String] = []) throws {
        directory = try TemporaryDirectory(inMemory: true)
        socketPath = directory.path + "/redis"
        do {
            process = try ChildProcess(
                "redis-server",
                [
                    "--port", "0", "--unixsocket", socketPath, "--save", "", "--appendonly", "no", "--dir",
                    directory.path,
                ] + settings)
        } catch {
            throw ChildProcess.Failure(
                description: "\(error): this test compares with redis-server 7.0; `make test` installs it")
        }
        // It answers once it listens, which takes some milliseconds.
        var tries = 0
        while (try? SocketClient(socketPath)) == nil {
            tries += 1
            guard tries < 1_000_000 else { throw ChildProcess.Failure(description: "redis-server does not answer") }
        }
    }

    deinit { process.killNow() }

    /// Stops the process, which then says nothing; ``thaw()`` lets it go on.
    package func freeze() { _ = kill(process.pid, SIGSTOP) }
    package func thaw() { _ = kill(process.pid, SIGCONT) }

    package func connect() throws -> SocketClient { try SocketClient(socketPath) }
}
