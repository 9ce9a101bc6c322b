import LarderPlatform

/// A `larderd` process with its own larder and socket. It is killed when its last reference is released.
package final class DaemonProcess {
    package let larder: String
    package let socketPath: String
    package let process: ChildProcess
    /// Keeps the directory until the daemon has ended.
    private let directory: TemporaryDirectory?

    /// Starts a daemon and waits until it serves.
    /// - Parameters:
    ///   - options: in addition to `--dir` and `--socket`.
    ///   - place: the directory for `larder` and `socket`; nil for a new one.
    ///   - wrapper: a command that starts the rest of its command line, such as `["prlimit", "--fsize=1000"]`.
    ///   - faults: the faults to inject into the daemon's calls on the larder's files.
    ///   - passing: the descriptor passed as descriptor 3.
    ///   - ready: the text of the log line to wait for.
    package init(
        _ options: [String] = [], in place: TemporaryDirectory? = nil, wrapper: [String] = [],
        faults: FaultControl? = nil, passing: Int32? = nil, ready: String = " info larderd "
    ) throws {
        let directory = try place ?? TemporaryDirectory(inMemory: true)
        self.directory = directory
        larder = directory.path + "/larder"
        socketPath = directory.path + "/socket"
        // Let `env` set the variables, so that only the daemon loads the library, and not a program in `wrapper`.
        let preload = try faults.map { ["env"] + (try $0.environment()) } ?? []
        // Set a limit, because the default depends on the file system on which the test runs.
        let disk = options.contains("--max-disk") ? [] : ["--max-disk", "none"]
        let command =
            wrapper + preload + [try Self.program()] + ["--dir", larder, "--socket", socketPath]
            + disk + options
        process = try ChildProcess(command[0], Array(command.dropFirst()), passing: passing)
        _ = try process.waitForErrorLine(containing: ready)
    }

    deinit { process.killNow() }

    package func connect() throws -> SocketClient { try SocketClient(socketPath) }

    /// Sends SIGTERM, and waits until the daemon has exited.
    @discardableResult
    package func stop() throws -> ProcessEnd {
        process.send(signal: SIGTERM)
        return try process.waitForExit()
    }

    /// Sends SIGKILL, and waits until the daemon has ended.
    package func kill() { process.killNow() }

    package func send(signal: Int32) { process.send(signal: signal) }

    /// Returns the path of the built `larderd`, or of another program, next to the test program.
    package static func program(_ name: String = "larderd") throws -> String {
        let tests = ownProgram
        guard let slash = tests.lastIndex(of: "/") else {
            throw ChildProcess.Failure(description: "where the tests' program is is not known: \(tests)")
        }
        let path = tests[..<slash] + "/" + name
        guard access(String(path), X_OK) == 0 else {
            throw ChildProcess.Failure(description: "\(path) is not there: swift build --product \(name)")
        }
        return String(path)
    }

    private static var ownProgram: String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        if count > 0 { return String(decoding: path[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        // Without /proc: <products>/LarderPackageTests.xctest/Contents/MacOS/LarderPackageTests
        let words = CommandLine.arguments[0].split(separator: "/", omittingEmptySubsequences: false)
        let bundle = words.firstIndex { $0.hasSuffix(".xctest") } ?? words.endIndex
        return words[...min(bundle, words.count - 1)].joined(separator: "/")
    }

    /// Runs larderd with options that start no server, and waits until it exits.
    package static func run(_ arguments: [String], environment: [String]? = nil, directory: String? = nil) throws -> (
        end: ProcessEnd, output: String, errors: String
    ) {
        try ChildProcess.run(try program(), arguments, environment: environment, directory: directory)
    }
}
