import RESP

/// A server of a ``Contender``, up and answering, on a socket of its own. Stopped when it is let go.
final class RunningServer {
    let contender: Contender
    let socket: String
    let directory: String
    private let process: ChildProcess
    private let started: Double
    /// Milliseconds from its start to its first PONG.
    let startMilliseconds: Double

    /// Starts a server on a data directory and waits until it answers.
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
            if let client = try? SocketClient(path: socket), case .simpleString("PONG")? = try? client.ask(["PING"]) {
                break
            }
            try Interruption.check()
            guard !process.hasEnded else { throw BenchError("did not start: \(process.lastWords)") }
            guard Clocks.monotonic() - start < patience else {
                throw BenchError("does not answer after \(Int(patience)) s: \(process.lastWords)")
            }
            Clocks.sleep(0.0005)
        }
        startMilliseconds = (Clocks.monotonic() - start) * 1000
    }

    deinit { stop() }

    /// Reads an entry.
    /// - Returns: milliseconds from the server's start until the value was here.
    func readAfterStart() throws(BenchError) -> Double {
        let answer = try SocketClient(path: socket).ask(["GET", Keys.text(1)])
        guard case .bulk = answer else { throw BenchError("GET of a stored key was answered with \(answer)") }
        return (Clocks.monotonic() - started) * 1000
    }

    /// Ends the server as an operator would; the files stay.
    func stop() { process.stop() }

    /// Ends the server and removes its files.
    func stopAndRemove() {
        stop()
        TemporaryTree.remove(directory)
        unlink(directory + ".log")
        unlink(socket)
    }

    /// Processor seconds that the server has used, all threads counted.
    var processorSeconds: Double? { Clocks.processor(of: process.pid) }

    func settle() { Clocks.settle { processorSeconds } }

    var residentMiB: Double? { process.residentMiB }

    var diskMiB: Double { Double(TemporaryTree.diskBytes(directory)) / 1_048_576 }

    func fill(count: Int, valueBytes: Int) throws(BenchError) {
        let client = try SocketClient(path: socket)
        try client.fill(count: count, valueBytes: valueBytes)
        try client.checkCount(count)
        settle()
    }
}
