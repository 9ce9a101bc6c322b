import LarderPlatform

/// A program started by a test, and its output.
///
/// The program is killed when the last reference to this object is released. Thread-safe. `@unchecked Sendable`: the
/// state is guarded by `lock`.
package final class ChildProcess: @unchecked Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        package init(description: String) { self.description = description }
    }

    package let pid: pid_t
    private let lock = Lock()
    private let changed = Condition()
    private var streams = [Stream(), Stream()]
    private var end: ProcessEnd?
    private var threads: [WorkThread] = []

    private struct Stream {
        var bytes: [UInt8] = []
        var isOpen = true
        /// The offset up to which ``waitForErrorLine(containing:)`` has searched `bytes`.
        var searched = 0
    }

    /// How long a test waits for an event before it fails, in milliseconds. Not reached in a successful run.
    private static let patienceMilliseconds: Int64 = 120_000

    /// The sanitizer options of this process, for its child processes.
    package static var sanitizerOptions: [String] {
        ["ASAN_OPTIONS", "TSAN_OPTIONS"].compactMap { (name: String) -> String? in
            getenv(name).map { "\(name)=\(String(cString: $0))" }
        }
    }

    /// Starts a program.
    /// - Parameters:
    ///   - program: a path, or a name that is searched in PATH.
    ///   - input: the standard input of the program.
    ///   - environment: replaces this process's environment, except for ``sanitizerOptions``.
    ///   - directory: the working directory.
    ///   - passing: the descriptor passed as descriptor 3.
    package convenience init(
        _ program: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String]? = nil,
        directory: String? = nil, passing: Int32? = nil
    ) throws {
        // `env -C` changes the directory on systems where posix_spawn cannot.
        let command = (directory.map { ["env", "-C", $0] } ?? []) + [program] + arguments
        try self.init(
            command: command.map { Array($0.utf8) }, input: input, environment: environment, passing: passing)
    }

    /// Starts a program whose arguments need not be UTF-8.
    /// - Parameters:
    ///   - command: the program and its arguments.
    ///   - outputPath: the file for the standard output; nil to read it in this process.
    package init(
        command: [[UInt8]], input: [UInt8] = [], environment: [String]? = nil, outputPath: String? = nil,
        passing: Int32? = nil
    ) throws {
        let output = try Pipe()
        let errors = try Pipe()
        let feed = try Pipe()
        var start = ProcessStart(words: command, environment: environment.map { $0 + Self.sanitizerOptions })
        start.descriptors = [feed.readEnd, output.writeEnd, errors.writeEnd] + [passing].compactMap { $0 }
        let file = outputPath.map { open($0, O_WRONLY | O_NOCTTY | O_CLOEXEC) }
        defer { if let file { close(file) } }
        if let file { start.descriptors[1] = file }
        // A program started here must not keep connections and pipes of other tests open.
        start.closesBelow = Self.descriptorsMax
        do { pid = try start.start() } catch { throw Failure(description: "cannot \(error)") }
        feed.closeReadEnd()
        output.closeWriteEnd()
        errors.closeWriteEnd()
        threads = [
            WorkThread(name: "child-output") { [self] in drain(output, 0) },
            WorkThread(name: "child-errors") { [self] in drain(errors, 1) },
            WorkThread(name: "child-input") { feed.writeAll(input) },
            WorkThread(name: "child-wait") { [self] in waitForEnd() },
        ]
    }

    /// Runs a program, and waits until it exits.
    package static func run(
        _ program: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String]? = nil,
        directory: String? = nil
    ) throws -> (end: ProcessEnd, output: String, errors: String) {
        let child = try ChildProcess(
            program, arguments, input: input, environment: environment, directory: directory)
        let end = try child.waitForExit()
        return (end, child.output, child.errors)
    }

    // MARK: Output

    package var outputBytes: [UInt8] { lock.withLock { streams[0].bytes } }
    package var output: String { String(decoding: outputBytes, as: UTF8.self) }
    package var errors: String { lock.withLock { String(decoding: streams[1].bytes, as: UTF8.self) } }

    /// Waits for the next line on standard error that contains `text`, and returns it. Earlier lines are skipped.
    package func waitForErrorLine(containing text: String) throws -> String {
        try lock.withLock { () throws(Failure) in
            while true {
                while let end = streams[1].bytes[streams[1].searched...].firstIndex(of: 0x0A) {
                    let line = String(decoding: streams[1].bytes[streams[1].searched..<end], as: UTF8.self)
                    streams[1].searched = end + 1
                    if line.contains(text) { return line }
                }
                let all = String(decoding: streams[1].bytes, as: UTF8.self)
                guard streams[1].isOpen else {
                    throw Failure(description: "the program ended without writing '\(text)'; it wrote: \(all)")
                }
                guard changed.wait(lock, milliseconds: Self.patienceMilliseconds) else {
                    throw Failure(description: "the program does not write '\(text)'; it wrote: \(all)")
                }
            }
        }
    }

    /// Waits until the standard output fulfils a condition.
    package func waitForOutput(_ condition: (String) -> Bool) throws {
        try lock.withLock { () throws(Failure) in
            while true {
                let text = String(decoding: streams[0].bytes, as: UTF8.self)
                if condition(text) { return }
                guard streams[0].isOpen, changed.wait(lock, milliseconds: Self.patienceMilliseconds) else {
                    throw Failure(
                        description: "the program does not write what is waited for; it wrote: \(text) "
                            + String(decoding: streams[1].bytes, as: UTF8.self))
                }
            }
        }
    }

    // MARK: End

    package func send(signal: Int32) { if lock.withLock({ end == nil }) { kill(pid, signal) } }

    /// Waits until the program has ended and all its output was read.
    @discardableResult
    package func waitForExit() throws -> ProcessEnd {
        try lock.withLock { () throws(Failure) in
            while true {
                if let end, streams.allSatisfy({ !$0.isOpen }) { return end }
                guard changed.wait(lock, milliseconds: Self.patienceMilliseconds) else {
                    kill(pid, SIGKILL)
                    throw Failure(description: "process \(pid) does not exit")
                }
            }
        }
    }

    /// Returns whether the program has ended. Does not wait.
    package func hasEnded() -> Bool { lock.withLock { end != nil } }

    /// Kills the program with SIGKILL, and waits for its end.
    package func killNow() {
        send(signal: SIGKILL)
        _ = try? waitForExit()
    }

    private func waitForEnd() {
        let end = (try? ProcessEnd.wait(for: pid)) ?? .exited(-1)
        lock.withLock {
            self.end = end
            changed.broadcast()
        }
    }

    private func drain(_ pipe: Pipe, _ index: Int) {
        while let bytes = pipe.read() {
            lock.withLock {
                streams[index].bytes += bytes
                changed.broadcast()
            }
        }
        lock.withLock {
            streams[index].isOpen = false
            changed.broadcast()
        }
    }

    // MARK: Start

    /// A number above all descriptors that the tests have open, but at most the limit of the system.
    private static let descriptorsMax = Int32(
        min(ResourceLimit.openFiles.read()?.rlim_cur ?? 256, 4096))
}

/// A pipe. Each end is closed once.
///
/// `@unchecked Sendable`: each end is used by one thread.
private final class Pipe: @unchecked Sendable {
    let readEnd: Int32
    let writeEnd: Int32
    private var isReadEndOpen = true
    private var isWriteEndOpen = true

    init() throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            throw ChildProcess.Failure(description: "pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    deinit {
        closeReadEnd()
        closeWriteEnd()
    }

    func closeReadEnd() {
        if isReadEndOpen { close(readEnd) }
        isReadEndOpen = false
    }

    func closeWriteEnd() {
        if isWriteEndOpen { close(writeEnd) }
        isWriteEndOpen = false
    }

    /// Returns available bytes; nil at the end.
    func read() -> [UInt8]? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = systemRead(readEnd, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            return count > 0 ? Array(chunk.prefix(count)) : nil
        }
    }

    func writeAll(_ bytes: [UInt8]) {
        // If a program does not read its input, SIGPIPE must not kill the tests.
        signal(SIGPIPE, SIG_IGN)
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                systemWrite(writeEnd, $0.baseAddress.map { $0 + done }, bytes.count - done)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            done += count
        }
        closeWriteEnd()
    }
}
