import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderClient
@testable import LarderWire

/// Tests of the rules for trusting the peer at a socket's path. Regression test: a process of another user that was the
/// first to listen at the default path in /tmp got the password.
@Suite struct PeerTrustTests {
    private static let own: UInt32 = 1000
    private static let daemon: UInt32 = 200
    private static let stranger: UInt32 = 1001

    /// A file system. Only their owners can write to directories, except /tmp, /var/group and /home/me/open.
    private static let files: [String: PeerTrust.Entry] = [
        "/": .init(owner: 0), "/tmp": .init(owner: 0, isWritableByOthers: true), "/run": .init(owner: 0),
        "/run/larder": .init(owner: daemon), "/run/larder/larder.sock": .init(owner: daemon),
        "/run/given.sock": .init(owner: daemon), "/run/own.sock": .init(owner: own),
        "/tmp/larder-1000": .init(owner: stranger), "/tmp/larder-1000/larder.sock": .init(owner: stranger),
        "/tmp/mine": .init(owner: own), "/tmp/mine/larder.sock": .init(owner: daemon),
        "/var": .init(owner: 0), "/var/run": .init(owner: 0, target: "/run"),
        "/tmp/link": .init(owner: 0, target: "/run"),
        "/var/group": .init(owner: 0, isWritableByOthers: true), "/var/group/larder.sock": .init(owner: daemon),
        "/var/loop": .init(owner: 0, target: "loop"), "/home": .init(owner: 0), "/home/me": .init(owner: own),
        "/home/me/open": .init(owner: own, isWritableByOthers: true), "/home/me/open/x.sock": .init(owner: stranger),
        "/home/other": .init(owner: stranger), "/home/other/x.sock": .init(owner: daemon),
        "/var/up": .init(owner: 0, target: "../run/larder"),
    ]

    private func isTrusted(_ peer: UInt32, _ path: String, trusted: Set<UInt32> = []) -> Bool {
        PeerTrust(trustedUsers: trusted).objection(to: peer, own: Self.own, path: path) { Self.files[$0] } == nil
    }

    @Test("daemons of root, of the own user and of trusted users are trusted at any path")
    func trustedUsersAreTrustedAtAnyPath() {
        for path in ["/tmp/larder-1000/larder.sock", "/run/larder/larder.sock", "/nowhere"] {
            #expect(isTrusted(0, path))
            #expect(isTrusted(Self.own, path))
            #expect(isTrusted(Self.stranger, path, trusted: [7, Self.stranger]))
        }
    }

    @Test(
        "a daemon is trusted in a directory that only root could have given to its user",
        arguments: [
            "/run/larder/larder.sock", "/run/given.sock", "/var/run/larder/larder.sock", "//run/./larder//larder.sock",
            "/var/../run/larder/larder.sock", "/var/up/larder.sock",
        ])
    func theOwnerOfASystemDirectoryIsTrusted(_ path: String) { #expect(isTrusted(Self.daemon, path)) }

    @Test(arguments: [
        // In these places, any user can create a directory or a link.
        (stranger, "/tmp/larder-1000/larder.sock", "other users can write to /tmp"),
        (daemon, "/tmp/link/larder/larder.sock", "other users can write to /tmp"),
        (daemon, "/tmp/mine/larder.sock", "other users can write to /tmp"),
        (daemon, "/var/group/larder.sock", "other users can write to /var/group"),
        (stranger, "/home/me/open/x.sock", "other users can write to /home/me/open"),
        // These locations belong to users other than the peer.
        (stranger, "/run/larder/larder.sock", "/run/larder belongs to user 200"),
        (daemon, "/home/other/x.sock", "/home/other belongs to user 1001"),
        (stranger, "/run/own.sock", "/run/own.sock belongs to user 1000"),
        (stranger, "/run/none.sock", "/run/none.sock cannot be checked"),
        (stranger, "/var/loop/x.sock", "too many symbolic links"), (stranger, "/run", "/run belongs to user 0"),
    ])
    func daemonsOfOtherUsersAreNotTrusted(_ peer: UInt32, _ path: String, _ reason: String) throws {
        let objection = PeerTrust().objection(to: peer, own: Self.own, path: path) { Self.files[$0] }
        let text = try #require(objection)
        #expect(text.contains(reason), "\(text)")
        #expect(text.contains("runs as user \(peer)") && text.contains("--trust-user"))
    }

    #if os(Linux)
        /// The daemon runs as another user. Only root can start such a daemon.
        @Test(.enabled(if: geteuid() == 0))
        func nothingIsSentToAnUntrustedDaemon() async throws {
            let place = try TemporaryDirectory(inMemory: true)
            chmod(place.path, 0o777)
            // Run a copy, because the other user may have no access to the build's products.
            let copy = place.path + "/larderd"
            #expect(try ChildProcess.run("cp", [try DaemonProcess.program(), copy]).end == .exited(0))
            let own = place.path + "/own"
            mkdir(own, 0o755)
            chown(own, 4321, 4321)
            let socket = own + "/socket"
            let child = try ChildProcess(
                "setpriv",
                ["--reuid=4321", "--regid=4321", "--clear-groups", copy, "--dir", own + "/larder", "--socket", socket],
                directory: own)
            _ = try child.waitForErrorLine(containing: " info larderd ")

            func expectRefusal(_ error: LarderClientError?) {
                #expect(error?.code == .untrusted)
                #expect(error?.message.contains("runs as user 4321") ?? false)
            }
            expectRefusal(
                #expect(throws: LarderClientError.self) {
                    _ = try BlockingLarderClient(socketPath: socket, password: "secret")
                })
            expectRefusal(
                await #expect(throws: LarderClientError.self) {
                    _ = try await LarderClient.connect(socketPath: socket, options: .init(password: "secret"))
                })
            let tool = try DaemonProcess.program("larderctl")
            let refused = try ChildProcess.run(tool, ["--socket", socket, "ping"])
            #expect(refused.end == .exited(3))
            #expect(refused.errors.contains("runs as user 4321") && refused.errors.contains("--trust-user"))
            // The refused clients have sent no PING to the daemon.
            let trusting = try BlockingLarderClient(socketPath: socket, trustedUsers: [4321])
            #expect(try trusting.command("INFO", "commandstats").string?.contains("cmdstat_ping") == false)

            let client = try await LarderClient.connect(socketPath: socket, options: .init(trustedUsers: [4321]))
            try await client.ping()
            client.close()
            for user in ["4321", "nobody"] {
                let (end, output, _) = try ChildProcess.run(
                    tool, ["--socket", socket, "--trust-user", user, "ping"])
                #expect(end == (user == "4321" ? .exited(0) : .exited(3)))
                #expect(output == (user == "4321" ? "PONG\n" : ""))
            }
            let unknown = try ChildProcess.run(tool, ["--trust-user", "no such user", "ping"])
            #expect(unknown.end == .exited(2))
            child.killNow()
        }
    #endif
}
