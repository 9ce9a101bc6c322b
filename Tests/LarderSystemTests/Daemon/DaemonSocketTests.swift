import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct DaemonSocketTests {
    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    private func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private func makeFile(_ path: String, _ text: String = "mine") {
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        _ = write(file, text, text.utf8.count)
        close(file)
    }

    @Test("files have private modes, and the socket is removed at the end") func modesAndTidyingUp() throws {
        let place = try TemporaryDirectory()
        let socket = place.path + "/run/deep/larder.sock"
        let larder = place.path + "/cache/deep/larder"
        // Set the umask in a shell, because the umask of this process would affect other tests too.
        let daemon = try ChildProcess(
            "/bin/sh",
            ["-c", "umask 0; exec \"$0\" \"$@\"", try DaemonProcess.program(), "--dir", larder, "--socket", socket])
        defer { daemon.killNow() }
        _ = try daemon.waitForErrorLine(containing: " ready: ")
        #expect(mode(socket) == 0o600)
        for directory in ["/run", "/run/deep", "/cache", "/cache/deep", "/cache/deep/larder"] {
            #expect(mode(place.path + directory) == 0o700, "\(directory)")
        }
        #expect(try SocketClient(socket).call("SET k v") == "+OK\r\n")
        #expect(mode(larder + "/0") == 0o700)
        daemon.send(signal: SIGTERM)
        #expect(try daemon.waitForExit() == .exited(0))
        #expect(!exists(socket) && !exists(socket + ".lock"))
    }

    @Test("a socket path that is too long is an error") func aPathThatIsTooLong() throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/" + String(repeating: "s", count: 107 - place.path.utf8.count)
        let arguments = ["--dir", place.path + "/larder", "--socket", path]
        let (end, _, errors) = try DaemonProcess.run(arguments)
        #expect(end == .exited(2))
        #expect(
            errors.contains("error the socket's path is 108 bytes long, but the system allows 107: choose a shorter"))
        #expect(!exists(place.path + "/larder"), "a start that fails leaves no larder")
        let fits = try ChildProcess(
            try DaemonProcess.program(), ["--dir", place.path + "/larder", "--socket", String(path.dropLast())])
        defer { fits.killNow() }
        _ = try fits.waitForErrorLine(containing: " ready: ")
        #expect(try SocketClient(String(path.dropLast())).call("PING") == "+PONG\r\n")
    }

    @Test func theSocketOfARunningDaemonIsNotTaken() throws {
        let daemon = try DaemonProcess()
        let other = try TemporaryDirectory()
        let (end, _, errors) = try DaemonProcess.run(
            ["--dir", other.path + "/larder", "--socket", daemon.socketPath])
        #expect(end == .exited(3))
        #expect(errors.contains("error another larderd is using the socket \(daemon.socketPath): stop it"))
        #expect(!exists(other.path + "/larder"))
        #expect(try daemon.connect().call("PING") == "+PONG\r\n")
    }

    /// A socket on which another program answers is left alone.
    @Test func theSocketOfAnotherProgramIsNotTaken() throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/socket"
        let redis = try ChildProcess(
            "redis-server", ["--port", "0", "--unixsocket", path, "--save", "", "--dir", place.path])
        defer { redis.killNow() }
        while (try? SocketClient(path)) == nil { nap() }
        let (end, _, errors) = try DaemonProcess.run(["--dir", place.path + "/larder", "--socket", path])
        #expect(end == .exited(3))
        #expect(errors.contains("error a running process uses the socket \(path): stop it"))
        #expect(try SocketClient(path).call("PING") == "+PONG\r\n")
    }

    @Test func theSocketOfAKilledDaemonIsReplaced() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        daemon.kill()
        #expect(exists(daemon.socketPath))
        let again = try DaemonProcess(in: place)
        #expect(try again.connect().call("PING") == "+PONG\r\n")
        #expect(try again.stop() == .exited(0))
        #expect(!exists(again.socketPath))
    }

    @Test func aFileAtTheSocketPathIsNotReplaced() throws {
        let place = try TemporaryDirectory()
        for path in ["/file", "/directory", "/link"] {
            let path = place.path + path
            if path.hasSuffix("file") { makeFile(path) }
            if path.hasSuffix("directory") { mkdir(path, 0o700) }
            if path.hasSuffix("link") { symlink(place.path + "/file", path) }
            let (end, _, errors) = try DaemonProcess.run(["--dir", place.path + "/larder", "--socket", path])
            #expect(end == .exited(1))
            #expect(
                errors.contains(
                    "error \(path) exists and is not a socket: choose another one with: larderd --socket PATH"))
            #expect(exists(path))
        }
    }

    @Test func atTheEndTheDaemonRemovesOnlyItsOwnSocket() throws {
        let daemon = try DaemonProcess()
        unlink(daemon.socketPath)
        makeFile(daemon.socketPath)
        #expect(try daemon.stop() == .exited(0))
        #expect(exists(daemon.socketPath))
    }

    @Test("a file in place of a directory is an error") func aDirectoryThatCannotBeWritten() throws {
        let place = try TemporaryDirectory()
        makeFile(place.path + "/file")
        let (end, _, errors) = try DaemonProcess.run([
            "--dir", place.path + "/larder", "--socket", place.path + "/file/socket",
        ])
        #expect(end == .exited(1))
        #expect(errors.contains("error cannot create the socket's directory: mkdir \(place.path)/file: File exists"))
        let (end2, _, errors2) = try DaemonProcess.run([
            "--dir", place.path + "/file", "--socket", place.path + "/socket",
        ])
        #expect(end2 == .exited(1))
        #expect(errors2.contains("error open larder: mkdir \(place.path)/file: File exists"))
        let (end3, _, _) = try DaemonProcess.run([
            "--dir", place.path + "/file/larder", "--socket", place.path + "/socket",
        ])
        #expect(end3 == .exited(1) && !exists(place.path + "/socket") && !exists(place.path + "/larder"))
    }

    /// Runs as another user, because permissions do not restrict root.
    @Test("a directory without write permission is an error", .enabled(if: geteuid() == 0))
    func aDirectoryWithoutWritePermission() throws {
        let place = try TemporaryDirectory()
        chmod(place.path, 0o755)
        mkdir(place.path + "/closed", 0o755)
        mkdir(place.path + "/theirs", 0o777)
        chmod(place.path + "/theirs", 0o777)
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        let program = place.path + "/larderd"
        // Copy the program, because other users may have no access to the build directory.
        #expect(try ChildProcess.run("cp", [try DaemonProcess.program(), program]).end == .exited(0))
        chmod(program, 0o755)
        func run(_ larder: String, _ socket: String, _ options: [String] = []) throws -> String {
            let (end, _, errors) = try ChildProcess.run(
                "setpriv", user + [program, "--dir", place.path + larder, "--socket", place.path + socket] + options)
            #expect(end == .exited(1))
            return errors
        }
        #expect(
            try run("/closed/larder", "/theirs/socket").contains("mkdir \(place.path)/closed/larder: Permission denied")
        )
        #expect(
            try run("/theirs/larder", "/closed/socket").contains(
                "cannot create \(place.path)/closed/socket.lock: Permission denied"))
        let group = try run("/theirs/new", "/theirs/new/socket", ["--socket-group", "root"])
        #expect(group.contains("cannot change the group (to 0) of the socket") && !exists(place.path + "/theirs/new"))
        mkdir(place.path + "/others", 0o777)
        chmod(place.path + "/others", 0o777)
        chown(place.path + "/others", 12345, 12345)
        #expect(try run("/theirs/larder", "/others/socket").contains("belongs to another user (uid 12345)"))
    }

    /// LOCK contains the absolute path of the socket, for users in other directories.
    @Test("relative paths work, and LOCK has the absolute path") func relativePaths() throws {
        let place = try TemporaryDirectory()
        let daemon = try ChildProcess(
            try DaemonProcess.program(), ["--dir", "larder", "--socket", "socket"], directory: place.path)
        defer { daemon.killNow() }
        _ = try daemon.waitForErrorLine(containing: " ready: ")
        let (end, output, errors) = try DaemonProcess.run(["--purge", "--dir", place.path + "/larder"])
        #expect(end == .exited(0), "\(errors)")
        #expect(output == "the larder has no databases: nothing to purge\n")
    }
}
