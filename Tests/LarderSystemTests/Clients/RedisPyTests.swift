import LarderTestSupport
import Testing

/// Tests of redis-py, the client that most programs in Python use, with both versions of the protocol.
@Suite struct RedisPyTests {
    @Test("redis-py can use the commands for strings", arguments: LiveServer.allCases, [2, 3])
    func redisPyCanUseStrings(_ server: LiveServer, _ version: Int) throws {
        try run("redis_py_strings.py", server, version)
    }

    @Test(arguments: [2, 3]) func redisPyCanUseJSON(_ version: Int) throws {
        try run("redis_py_json.py", .larderd, version)
    }

    @Test(arguments: LiveServer.allCases, [2, 3])
    func redisPyCanUseTransactions(_ server: LiveServer, _ version: Int) throws {
        try run("redis_py_transactions.py", server, version)
    }

    @Test(arguments: LiveServer.allCases, [2, 3]) func redisPyCanLock(_ server: LiveServer, _ version: Int) throws {
        try run("redis_py_lock.py", server, version)
    }

    /// The scripts of redis-py's lock are loaded at the larder, and run at the origin.
    @Test(arguments: [2, 3]) func redisPyCanLockThroughALarderWithAnOrigin(_ version: Int) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("POLICY never") == "+OK\r\n")
        #expect(try client.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        try ClientProgram.runPython("redis_py_lock.py", [daemon.socketPath, "\(version)", "origin"])
    }

    @Test(arguments: LiveServer.allCases, [2, 3]) func redisPyCanPublishAndSubscribe(
        _ server: LiveServer, _ version: Int
    ) throws {
        try run("redis_py_pubsub.py", server, version)
    }

    @Test(arguments: LiveServer.allCases, [2, 3]) func redisPyReceivesKeyspaceNotifications(
        _ server: LiveServer, _ version: Int
    ) throws {
        try run("redis_py_notifications.py", server, version)
    }

    /// The client-side cache of redis-py requests RESP3.
    @Test(arguments: LiveServer.allCases) func redisPyCanCacheOnTheClient(_ server: LiveServer) throws {
        try run("redis_py_tracking.py", server, 3)
    }

    /// Commands that only larderd has.
    @Test("redis-py can use the commands that only larderd has", arguments: [2, 3], [1, 2]) func ownCommands(
        _ version: Int, _ threads: Int
    ) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        try ClientProgram.runPython("redis_py_larder.py", [daemon.socketPath, "\(version)"])
    }

    private func run(_ script: String, _ server: LiveServer, _ version: Int) throws {
        try server.run { try ClientProgram.runPython(script, [$0, "\(version)"]) }
    }
}
