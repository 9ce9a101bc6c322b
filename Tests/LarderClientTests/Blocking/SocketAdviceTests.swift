import LarderClient
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that errors about a socket end with the command that helps.
@Suite(.timeLimit(.minutes(10))) struct SocketAdviceTests {
    private static func message(_ path: String) -> String {
        do {
            _ = try BlockingLarderClient(socketPath: path)
            return "connected"
        } catch {
            return error.message
        }
    }

    @Test func aMissingDaemonIsExplained() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let path = place.path + "/socket"
        #expect(Self.message(path) == "no daemon answers at \(path): start one with: larderd --socket \(path)")
        #expect(
            Self.message(place.path)
                == "\(place.path) is not a socket: no daemon can answer there; start one at another path with: "
                + "larderd --socket PATH")
        let spaced = place.path + "/a b's"
        #expect(Self.message(spaced).hasSuffix("larderd --socket '\(place.path)/a b'\\''s'"))
        #expect(Self.message("/" + String(repeating: "x", count: 200)).contains("the socket's path"))
    }

    #if os(Linux)
        /// Runs a copy of larderctl as another user, with the group 4322 in addition to its own.
        private static func ping(_ socket: String, in place: String) throws -> (end: ProcessEnd, errors: String) {
            let copy = place + "/larderctl"
            if !FileSystem.exists(copy) {
                #expect(
                    try ChildProcess.run("cp", [try DaemonProcess.program("larderctl"), copy]).end == .exited(0))
            }
            let result = try ChildProcess.run(
                "setpriv", ["--reuid=4321", "--regid=4321", "--clear-groups", copy, "--socket", socket, "ping"])
            return (result.end, result.errors)
        }

        @Test(.enabled(if: geteuid() == 0))
        func missingPermissionsAreExplained() throws {
            let (place, tools) = (try TemporaryDirectory(inMemory: true), try TemporaryDirectory(inMemory: true))
            for directory in [place, tools] { chmod(directory.path, 0o755) }
            let daemon = try DaemonProcess(["--socket-group", "4322", "--socket-mode", "660"], in: place)
            let socket = daemon.socketPath
            let group = try Self.ping(socket, in: tools.path)
            #expect(group.end == .exited(3))
            #expect(
                group.errors
                    == "larderctl: the user 4321 may not use the socket \(socket) (owner root, group 4322, mode 660): "
                    + "run the program with this group, for example with: docker run --group-add 4322, or: setpriv --groups 4322\n"
            )
            chown(socket, 0, Group.number(of: "mail") ?? 8)
            #expect(
                try Self.ping(socket, in: tools.path).errors.hasSuffix(
                    "join the group, and log in again: sudo usermod -aG mail 4321\n"))
            chmod(socket, 0o600)
            #expect(
                try Self.ping(socket, in: tools.path).errors.hasSuffix(
                    "mode 600): restart the daemon with a group that may use it: larderd --socket-group 4321\n"))
            chmod(place.path, 0o700)
            let closed = try Self.ping(socket, in: tools.path)
            #expect(closed.end == .exited(3))
            #expect(
                closed.errors.hasSuffix(
                    "may not enter the directory \(place.path) (owner root, group root, mode 700): "
                        + "let a group enter it: sudo chgrp 4321 \(place.path) && sudo chmod g+x \(place.path)\n"))
            withExtendedLifetime(daemon) {}
        }
    #endif
}
