import Foundation
import TestSupport
import Testing

/// Programs run by the tests of the examples, without blocking the threads that tests share.
enum ExampleProcess {
    struct Result {
        let exitCode: Int32
        let output: String
        let errors: String
    }

    struct Failure: Error { let message: String }

    /// The package's directory, found from this file's place in it.
    static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }

    /// Where the products of this build are: the tests' own program stands beside them.
    static let products: String = {
        let starts = [(try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""]
        for start in starts + CommandLine.arguments.filter({ $0.contains("xctest") }) {
            var parts = start.split(separator: "/")
            while parts.popLast() != nil {
                let directory = parts.reduce("") { $0 + "/" + $1 }
                if FileManager.default.isExecutableFile(atPath: directory + "/larderd") { return directory }
            }
        }
        return "/larderd-was-not-found"
    }()

    /// Runs a line of shell, and waits for its end. A test that is cancelled, because its time is over, kills it.
    static func run(
        _ line: String, directory: String = root, environment: [String: String] = [:]
    ) async throws -> Result {
        let files = try TemporaryDirectory()
        let process = try spawn(
            "exec >'\(files.path)/out' 2>'\(files.path)/err' </dev/null; cd '\(directory)' || exit; \(line)",
            environment: environment)
        let status = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: wait(for: process)) }
            }
        } onCancel: {
            // It leads a group of its own, so that what it started goes with it.
            kill(-process, SIGKILL)
        }
        func text(_ name: String) throws -> String {
            String(decoding: try Data(contentsOf: URL(filePath: files.path + "/" + name)), as: UTF8.self)
        }
        return Result(exitCode: status, output: try text("out"), errors: try text("err"))
    }

    /// As ``run(_:directory:environment:)``; anything but exit code 0 fails the test.
    @discardableResult
    static func shell(
        _ line: String, directory: String = root, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let result = try await run(line, directory: directory)
        #expect(
            result.exitCode == 0, "\(line)\n\(result.output.suffix(4000))\n\(result.errors.suffix(4000))",
            sourceLocation: sourceLocation)
        return result.output
    }

    /// Starts a shell, as a group of its own and with no signal blocked: threads of a test run have most of them blocked,
    /// and a program inherits that.
    /// - Parameter errors: a descriptor that becomes its standard error.
    static func spawn(_ line: String, errors: Int32? = nil, environment: [String: String] = [:]) throws -> pid_t {
        #if canImport(Darwin)
            var attributes: posix_spawnattr_t?
            var actions: posix_spawn_file_actions_t?
        #else
            var attributes = posix_spawnattr_t()
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let errors { posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO) }
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        let words = ["sh", "-c", line].map { (word: String) in strdup(word) } + [nil]
        let settings = variables.map { (setting: String) in strdup(setting) } + [nil]
        defer { for text in words + settings { free(text) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, "/bin/sh", &actions, &attributes, words, settings)
        guard status == 0 else { throw Failure(message: "posix_spawn: \(String(cString: strerror(status)))") }
        return process
    }

    /// Waits for a process. Its exit code, or 128 and the number of the signal that ended it.
    static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            if errno != EINTR { return -1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

/// A running larderd, with its larder and its socket in a directory. Single owner.
final class ExampleDaemon {
    private let process: pid_t
    private let log = Pipe()
    private var isRunning = true

    /// Starts it, and waits until its log says that it is ready.
    init(in directory: String) throws {
        process = try ExampleProcess.spawn(
            "cd '\(directory)' && exec '\(ExampleProcess.products)/larderd' --dir larder --socket larder.sock",
            errors: log.fileHandleForWriting.fileDescriptor)
        try log.fileHandleForWriting.close()
        var text = ""
        while !text.contains("ready: ") {
            let more = log.fileHandleForReading.availableData
            try #require(!more.isEmpty, "larderd ended: \(text)")
            text += String(decoding: more, as: UTF8.self)
        }
    }

    deinit {
        guard isRunning else { return }
        kill(process, SIGKILL)
        _ = ExampleProcess.wait(for: process)
    }

    /// Asks it to end, and waits for that. Its exit code.
    func stop() -> Int32 {
        kill(process, SIGTERM)
        isRunning = false
        return ExampleProcess.wait(for: process)
    }
}
