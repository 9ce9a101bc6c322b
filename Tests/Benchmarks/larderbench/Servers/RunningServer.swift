import LarderPlatform
import LarderRESP

/// A running server of a ``Contender`` on its own socket. Deinitialization stops it.
final class RunningServer {
    let contender: Contender
    let socket: String
    let directory: String
    private let process: ChildProcess
    private let started: Double
    /// The milliseconds from its start to its first PONG.
    let startMilliseconds: Double

    /// Starts a server on a data directory and waits until it replies.
    init(_ contender: Contender, _ options: BenchOptions, directory: String, patience: Double = 120) throws(BenchError)
    {
        self.contender = contender
        self.directory = directory
        socket = directory + ".sock"
        unlink(socket)
        let start = Clocks.monotonic()
        started = start
        process = try ChildProcess(
            contender.words(options, directory: directory, socket: socket), outputPath: directory + ".log")
        while true {
            if Self.answers(contender, socket) { break }
            try Interruption.check()
            guard !process.hasEnded else { throw BenchError("did not start: \(process.lastLines)") }
            guard Clocks.monotonic() - start < patience else {
                throw BenchError("does not answer after \(Int(patience)) s: \(process.lastLines)")
            }
            Clocks.sleep(0.0005)
        }
        startMilliseconds = (Clocks.monotonic() - start) * 1000
    }

    private static func answers(_ contender: Contender, _ socket: String) -> Bool {
        guard let client = try? SocketClient(path: socket) else { return false }
        guard contender.dialect == .resp else { return true }
        guard case .simpleString("PONG")? = try? client.ask(["PING"]) else { return false }
        return true
    }

    deinit { stop() }

    /// Reads an entry.
    /// - Returns: the milliseconds from the server's start until the value was received.
    func readAfterStart() throws(BenchError) -> Double {
        let answer = try SocketClient(path: socket).ask(["GET", Keys.text(1)])
        guard case .bulk = answer else { throw BenchError("GET of a stored key was answered with \(answer)") }
        return (Clocks.monotonic() - started) * 1000
    }

    /// Terminates the server as an operator would; the files are kept.
    func stop() { process.stop() }

    /// Kills the server; the files are kept.
    func crash() { process.crash() }

    /// Terminates the server and removes its files.
    func stopAndRemove() {
        stop()
        TemporaryTree.remove(directory)
        unlink(directory + ".log")
        unlink(socket)
    }

    /// CPU seconds of all the server's threads.
    var processorSeconds: Double? { Clocks.processor(of: process.pid) }

    /// Waits until the server is idle.
    /// - Parameter quiet: the number of seconds for which it must be idle.
    func settle(quiet: Double = 0.3) { Clocks.settle(quiet: quiet) { processorSeconds } }

    /// Waits until the server is idle and has returned the memory that it freed.
    func settleMemory() throws(BenchError) {
        settle()
        try Clocks.settleMemory { residentMiB }
    }

    var residentMiB: Double? { process.residentMiB }

    /// The resident memory without mapped files.
    var ownMiB: Double? { residentMiB.flatMap { resident in process.mappedMiB.map { resident - $0 } } }

    var diskBytesWritten: Double? { process.diskBytesWritten }

    /// The memory and the disk space of the server.
    var space: [Metric: Double] { [.resident: residentMiB ?? .nan, .disk: diskMiB] }

    var diskMiB: Double { Double(TemporaryTree.diskBytes(directory)) / 1_048_576 }

    /// Returns what the server uses from the start of `body` until the server is idle again. So this includes work that
    /// the load causes later.
    func usage<Result>(of body: () throws(BenchError) -> Result) throws(BenchError) -> (Result, ProcessUsage) {
        try [self].usage(of: body)
    }

    fileprivate func meter() throws(BenchError) -> UsageMeter {
        guard let meter = UsageMeter(process.pid) else { throw isGone }
        return meter
    }

    fileprivate var isGone: BenchError { BenchError("the server is gone: \(process.lastLines)") }

    /// Whether the server defers work even if it is idle.
    var putsOff: Bool { contender.program == .larderd }

    /// Makes the server do its deferred work. larderd writes entries from journal and memory to LevelDB when there are
    /// enough, after ten minutes, or for a snapshot. So this requests a snapshot. Other servers defer nothing.
    func writeOut() throws(BenchError) {
        guard putsOff else { return }
        let client = try SocketClient(path: socket)
        for word in ["OPEN", "CLOSE"] {
            let answer = try client.ask(["SNAPSHOT", word])
            if case .error(let text) = answer { throw BenchError("SNAPSHOT \(word): \(text)") }
        }
    }

    func entryCount() throws(BenchError) -> Int { try SocketClient(path: socket).entryCount() }

    /// Checks that the server has `count` entries. If some were missing, their GETs would be misses.
    func checkCount(_ count: Int) throws(BenchError) {
        guard contender.dialect == .resp else { return }
        try SocketClient(path: socket).checkCount(count)
    }
}

extension [RunningServer] {
    /// Returns what all servers use from the start of `body` until they are idle again. So this includes work that the
    /// load causes later.
    func usage<Result>(of body: () throws(BenchError) -> Result) throws(BenchError) -> (Result, ProcessUsage) {
        // The servers became idle after their previous work, so a short check is enough.
        Clocks.settle(quiet: 0.1) { processorSeconds }
        var meters: [UsageMeter] = []
        for server in self { meters.append(try server.meter()) }
        let result = try body()
        Clocks.settle { processorSeconds }
        var sum: ProcessUsage?
        for (server, meter) in zip(self, meters) {
            guard let usage = meter.usage else { throw server.isGone }
            sum = sum.map { $0 + usage } ?? usage
        }
        return (result, sum ?? ProcessUsage())
    }

    private var processorSeconds: Double { reduce(0) { $0 + ($1.processorSeconds ?? 0) } }
}
