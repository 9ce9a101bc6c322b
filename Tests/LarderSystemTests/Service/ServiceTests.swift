import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of larderd under a service manager, which `ServiceStandIn` simulates.
@Suite struct ServiceTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory(inMemory: true) }

    // MARK: Notifications of the manager

    @Test(arguments: [false, true]) func theServiceManagerIsNotifiedOfTheDaemonsStates(_ isAbstract: Bool) throws {
        let file = place.path + "/larderd.conf"
        try Files.write(file, Array("memory = 5M\n".utf8))
        let manager = try ServiceStandIn(in: place, isAbstract: isAbstract)
        let daemon = try manager.start(["--config", file])
        #expect(try SocketClient(manager.socketPath).call("SET k v") == "+OK\r\n")
        daemon.process.send(signal: SIGHUP)
        let reloading = try manager.notified("RELOADING=1")
        let field = reloading.split(separator: "\n").first { $0.hasPrefix("MONOTONIC_USEC=") }
        let time = try #require(field.flatMap { Int64($0.dropFirst("MONOTONIC_USEC=".count)) })
        #expect(time <= MonotonicClock.nanoseconds() / 1000)
        _ = try manager.notified("READY=1")
        daemon.process.send(signal: SIGTERM)
        #expect(try manager.notified("STOPPING=1").contains("\nSTATUS=stopping: SIGTERM"))
        #expect(try manager.notified("STATUS=writing the last checkpoint") == "STATUS=writing the last checkpoint")
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(daemon.process.errors.contains("was passed by the service manager, which keeps it"))
    }

    @Test func theServiceManagerIsNotifiedOfTheReasonOfAFailure() throws {
        let manager = try ServiceStandIn(in: place)
        let variables = ServiceStandIn.environment(["NOTIFY_SOCKET=\(manager.notifyName)"])
        for (options, reason) in [
            (["--threads", "99"], "--threads 99: must be a number from 1 to 64"),
            (["--dir", "/dev/null/x"], "open larder: "),
        ] {
            let child = try ChildProcess(
                variables[0], Array(variables.dropFirst()) + [try DaemonProcess.program()] + options)
            #expect(try child.waitForExit() != .exited(0))
            while try !manager.notified("STATUS=").hasPrefix("STATUS=\(reason)") { nap() }
        }
    }

    /// A watchdog message is sent twice in each interval that the manager sets. Here, the interval is short.
    @Test func watchdogMessagesAreSentInTime() throws {
        let manager = try ServiceStandIn(in: place)
        let faults = try FaultControl(in: place)
        let daemon = try manager.start(
            ["--threads", "3"], variables: ["WATCHDOG_USEC=90000", "WATCHDOG_PID=$$"], faults: faults)
        for _ in 0..<3 { _ = try manager.notified("WATCHDOG=1") }
        // Messages are also sent during the shutdown, however long it takes.
        #expect(try SocketClient(manager.socketPath).call("SET k v") == "+OK\r\n")
        faults.arm(FaultControl.Rule(.sync, .pause))
        daemon.process.send(signal: SIGTERM)
        _ = try manager.notified("STATUS=writing the last checkpoint")
        for _ in 0..<3 {
            _ = try manager.notified("EXTEND_TIMEOUT_USEC=30000000")
            _ = try manager.notified("WATCHDOG=1")
        }
        #expect(!daemon.process.hasEnded())
        faults.disarm()
        #expect(try daemon.process.waitForExit() == .exited(0))
    }

    /// A process sends no watchdog messages if they are disabled, or meant for another process.
    @Test(
        "no watchdog messages are sent if they are not meant for this process",
        arguments: ["WATCHDOG_PID=1", "WATCHDOG_USEC=0", "WATCHDOG_USEC=soon", "WATCHDOG_USEC=-5"])
    func noMessagesAreSentToAnotherProcessesWatchdog(_ variable: String) throws {
        let manager = try ServiceStandIn(in: place)
        let daemon = try manager.start(variables: ["WATCHDOG_USEC=2000", variable])
        // Wait until the loop's tick has counted commands: the same tick would send a watchdog message.
        let client = try SocketClient(manager.socketPath)
        while try client.call("INFO stats").contains("instantaneous_ops_per_sec:0\r\n") { nap() }
        daemon.process.send(signal: SIGTERM)
        var text = ""
        repeat {
            text = try manager.notified()
            #expect(!text.contains("WATCHDOG="))
        } while !text.contains("STOPPING=1")
        #expect(try daemon.process.waitForExit() == .exited(0))
    }

    @Test(arguments: [
        "", "/no/such/socket", "@nobody-listens-here", "@", "relative", "vsock:2:1234",
        "/" + String(repeating: "x", count: 300),
    ])
    func theDaemonWorksWithoutTheServiceManagersSocket(_ name: String) throws {
        let daemon = try DaemonProcess(
            in: place, wrapper: ServiceStandIn.environment(["NOTIFY_SOCKET='\(name)'", "WATCHDOG_USEC=1"]))
        let client = try daemon.connect()
        for _ in 0..<100 { #expect(try client.call("PING") == "+PONG\r\n") }
        #expect(try daemon.stop() == .exited(0))
    }

    /// The queue of this service manager is always full.
    @Test func anUnresponsiveServiceManagerDoesNotBlockTheDaemon() throws {
        let manager = try ServiceStandIn(in: place)
        let filling = UnixSocket.makeDatagram()
        defer { close(filling) }
        while UnixSocket.sendDatagram(filling, [UInt8](repeating: 0x78, count: 100), to: manager.notifyName) == 0 {}
        let variables = ["NOTIFY_SOCKET=\(manager.notifyName)", "WATCHDOG_USEC=1000"]
        let daemon = try DaemonProcess(in: place, wrapper: ServiceStandIn.environment(variables))
        let client = try daemon.connect()
        for index in 0..<200 { #expect(try client.call("SET k\(index) v") == "+OK\r\n") }
        // Important states are reported as soon as the queue has space again.
        _ = try manager.notified("READY=1")
        #expect(try daemon.stop() == .exited(0))
    }

    // MARK: The socket that is passed

    @Test func theServiceManagersSocketIsNotRemoved() throws {
        let manager = try ServiceStandIn(in: place)
        chmod(manager.socketPath, 0o640)
        let daemon = try manager.start()
        let client = try SocketClient(manager.socketPath)
        #expect(try client.call("INFO server").contains("\r\nunixsocket:\(manager.socketPath)\r\n"))
        #expect(!FileSystem.exists(daemon.socketPath), "the socket of --socket is not created")
        // Another process finds the daemon's socket in the larder's LOCK.
        let (end, output, _) = try DaemonProcess.run(["--purge", "--dir", daemon.larder])
        #expect(end == .exited(0) && output.contains("nothing to purge") || output.contains("purged"))
        #expect(try daemon.stop() == .exited(0))
        var status = stat()
        #expect(stat(manager.socketPath, &status) == 0 && status.st_mode & 0o777 == 0o640)
        // A client that connects now waits for the next daemon.
        let waiting = try SocketClient(manager.socketPath)
        try waiting.send(encodeRequest("PING"))
        let next = try manager.start()
        #expect(String(decoding: try waiting.receive(), as: UTF8.self) == "+PONG\r\n")
        #expect(try next.stop() == .exited(0))
    }

    /// Wrong claims of the environment about descriptor 3, and wrong kinds of descriptors.
    enum Lie: String, CaseIterable {
        case nothing, file, pipe, datagrams, connection, network, twoSockets, noNumber, negative, huge

        var count: String {
            switch self {
            case .twoSockets: "2"
            case .noNumber: "many"
            case .negative: "-1"
            case .huge: "99999999999999999999"
            default: "1"
            }
        }

        var reason: String {
            switch self {
            case .nothing: "the descriptor 3 of LISTEN_FDS is not open"
            case .file, .pipe, .network: "the descriptor 3 of LISTEN_FDS is not a Unix-domain socket"
            case .datagrams: "is not a stream socket: use ListenStream="
            case .connection: "is a connection, not a listening socket: use Accept=no"
            case .twoSockets, .noNumber, .negative, .huge: "larderd accepts exactly one socket"
            }
        }

        /// The caller must close it.
        func descriptor(_ path: String) -> Int32? {
            switch self {
            case .nothing: return nil
            case .file: return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            case .pipe:
                mkfifo(path, 0o600)
                return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            case .datagrams: return UnixSocket.makeDatagram()
            case .network: return socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            case .connection, .twoSockets, .noNumber, .negative, .huge: return UnixSocket.make()
            }
        }
    }

    @Test(arguments: Lie.allCases) func passedDescriptorsMustBeListeningSockets(_ lie: Lie) throws {
        let descriptor = lie.descriptor(place.path + "/passed")
        defer { if let descriptor { close(descriptor) } }
        let wrapper = ServiceStandIn.environment(["LISTEN_FDS=\(lie.count)", "LISTEN_PID=$$"])
        let options = ["--dir", place.path + "/larder", "--socket", place.path + "/socket"]
        let command = Array(wrapper.dropFirst()) + [try DaemonProcess.program()] + options
        let child = try ChildProcess(wrapper[0], command, passing: descriptor)
        #expect(try child.waitForExit() == .exited(1))
        #expect(child.errors.contains(lie.reason), "\(child.errors)")
        #expect(!FileSystem.exists(place.path + "/larder/0"))
    }

    /// Variables for an ancestor process are not for this process.
    @Test(arguments: [
        ["LISTEN_FDS=1", "LISTEN_PID=1"], ["LISTEN_FDS=1"], ["LISTEN_PID=$$"], ["LISTEN_FDS=0", "LISTEN_PID=$$"],
    ])
    func socketsPassedToAnotherProcessAreIgnored(_ variables: [String]) throws {
        let daemon = try DaemonProcess(in: place, wrapper: ServiceStandIn.environment(variables))
        #expect(try daemon.connect().call("PING") == "+PONG\r\n")
        #expect(try daemon.stop() == .exited(0))
    }

    /// No connection is refused, every acknowledged write is stored, and clients that connect during a restart wait.
    @Test func aRestartUnderLoadRefusesNoClientAndLosesNothing() throws {
        let manager = try ServiceStandIn(in: place)
        let path = manager.socketPath
        let isOver = Guarded(false)
        let refused = Recorder<String>()
        let acknowledged = Recorder<String>()
        let writers = (0..<6).map { writer in
            WorkThread(name: "writer-\(writer)") {
                var next = 0
                while !isOver.value {
                    // Open a new connection after some writes: a daemon that stops closes the old one.
                    guard let client = try? SocketClient(path) else { return refused.add("writer \(writer)") }
                    for _ in 0..<20 {
                        let key = "w\(writer)-\(next)"
                        next += 1
                        guard let reply = try? client.call("SET \(key) v") else { break }
                        if reply == "+OK\r\n" { acknowledged.add(key) }
                    }
                }
            }
        }
        for round in 0..<5 {
            let daemon = try manager.start(["--threads", round % 2 == 0 ? "1" : "3"])
            let before = acknowledged.all.count
            while acknowledged.all.count < before + 500 { sched_yield() }
            #expect(try daemon.stop() == .exited(0))
            // While the daemon is not running, clients can connect.
            let waiting = try SocketClient(path)
            try waiting.send(encodeRequest("SET between-\(round) v"))
            if round == 4 {
                let last = try manager.start()
                #expect(String(decoding: try waiting.receive(), as: UTF8.self) == "+OK\r\n")
                isOver.value = true
                for writer in writers { writer.join() }
                try expectAll(acknowledged.all, path)
                #expect(try last.stop() == .exited(0))
            }
        }
        #expect(refused.all == [])
    }

    private func expectAll(_ keys: [String], _ path: String) throws {
        let client = try SocketClient(path)
        #expect(keys.count >= 2500)
        for start in stride(from: 0, to: keys.count, by: 500) {
            let some = Array(keys[start..<min(start + 500, keys.count)])
            #expect(try client.call(["EXISTS"] + some) == Array(":\(some.count)\r\n".utf8))
        }
    }
}
