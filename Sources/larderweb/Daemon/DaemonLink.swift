import LarderClient
import LarderPlatform

/// A small connection pool to the daemon, shared by larderweb's threads.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class DaemonLink: @unchecked Sendable {
    private let socketPath: String?
    private let password: String?
    private let trustedUsers: Set<UInt32>
    private let isUnlogged: Bool
    private let lock = Lock()
    private let changed = Condition()
    private var idle: [BlockingLarderClient] = []
    private var busyCount = 0

    /// The maximum number of connections of each link, regardless of the number of browsers.
    private static let connectionsMax = 3
    private static let timeoutMilliseconds = 3_000
    private static let name = "larderweb"

    /// - Parameter isUnlogged: whether to keep the commands out of SLOWLOG, LATENCY and MONITOR, if larderweb has the
    ///   right to.
    init(socketPath: String?, password: String?, trustedUsers: Set<UInt32>, isUnlogged: Bool) {
        (self.socketPath, self.password) = (socketPath, password)
        (self.trustedUsers, self.isUnlogged) = (trustedUsers, isUnlogged)
    }

    /// Sends a command. Throws its error reply.
    func command(_ words: String...) throws(LarderClientError) -> RESPValue {
        try withClient { client throws(LarderClientError) in try client.command(words) }.checked(words[0])
    }

    /// Runs `body` with a connection that no other thread uses in the meantime.
    /// - Parameters:
    ///   - database: is selected first; nil if any may be selected.
    ///   - mayRepeat: whether the commands may be sent again if the connection was lost.
    func withClient<Result>(
        in database: String? = nil, mayRepeat: Bool = true,
        _ body: (BlockingLarderClient) throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        do throws(LarderClientError) {
            return try lend(mayRepeat) { client throws(LarderClientError) in
                if let database { try client.select(database) }
                return try body(client)
            }
        } catch {
            throw explained(error)
        }
    }

    /// Adds advice about a missing or wrong password to an error.
    private func explained(_ error: LarderClientError) -> LarderClientError {
        guard error.code == .server, let text = error.serverText,
            let word = ["NOAUTH", "WRONGPASS"].first(where: text.hasPrefix)
        else { return error }
        let message =
            password == nil
            ? "the daemon needs a password: use --password-file (\(word))"
            : "the daemon refuses the password of --password-file (\(word))"
        return LarderClientError(.noDaemon, message, operation: error.operation, socketPath: error.socketPath)
    }

    private func lend<Result>(
        _ mayRepeat: Bool, _ body: (BlockingLarderClient) throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        let idle = try take()
        defer { giveBack() }
        if let idle {
            do throws(LarderClientError) { return try use(idle, body) } catch {
                // The daemon may have been restarted. If the commands may be repeated, reconnect below.
                let isLost = !Self.isOfDaemon(error) && error.code != .timeout
                guard isLost, mayRepeat || error.code == .noDaemon else { throw error }
            }
        }
        let client = try BlockingLarderClient(
            socketPath: socketPath, password: password, timeoutMilliseconds: Self.timeoutMilliseconds,
            trustedUsers: trustedUsers)
        // Ignore the reply: without the right to set a name, the connection has none.
        _ = try client.command("CLIENT", "SETNAME", Self.name)
        if isUnlogged { _ = try client.command("CLIENT", "NO-LOG", "ON") }
        return try use(client, body)
    }

    /// Whether the daemon has refused a request. Its connection can be used for other requests.
    private static func isOfDaemon(_ error: LarderClientError) -> Bool {
        error.code == .server || error.code == .invalidArgument
    }

    /// Runs `body` with a connection, and keeps it for later requests if it still works.
    private func use<Result>(
        _ client: BlockingLarderClient, _ body: (BlockingLarderClient) throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        do throws(LarderClientError) {
            let result = try body(client)
            keep(client)
            return result
        } catch {
            if Self.isOfDaemon(error) { keep(client) } else { client.close() }
            throw error
        }
    }

    /// Waits for a free connection.
    /// - Returns: an idle connection; nil if the caller must open one.
    private func take() throws(LarderClientError) -> BlockingLarderClient? {
        try lock.withLock { () throws(LarderClientError) in
            let until = MonotonicClock.milliseconds() + Int64(Self.timeoutMilliseconds)
            while busyCount >= Self.connectionsMax {
                let left = until - MonotonicClock.milliseconds()
                guard left > 0 else {
                    throw LarderClientError(
                        .timeout, "all connections to the daemon are in use", operation: "connect")
                }
                changed.wait(lock, milliseconds: left)
            }
            busyCount += 1
            return idle.popLast()
        }
    }

    private func giveBack() {
        lock.withLock {
            busyCount -= 1
            changed.signal()
        }
    }

    private func keep(_ client: BlockingLarderClient) { lock.withLock { idle.append(client) } }
}
