import LarderClient
import LarderPlatform

/// The way to the daemon: a few connections that the threads of larderweb share, one at a time each.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class DaemonLink: @unchecked Sendable {
    private let socketPath: String?
    private let password: String?
    private let trustedUsers: Set<UInt32>
    private let isUnlogged: Bool
    private let lock = Lock()
    private let changed = Condition()
    private var idle: [BlockingLarderClient] = []
    private var busyCount = 0

    /// However many browsers look, the daemon has no more clients than this from each link.
    private static let connectionsMax = 3
    private static let timeoutMilliseconds = 3_000
    private static let name = "larderweb"

    /// - Parameter isUnlogged: keeps the commands out of SLOWLOG, LATENCY and MONITOR, if larderweb has the right to that.
    init(socketPath: String?, password: String?, trustedUsers: Set<UInt32>, isUnlogged: Bool) {
        self.socketPath = socketPath
        self.password = password
        self.trustedUsers = trustedUsers
        self.isUnlogged = isUnlogged
    }

    /// Sends commands at once, on a connection that nobody else uses meanwhile.
    /// - Parameters:
    ///   - database: is selected first, and only when that is done they are sent: else they would be carried out in whatever
    ///     database the connection was used for before.
    ///   - mayRepeat: whether they may be sent again if the connection was lost.
    /// - Returns: the replies; a server's error is a value in its command's place.
    func perform(
        _ commands: [[[UInt8]]], database: String? = nil, mayRepeat: Bool = true
    ) throws(LarderClientError) -> [RESPValue] {
        try withClient(mayRepeat: mayRepeat) { client throws(LarderClientError) in
            if let database { try client.select(database) }
            return try client.pipeline(commands)
        }
    }

    /// As above, for one command whose error is thrown.
    func command(
        _ words: [[UInt8]], database: String? = nil, mayRepeat: Bool = true
    ) throws(LarderClientError) -> RESPValue {
        let replies = try perform([words], database: database, mayRepeat: mayRepeat)
        guard let reply = replies.first else { throw .unexpectedReply(to: "command", "one reply") }
        if let text = reply.errorMessage { throw .server(text, operation: printableKey(words.first ?? [])) }
        return reply
    }

    func command(_ words: String..., database: String? = nil) throws(LarderClientError) -> RESPValue {
        try command(words.map { Array($0.utf8) }, database: database)
    }

    /// Lends a connection.
    func withClient<Result>(
        mayRepeat: Bool = true, _ body: (BlockingLarderClient) throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        do throws(LarderClientError) { return try lend(mayRepeat, body) } catch { throw explained(error) }
    }

    /// Without its password the daemon is as good as away, and what to do about that is larderweb's to say.
    private func explained(_ error: LarderClientError) -> LarderClientError {
        guard error.code == .server, let text = error.serverText,
            let word = ["NOAUTH", "WRONGPASS"].first(where: text.hasPrefix)
        else { return error }
        let message =
            password == nil
            ? "the daemon asks for a password: --password-file names its file (\(word))"
            : "the daemon refuses the password of --password-file (\(word))"
        return LarderClientError(.noDaemon, message, operation: error.operation, socketPath: error.socketPath)
    }

    private func lend<Result>(
        _ mayRepeat: Bool, _ body: (BlockingLarderClient) throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        let former = try take()
        defer { giveBack() }
        if let former {
            do throws(LarderClientError) {
                let result = try body(former)
                keep(former)
                return result
            } catch {
                if error.code == .server || error.code == .invalidArgument {
                    keep(former)
                    throw error
                }
                // The daemon may have been started anew since.
                former.close()
                if error.code == .timeout || !mayRepeat && error.code != .noDaemon { throw error }
            }
        }
        let client = try BlockingLarderClient(
            socketPath: socketPath, password: password, timeoutMilliseconds: Self.timeoutMilliseconds,
            trustedUsers: trustedUsers)
        // Without the right to it, it goes without a name.
        _ = try client.command("CLIENT", "SETNAME", Self.name)
        if isUnlogged { _ = try client.command("CLIENT", "NO-LOG", "ON") }
        do throws(LarderClientError) {
            let result = try body(client)
            keep(client)
            return result
        } catch {
            if error.code == .server || error.code == .invalidArgument { keep(client) } else { client.close() }
            throw error
        }
    }

    /// Waits for its turn.
    /// - Returns: a connection, or nil if one is to be made.
    private func take() throws(LarderClientError) -> BlockingLarderClient? {
        try lock.withLock { () throws(LarderClientError) in
            let until = MonotonicClock.milliseconds() + Int64(Self.timeoutMilliseconds)
            while busyCount >= Self.connectionsMax {
                let left = until - MonotonicClock.milliseconds()
                guard left > 0 else {
                    throw LarderClientError(
                        .timeout, "the connections to the daemon are all in use", operation: "connect")
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
