import Threading

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A program that a test started, with what it writes.
///
/// It is killed when the last reference goes. Thread-safe. The proof for `@unchecked Sendable`: the state is read and
/// written with the lock held.
package final class ChildProcess: @unchecked Sendable {
    /// How a process ended.
    package enum End: Equatable, Sendable {
        case exited(Int32)
        case killed(signal: Int32)
    }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        package init(description: String) { self.description = description }
    }

    package let pid: pid_t
    private let lock = Lock()
    private let changed = Condition()
    private var streams = [Stream(), Stream()]
    private var end: End?
    private var threads: [WorkThread] = []

    private struct Stream {
        var bytes: [UInt8] = []
        var isOpen = true
        /// What ``waitForErrorLine(containing:)`` has looked at.
        var searched = 0
    }

    /// How long a test waits for something before it fails, in milliseconds. Never waited for when all is well.
    private static let patienceMilliseconds: Int64 = 120_000

    /// Starts a program.
    /// - Parameters:
    ///   - program: a path, or a name that is looked for in PATH.
    ///   - input: what it reads from its standard input.
    ///   - environment: instead of this process' environment.
    ///   - directory: where it runs.
    package convenience init(
        _ program: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String]? = nil,
        directory: String? = nil
    ) throws {
        // `env -C` changes the directory where posix_spawn cannot.
        let command = (directory.map { ["env", "-C", $0] } ?? []) + [program] + arguments
        try self.init(command: command.map { Array($0.utf8) }, input: input, environment: environment)
    }

    /// Starts a program whose arguments need not be UTF-8.
    /// - Parameters:
    ///   - command: the program and its arguments.
    ///   - outputPath: what its standard output is; nil where this process reads it.
    package init(
        command: [[UInt8]], input: [UInt8] = [], environment: [String]? = nil, outputPath: String? = nil
    ) throws {
        let output = try Pipe()
        let errors = try Pipe()
        let feed = try Pipe()
        pid = try Self.spawn(
            command, environment ?? Self.ownEnvironment, [feed.readEnd, output.writeEnd, errors.writeEnd], outputPath)
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

    /// Runs a program to its end.
    package static func run(
        _ program: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String]? = nil,
        directory: String? = nil
    ) throws -> (end: End, output: String, errors: String) {
        let child = try ChildProcess(
            program, arguments, input: input, environment: environment, directory: directory)
        let end = try child.waitForExit()
        return (end, child.output, child.errors)
    }

    // MARK: What it wrote

    package var outputBytes: [UInt8] { lock.withLock { streams[0].bytes } }
    package var output: String { String(decoding: outputBytes, as: UTF8.self) }
    package var errors: String { lock.withLock { String(decoding: streams[1].bytes, as: UTF8.self) } }

    /// The next line on its standard error that contains `text`, waiting for it. Lines before it are skipped.
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

    // MARK: Its end

    package func send(signal: Int32) { if lock.withLock({ end == nil }) { kill(pid, signal) } }

    /// Waits until it has ended and all it wrote is read.
    @discardableResult
    package func waitForExit() throws -> End {
        try lock.withLock { () throws(Failure) in
            while true {
                if let end, streams.allSatisfy({ !$0.isOpen }) { return end }
                guard changed.wait(lock, milliseconds: Self.patienceMilliseconds) else {
                    kill(pid, SIGKILL)
                    throw Failure(description: "process \(pid) does not end by itself")
                }
            }
        }
    }

    /// Whether it has ended, without waiting.
    package func hasEnded() -> Bool { lock.withLock { end != nil } }

    /// Kills it with SIGKILL and waits for its end.
    package func killNow() {
        send(signal: SIGKILL)
        _ = try? waitForExit()
    }

    private func waitForEnd() {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        lock.withLock {
            end = signal == 0 ? .exited((status >> 8) & 0xFF) : .killed(signal: signal)
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

    // MARK: Starting it

    /// More than the tests have open, and fewer than the system allows.
    private static let descriptorsMax: Int32 = {
        var limit = rlimit()
        #if canImport(Glibc)
            let status = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #else
            let status = getrlimit(RLIMIT_NOFILE, &limit)
        #endif
        return status == 0 ? Int32(min(limit.rlim_cur, 4096)) : 256
    }()

    private static var ownEnvironment: [String] {
        var list: [String] = []
        var entry = environ
        while let text = entry.pointee {
            list.append(String(cString: text))
            entry += 1
        }
        return list
    }

    private static func spawn(
        _ command: [[UInt8]], _ environment: [String], _ ends: [Int32], _ outputPath: String?
    ) throws -> pid_t {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, end) in ends.enumerated() { posix_spawn_file_actions_adddup2(&actions, end, Int32(number)) }
        if let outputPath {
            posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, outputPath, O_WRONLY | O_NOCTTY, 0)
        }
        // Connections and pipes of other tests must not stay open because a program here has them too. Closing what is
        // not open is no error.
        for file in 3..<Self.descriptorsMax { posix_spawn_file_actions_addclose(&actions, file) }
        #if canImport(Darwin)
            var attributes: posix_spawnattr_t?
        #else
            var attributes = posix_spawnattr_t()
        #endif
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The threads on which tests run block signals, and a new process inherits that.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var standard = sigset_t()
        sigemptyset(&standard)
        sigaddset(&standard, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &standard)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words = command.map { strdup($0.map { CChar(bitPattern: $0) } + [0]) } + [nil]
        var variables = environment.map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        var pid: pid_t = 0
        let status = words[0].map { posix_spawnp(&pid, $0, &actions, &attributes, &words, &variables) } ?? ENOENT
        guard status == 0 else {
            let program = String(decoding: command.first ?? [], as: UTF8.self)
            throw Failure(description: "cannot start \(program): \(String(cString: strerror(status)))")
        }
        return pid
    }
}

/// One pipe. Each end is closed once.
///
/// The proof for `@unchecked Sendable`: each end is used by one thread.
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

    /// What can be read; nil at the end.
    func read() -> [UInt8]? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = systemRead(readEnd, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            return count > 0 ? Array(chunk.prefix(count)) : nil
        }
    }

    func writeAll(_ bytes: [UInt8]) {
        // A program that does not read its input must not kill the tests.
        signal(SIGPIPE, SIG_IGN)
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { systemWrite(writeEnd, $0.baseAddress! + done, bytes.count - done) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            done += count
        }
        closeWriteEnd()
    }
}

private func systemRead(_ file: Int32, _ start: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, start, count)
}
private func systemWrite(_ file: Int32, _ start: UnsafeRawPointer, _ count: Int) -> Int { write(file, start, count) }
