import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that the proxy for origin tests has the requested effects on connections, and no others.
@Suite struct FaultProxyTests {
    /// Two servers behind a proxy, which echo every line.
    private final class Echo {
        let listeners: [CInt]
        let proxy: FaultProxy

        init() throws {
            let listening = try (0..<2).map { _ in try #require(LoopbackPort.listen()) }
            listeners = listening.map(\.descriptor)
            proxy = try FaultProxy(to: listening.map(\.port))
        }

        deinit {
            proxy.stop()
            for descriptor in listeners { close(descriptor) }
        }

        /// Connects a client, and returns it with the server's end of its connection.
        func connect(_ server: Int = 0) throws -> (client: SocketClient, server: SocketClient) {
            let client = try SocketClient(port: proxy.ports[server])
            return (client, SocketClient(descriptor: accept(listeners[server], nil, nil)))
        }
    }

    /// Waits until the proxy has received everything sent so far: sends later bytes, which the proxy then forwards.
    private static func settle(_ echo: Echo) throws {
        for _ in 0..<3 {
            let other = try echo.connect(1)
            try other.client.send(Array("+x\r\n".utf8))
            #expect(try other.server.receive() == Array("+x\r\n".utf8))
        }
    }

    private static let line = Array("+line\r\n".utf8)

    /// Whether something can be read now.
    private static func hasInput(_ client: SocketClient) -> Bool {
        var entry = pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    @Test func theProxyForwardsBytesInBothDirections() throws {
        let echo = try Echo()
        let (client, server) = try echo.connect()
        try client.send(Self.line)
        #expect(try server.receive() == Self.line)
        let large = encodeRequest([[UInt8](repeating: 7, count: 10_000_000)])
        // Send more than the socket buffers hold, so that the sender waits for its receiver.
        let sending = WorkThread(name: "test-send") { [descriptor = server.descriptor] in
            try? SocketClient(descriptor: dup(descriptor)).send(large)
        }
        #expect(try client.receive() == large)
        sending.join()
        client.close()
        #expect(try server.receiveToEnd() == [])
    }

    @Test func bytesOfAFrozenConnectionArriveLater() throws {
        let echo = try Echo()
        let (client, server) = try echo.connect()
        echo.proxy.set(.freeze([.toClient]), on: 0)
        try client.send(Self.line)
        #expect(try server.receive() == Self.line)
        try server.send(Self.line)
        try Self.settle(echo)
        #expect(!Self.hasInput(client))
        echo.proxy.set(.none, on: 0)
        #expect(try client.receive() == Self.line)
    }

    @Test func bytesSentIntoABlackHoleNeverArrive() throws {
        let echo = try Echo()
        let (client, server) = try echo.connect()
        echo.proxy.set(.blackHole([.toServer]), on: 0)
        try client.send(Self.line)
        try Self.settle(echo)
        echo.proxy.set(.none, on: 0)
        // No byte is delivered after a lost one. The other direction continues.
        try client.send(Self.line)
        try server.send(Self.line)
        #expect(try client.receive() == Self.line)
        try Self.settle(echo)
        #expect(!Self.hasInput(server))
        // A new connection has lost nothing.
        let other = try echo.connect()
        try other.client.send(Self.line)
        #expect(try other.server.receive() == Self.line)
    }

    @Test func aCloseIsNotForwardedThroughABlackHole() throws {
        let echo = try Echo()
        let (client, server) = try echo.connect()
        echo.proxy.set(.blackHole(), on: 0)
        server.close()
        try Self.settle(echo)
        #expect(!Self.hasInput(client))
        echo.proxy.cut(0)
        #expect(try client.receiveToEnd() == [])
    }

    @Test func cutClosesTheConnectionsOfOneServer() throws {
        let echo = try Echo()
        let pairs = [try echo.connect(), try echo.connect()]
        let other = try echo.connect(1)
        #expect(echo.proxy.connectionCount(0) == 2)
        echo.proxy.cut(0)
        #expect(echo.proxy.connectionCount(0) == 0)
        for (client, server) in pairs {
            #expect(try client.receiveToEnd() == [])
            #expect(try server.receiveToEnd() == [])
        }
        try other.client.send(Self.line)
        #expect(try other.server.receive() == Self.line)
    }

    @Test func aHalfCloseIsForwardedInOneDirection() throws {
        let echo = try Echo()
        let (client, server) = try echo.connect()
        echo.proxy.halfClose(0, .toClient)
        #expect(try client.receiveToEnd() == [])
        try client.send(Self.line)
        #expect(try server.receive() == Self.line)
    }

    @Test func theProxyCanRefuseNewConnections() throws {
        let echo = try Echo()
        let old = try echo.connect()
        echo.proxy.set(.refusal, on: 0)
        // The reset may arrive before the connection is complete.
        if let refused = try? SocketClient(port: echo.proxy.ports[0]) { #expect(try refused.receiveToEnd() == []) }
        try old.client.send(Self.line)
        #expect(try old.server.receive() == Self.line)
    }

    @Test func theProxyCanReorderConnections() throws {
        let echo = try Echo()
        let (first, second) = (try echo.connect(), try echo.connect())
        // The second connection has the delay, which is longer than any test.
        echo.proxy.set(.reorder(byUpTo: 3_600_000), on: 0)
        try second.server.send(Self.line)
        try first.server.send(Self.line)
        #expect(try first.client.receive() == Self.line)
        #expect(!Self.hasInput(second.client))
    }

    @Test func delaysKeepTheOrderOfAConnection() throws {
        let echo = try Echo()
        let (client, server) = try echo.connect()
        echo.proxy.set(.delay(1, jitter: 20), on: 0)
        let start = MonotonicClock.milliseconds()
        for number in 0..<50 {
            try client.send(Array(":\(number)\r\n".utf8))
            // Wait, so that the proxy reads the numbers one by one.
            try Self.settle(echo)
        }
        for number in 0..<50 { #expect(try server.receive() == Array(":\(number)\r\n".utf8)) }
        #expect(MonotonicClock.milliseconds() > start)
    }

    @Test(.enabled(if: RedisCluster.isAvailable, "neither redis-server nor valkey-server is installed"))
    func clientsOfAClusterConnectThroughTheProxy() throws {
        let cluster = try RedisCluster(replicas: 3)
        let proxy = try FaultProxy(to: cluster.servers.map(\.port))
        defer { proxy.stop() }
        try cluster.announce(ports: proxy.ports)
        let key = try cluster.key(on: 1)
        let first = try SocketClient(port: proxy.ports[0])
        let moved = try first.call("GET \(key)")
        #expect(moved == "-MOVED \(ClusterSlot.of(key)) 127.0.0.1:\(proxy.ports[1])\r\n")
        let second = try SocketClient(port: proxy.ports[1])
        #expect(try second.call("SET \(key) v") == "+OK\r\n")
        // Faults affect only the traffic between clients and nodes: replication continues, and no failover happens.
        for node in cluster.nodes { proxy.set(.blackHole(), on: node) }
        #expect(try cluster.call(1, "SET \(key) w") == "+OK\r\n")
        let replica = try #require(try cluster.replicas(of: 1).first)
        let waiting = try cluster.servers[1].connect()
        #expect(try waiting.call("SET \(key) x") == "+OK\r\n")
        #expect(try waiting.call("WAIT 1 0") == ":1\r\n")
        #expect(try cluster.text(replica, ["INFO", "replication"]).contains("master_link_status:up"))
        #expect(try cluster.primary(ofKey: key) == 1)
    }
}
