import LarderEngine
import LarderPlatform
import LarderTestSupport

@testable import LarderServer

/// A server with its event loops and its socket, which runs in the process of the test.
///
/// Thread-safe. `@unchecked Sendable`: state that threads share is guarded by the lock.
final class InProcessServer: @unchecked Sendable {
    let directory: TemporaryDirectory
    let socketPath: String
    let logLines: LogReader
    private let lock = Lock()
    private let changed = Condition()
    private var stopper: (@Sendable (String) -> Void)?
    private var failure: Server.Failure?
    private var hasEnded = false
    private var thread: WorkThread?

    /// - Parameter source: a server whose larder is copied before this one starts; nil for a new larder.
    init(
        copying source: InProcessServer? = nil, threads: Int = 1, limits: Limits = Limits(),
        configure: (inout EngineOptions) -> Void = { _ in },
        beforeColdSlice: (@Sendable () -> Void)? = nil, beforeWork: (@Sendable (String) -> Void)? = nil
    ) throws {
        directory = try TemporaryDirectory(inMemory: true)
        socketPath = directory.path + "/socket"
        if let source { try Files.copy(source.directory.path + "/larder", to: directory.path + "/larder") }
        logLines = try LogReader()
        var configuration = ServerConfiguration(directory: directory.path + "/larder", socketPath: socketPath)
        configuration.threads = threads
        configuration.limits = limits
        configuration.handlesSignals = false
        configuration.beforeColdSlice = beforeColdSlice
        configuration.beforeWork = beforeWork
        configure(&configuration.engine)
        let log = Log(least: .debug, descriptor: logLines.writeEnd)
        thread = WorkThread(name: "server") { [self, configuration] in run(configuration, log) }
        lock.withLock { while stopper == nil, !hasEnded { changed.wait(lock) } }
        if let failure { throw failure }
    }

    private func run(_ configuration: ServerConfiguration, _ log: Log) {
        var thrown: Server.Failure?
        do throws(Server.Failure) {
            try Server.run(configuration, log: log) { stop in
                lock.withLock {
                    stopper = { stop($0) }
                    changed.broadcast()
                }
            }
        } catch {
            thrown = error
        }
        lock.withLock {
            failure = thrown
            hasEnded = true
            changed.broadcast()
        }
        log.flush()
        logLines.closeWriteEnd()
    }

    func connect() throws -> SocketClient { try SocketClient(socketPath) }

    /// Makes the server stop, without waiting for it.
    func beginStopping() { lock.withLock { stopper }?("the test is over") }

    /// Stops the server and waits until it has stopped. Further calls have no effect.
    func stop() {
        beginStopping()
        let thread = lock.withLock {
            defer { self.thread = nil }
            return self.thread
        }
        thread?.join()
    }

    /// Returns the number of connected clients that the server reports, including the connection of this request.
    func connectedClients() throws -> Int {
        let info = try connect().call("INFO clients")
        let line = info.split(separator: "\r\n").first { $0.hasPrefix("connected_clients:") }
        return line.flatMap { Int($0.dropFirst("connected_clients:".count)) } ?? -1
    }
}
