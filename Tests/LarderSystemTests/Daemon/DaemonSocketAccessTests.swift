import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the permissions of the socket, and of its removal by another program.
@Suite struct DaemonSocketAccessTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory(inMemory: true) }

    private func status(_ path: String) throws -> stat {
        var status = stat()
        try #require(lstat(path, &status) == 0, "\(path)")
        return status
    }

    private func mode(_ path: String) throws -> String { String(try status(path).st_mode & 0o777, radix: 8) }

    /// Starts a daemon on `socket`, with a umask of 077.
    private func start(_ socket: String, _ options: [String] = []) throws -> ChildProcess {
        let command = [try DaemonProcess.program(), "--dir", place.path + "/larder", "--socket", socket] + options
        let child = try ChildProcess("/bin/sh", ["-c", "umask 077; exec \"$0\" \"$@\""] + command)
        _ = try child.waitForErrorLine(containing: " ready: ")
        return child
    }

    private func end(_ child: ChildProcess) throws {
        child.send(signal: SIGTERM)
        #expect(try child.waitForExit() == .exited(0))
    }

    // MARK: Rights

    @Test("--socket-mode sets the mode of the socket and its new directory")
    func theModeOfTheSocketAndOfItsDirectory() throws {
        for (option, expected, directory) in [
            ("600", "600", "700"), ("660", "660", "750"), ("666", "666", "755"), ("0640", "640", "750"),
        ] {
            let socket = place.path + "/run-\(option)/larder.sock"
            let child = try start(socket, ["--socket-mode", option])
            #expect(try mode(socket) == expected)
            #expect(try mode(place.path + "/run-\(option)") == directory)
            let client = try SocketClient(socket)
            for name in ["socket-mode", "unixsocketperm"] {
                #expect(try client.call("CONFIG GET \(name)").hasSuffix("\r\n\(expected)\r\n"))
            }
            try end(child)
        }
    }

    @Test(.enabled(if: geteuid() == 0)) func theGroupOfTheSocketCanConnect() throws {
        chmod(place.path, 0o755)
        let socket = place.path + "/run/larder.sock"
        let child = try start(socket, ["--socket-group", "daemon"])
        let group = try #require(Group.number(of: "daemon"))
        #expect(try mode(socket) == "660" && status(socket).st_gid == group)
        #expect(try mode(place.path + "/run") == "750" && status(place.path + "/run").st_gid == group)
        let tool = place.path + "/larderctl"
        #expect(try ChildProcess.run("cp", [try DaemonProcess.program("larderctl"), tool]).end == .exited(0))
        chmod(tool, 0o755)
        func ping(asGroup group: gid_t) throws -> ProcessEnd {
            try ChildProcess.run(
                "setpriv",
                ["--reuid=65534", "--regid=\(group)", "--clear-groups", tool, "--socket", socket, "ping"]
            ).end
        }
        #expect(try ping(asGroup: group) == .exited(0))
        #expect(try ping(asGroup: 65_534) != .exited(0))
        try end(child)
        // The group can be given as a number too.
        let other = try start(place.path + "/run2/larder.sock", ["--socket-group", "\(group)", "--socket-mode", "600"])
        #expect(try mode(place.path + "/run2/larder.sock") == "600")
        #expect(try status(place.path + "/run2/larder.sock").st_gid == group)
        try end(other)
    }

    /// Regression test: nginx's worker got "permission denied", and the reason was not reported.
    @Test func aSocketDirectoryThatExcludesTheGroupIsReported() throws {
        mkdir(place.path + "/closed", 0o700)
        let child = try start(place.path + "/closed/socket", ["--socket-mode", "660"])
        #expect(
            child.errors.contains("the socket's group may use it, but cannot enter its directory \(place.path)/closed")
        )
        try end(child)
        let open = try start(place.path + "/closed/socket", ["--socket-mode", "606"])
        #expect(open.errors.contains("users may use the socket, but cannot enter its directory \(place.path)/closed"))
        try end(open)
        chmod(place.path + "/closed", 0o755)
        let fine = try start(place.path + "/closed/socket", ["--socket-mode", "666"])
        #expect(!fine.errors.contains(" warning "), "\(fine.errors)")
        try end(fine)
    }

    @Test(
        "invalid socket permissions are explained",
        arguments: [
            (["--socket-mode", "0"], "--socket-mode 0: must be an octal number such as 660, from 600 to 777"),
            (["--socket-mode", "400"], "--socket-mode 400: must be an octal number such as 660, from 600 to 777"),
            (["--socket-mode", "1777"], "--socket-mode 1777: must be an octal number such as 660, from 600 to 777"),
            (["--socket-mode", "rw"], "--socket-mode rw: must be an octal number such as 660, from 600 to 777"),
            (["--socket-mode", "+660"], "--socket-mode +660: must be an octal number such as 660, from 600 to 777"),
            (["--socket-group", "no such group"], "--socket-group no such group: there is no such group"),
            (["--socket-group", "-1"], "--socket-group -1: there is no such group"),
        ])
    func wrongRights(_ arguments: [String], _ message: String) throws {
        let (end, _, errors) = try DaemonProcess.run(arguments)
        #expect(end == .exited(2) && errors == "larderd: \(message)\nTry: larderd --help\n")
    }

    @Test func filesThatOtherUsersCanAccessAreReported() throws {
        let secret = place.path + "/secret"
        try Files.write(secret, Array("melon-1\n".utf8))
        mkdir(place.path + "/shared", 0o777)
        chmod(place.path + "/shared", 0o777)
        for (mode, text) in [
            (0o600, nil), (0o640, nil), (0o644, "all users can read the password file \(secret): chmod o-r"),
            (0o666, "all users can write to the password file \(secret): chmod o-rw"),
        ] as [(mode_t, String?)] {
            chmod(secret, mode)
            let child = try start(place.path + "/own/socket", ["--password-file", secret])
            #expect(child.errors.contains("password file") == (text != nil), "\(child.errors)")
            if let text { #expect(child.errors.contains(text)) }
            try end(child)
        }
        if geteuid() == 0 {
            chmod(secret, 0o600)
            chown(secret, 65_534, gid_t.max)
            let child = try start(place.path + "/own/socket", ["--password-file", secret])
            #expect(
                child.errors.contains(
                    "the password file \(secret) belongs to another user (uid 65534), who can change it"))
            try end(child)
        }
        chmod(place.path + "/larder", 0o770)
        let child = try start(place.path + "/shared/socket")
        #expect(child.errors.contains("warning other users can write to the larder's directory \(place.path)/larder"))
        #expect(child.errors.contains("all users can write to the socket's directory \(place.path)/shared"))
        try end(child)
        chmod(place.path + "/shared", 0o1777)
        let sticky = try start(place.path + "/shared/socket")
        #expect(!sticky.errors.contains("all users can write"))
        try end(sticky)
    }

    // MARK: Presence

    @Test func aRemovedSocketIsCreatedAgain() throws {
        let socket = place.path + "/run/larder.sock"
        let child = try start(socket, ["--socket-mode", "660"])
        let known = try SocketClient(socket)
        for removal in [[socket], [socket, socket + ".lock"], [place.path + "/run"]] {
            let before = try status(socket)
            for path in removal { try Files.remove(path) }
            _ = try child.waitForErrorLine(containing: "the socket \(socket) was removed; it was created again")
            #expect(try status(socket).st_ino != before.st_ino || removal.count == 1)
            #expect(try mode(socket) == "660")
            #expect(try SocketClient(socket).call("PING") == "+PONG\r\n")
            #expect(try known.call("PING") == "+PONG\r\n", "connections stay")
            // Other daemons still cannot use the socket.
            let (end, _, errors) = try DaemonProcess.run(["--dir", place.path + "/other", "--socket", socket])
            #expect(end == .exited(3) && errors.contains("another larderd is using the socket"))
        }
        try end(child)
        #expect(!FileSystem.exists(socket) && !FileSystem.exists(socket + ".lock"))
    }

    /// Files that do not belong to the daemon are neither replaced nor removed.
    @Test func aFileInPlaceOfTheSocketIsNotRemoved() throws {
        let socket = place.path + "/run/larder.sock"
        let child = try start(socket)
        try Files.remove(socket)
        try Files.write(socket, Array("mine".utf8))
        _ = try child.waitForErrorLine(containing: "another file has replaced the socket \(socket)")
        try Files.remove(socket)
        _ = try child.waitForErrorLine(containing: "it was created again")
        // If the socket cannot be created, this is reported once, and retried until it succeeds.
        try Files.remove(place.path + "/run")
        try Files.write(place.path + "/run", Array("mine".utf8))
        _ = try child.waitForErrorLine(
            containing: "the socket \(socket) was removed and cannot be created again:")
        try Files.remove(place.path + "/run")
        _ = try child.waitForErrorLine(containing: "it was created again")
        #expect(try SocketClient(socket).call("PING") == "+PONG\r\n")
        #expect(child.errors.split(separator: "\n").count { $0.contains("cannot be created again") } == 1)
        for path in [socket, socket + ".lock"] {
            try Files.remove(path)
            try Files.write(path, Array("mine".utf8))
        }
        try end(child)
        for path in [socket, socket + ".lock"] { #expect(try Files.read(path) == Array("mine".utf8)) }
    }

    /// The daemon does not replace the service manager's socket.
    @Test func aRemovedServiceManagerSocketIsReported() throws {
        let manager = try ServiceStandIn(in: place)
        let daemon = try manager.start()
        try Files.remove(manager.socketPath)
        _ = try daemon.process.waitForErrorLine(
            containing: "the socket \(manager.socketPath) of the service")
        #expect(try daemon.stop() == .exited(0))
        #expect(!FileSystem.exists(manager.socketPath))
    }
}
