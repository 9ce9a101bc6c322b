import LarderPlatform
import Testing

import class LarderTestSupport.DaemonProcess
import class LarderTestSupport.TemporaryDirectory

@testable import larderbench

/// Tests of the generator, the null server and the daemon together, as the benchmark runs them.
@Suite struct ServerTests {
    private let directory: TemporaryDirectory
    private var options: BenchOptions

    init() throws {
        directory = try TemporaryDirectory()
        options = try BenchOptions(["--larderd", DaemonProcess.program()])
        options.program = try DaemonProcess.program("larderbench")
    }

    private func start(_ contender: Contender) throws -> RunningServer {
        try RunningServer(contender, options, directory: directory.path + "/d")
    }

    @Test(arguments: [1, 7, 64], [64, 5000]) func theNullServerRepliesToEveryRequest(pipeline: Int, bytes: Int) throws {
        let server = try start(.null)
        defer { server.stop() }
        for var load in [Load.get(bytes, clients: 3, pipeline: pipeline), .set(bytes, clients: 3, pipeline: pipeline)] {
            load.limit = .requests(5000)
            let report = try LoadGenerator.run(load, server)
            try report.check()
            #expect(report.requests == 5000)
        }
    }

    @Test("a daemon is filled, counted, read, and has its entries after a crash")
    func aDaemonKeepsItsEntriesAfterACrash() throws {
        mkdir(directory.path + "/d", 0o700)
        let server = try start(.larderOS)
        try server.fill(count: 2000, valueBytes: 100)
        try server.checkCount(2000)
        #expect(throws: BenchError.self) { try server.checkCount(2001) }
        var mixed = Load.get(100, clients: 5, pipeline: 8, keys: 2000)
        mixed.setPercent = 30
        mixed.limit = .requests(3000)
        let figures = try server.measure(mixed)
        let atRest = try #require(figures[.processorAtRest])
        #expect(try atRest > 0 && #require(figures[.processor]) >= atRest && #require(figures[.rate]) > 0)
        #expect((server.residentMiB ?? 0) > 1)
        var more = Load.get(100, clients: 1, keys: 4000, order: .sequential)
        more.limit = .requests(4000)
        let report = try LoadGenerator.run(more, server)
        #expect(report.misses == 2000)
        server.crash()
        let again = try start(.larderOS)
        defer { again.stop() }
        #expect(try again.entryCount() == 2000)
    }

    @Test(.enabled(if: access("/usr/bin/memcached", X_OK) == 0, "memcached is not there"))
    func memcachedIsFilledAndRead() throws {
        let server = try start(.memcached)
        defer { server.stop() }
        try server.fill(count: 2000, valueBytes: 100)
        var load = Load.get(100, clients: 5, pipeline: 8, keys: 2000)
        load.setPercent = 30
        load.limit = .requests(3000)
        let report = try LoadGenerator.run(load, server)
        try report.check()
        #expect(report.requests == 3000)
        load.keys = 4000
        load.setPercent = 0
        load.order = .sequential
        load.limit = .requests(4000)
        load.clients = 1
        let half = try LoadGenerator.run(load, server)
        #expect(half.misses == 2000)
    }

    @Test func theLoadGeneratorCanStoreEntriesWithALifetime() throws {
        mkdir(directory.path + "/d", 0o700)
        let server = try start(.larderOS)
        defer { server.stop() }
        var load = Load.fill(100, valueBytes: 10, firstKey: 1000)
        load.kinds = [Load.Kind(valueBytes: 10, lifetimeMilliseconds: 600_000)]
        try LoadGenerator.run(load, server).check()
        guard case .integer(let milliseconds) = try SocketClient(path: server.socket).ask(["PTTL", Keys.text(1099)])
        else {
            Issue.record("PTTL was not answered with a number")
            return
        }
        #expect(milliseconds > 0 && milliseconds <= 600_000)
        #expect(try SocketClient(path: server.socket).infoNumber("stats", "expired_keys") == 0)
    }

    @Test("if a server does not start, the error contains its last output")
    func theErrorOfAFailedStartContainsTheOutput() {
        var options = options
        options.larderd = "/bin/false"
        #expect(throws: BenchError.self) {
            try RunningServer(.larderOS, options, directory: directory.path + "/d")
        }
    }

    @Test func startedServersAreTerminatedWithTheBenchmark() throws {
        // A benchmark that hangs may be killed. The server that it has started must terminate as well.
        let process = try ChildProcess(
            [
                options.program, "--only", "mixed", "--rounds", "1", "--max-busy", "100", "--dir", directory.path,
                "--larderd", options.larderd,
            ],
            outputPath: directory.path + "/out")
        var socket: String?
        while socket == nil, !process.hasEnded {
            Clocks.sleep(0.01)
            for name in TemporaryTree.names(in: directory.path) where name.hasPrefix("larderbench.") {
                let path = "\(directory.path)/\(name)/server.sock"
                if access(path, F_OK) == 0, (try? SocketClient(path: path)) != nil { socket = path }
            }
        }
        let path = try #require(socket, "\(process.output)")
        process.crash()
        // The kernel terminates the server with its parent process. Otherwise, this loop would time out.
        let end = Clocks.monotonic() + 60
        while (try? SocketClient(path: path)) != nil, Clocks.monotonic() < end { Clocks.sleep(0.01) }
        #expect((try? SocketClient(path: path)) == nil)
    }

    @Test func aLoadTaskCanBeStopped() throws {
        let server = try start(.null)
        defer { server.stop() }
        let task = LoadTask(.set(clients: 2, pipeline: 4), server)
        let report = try task.finish(now: true)
        #expect(report.errors == 0)
    }
}
