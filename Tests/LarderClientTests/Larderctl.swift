import TestSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The program larderctl, run as a process.
struct Larderctl {
    struct Result {
        let exitCode: CInt
        let output: [UInt8]
        let errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// The socket that `LARDER_SOCKET` names to it.
    let socketPath: String?
    private let directory: TemporaryDirectory

    init(socketPath: String?) throws {
        self.socketPath = socketPath
        directory = try TemporaryDirectory()
    }

    func callAsFunction(_ words: String..., input: [UInt8] = []) throws -> Result {
        try run(words.map { Array($0.utf8) }, input: input)
    }

    /// Runs it and waits for its end.
    func run(_ words: [[UInt8]], input: [UInt8] = []) throws -> Result {
        let inputFile = try directory.makeFile("in", input)
        let outputFile = try directory.makeFile("out", [])
        let errorFile = try directory.makeFile("err", [])
        var actions = posix_spawn_file_actions_t.empty
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, inputFile, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, outputFile, O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errorFile, O_WRONLY, 0)
        let exitCode = try Self.wait(for: try spawn(words, &actions))
        return Result(
            exitCode: exitCode, output: try Reading.all(outputFile),
            errors: String(decoding: try Reading.all(errorFile), as: UTF8.self))
    }

    #if os(Linux)
        /// Runs it with a terminal as its standard output. Gives what the terminal got.
        func runOnTerminal(_ words: [[UInt8]]) throws -> [UInt8] {
            let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            guard terminal >= 0 else { throw SystemCallFailure(call: "open /dev/ptmx", number: errno) }
            defer { close(terminal) }
            let slave = try Self.otherSide(of: terminal)
            var actions = posix_spawn_file_actions_t.empty
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, slave, O_WRONLY | O_NOCTTY, 0)
            let process = try spawn(words, &actions)
            // What it writes is far less than a terminal holds, so it ends without being read.
            _ = try Self.wait(for: process)
            return Reading.all(terminal)
        }

        /// Opens a terminal's other side for others. Glibc's module lacks the calls of POSIX for that; these are what they
        /// do.
        private static func otherSide(of terminal: CInt) throws -> String {
            let (unlock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
            var locked: CInt = 0
            var number: CInt = 0
            guard ioctl(terminal, unlock, &locked) == 0, ioctl(terminal, getNumber, &number) == 0 else {
                throw SystemCallFailure(call: "ioctl", number: errno)
            }
            return "/dev/pts/\(number)"
        }
    #endif

    /// Runs it with a standard output that takes nothing.
    func runOnFullDisk(_ words: [[UInt8]]) throws -> CInt {
        var actions = posix_spawn_file_actions_t.empty
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/full", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        return try Self.wait(for: try spawn(words, &actions))
    }

    // MARK: System calls

    private func spawn(_ words: [[UInt8]], _ actions: inout posix_spawn_file_actions_t) throws -> pid_t {
        let program = try Self.program()
        let environment = socketPath.map { ["LARDER_SOCKET=\($0)"] } ?? []
        var process = pid_t()
        let status = Self.withCStrings([Array(program.utf8)] + words) { arguments in
            Self.withCStrings(environment.map { Array($0.utf8) }) { environment in
                posix_spawn(&process, program, &actions, nil, arguments, environment)
            }
        }
        guard status == 0 else { throw SystemCallFailure(call: "posix_spawn \(program)", number: status) }
        return process
    }

    private static func withCStrings<Result>(
        _ strings: [[UInt8]], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let copies = strings.map { bytes in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
            for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
            copy[bytes.count] = 0
            return copy
        }
        defer { for copy in copies { copy.deallocate() } }
        return body(copies + [nil])
    }

    /// Waits for a process. Its exit code, or 128 and the number of the signal that ended it.
    private static func wait(for process: pid_t) throws -> CInt {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw SystemCallFailure(call: "waitpid", number: errno) }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    /// The program stands in the same directory as the tests: that of the running executable or, on macOS, the one that
    /// the bundle is in.
    private static func program() throws -> String {
        var starts: [String] = []
        #if os(Linux)
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = buffer.withUnsafeMutableBytes { bytes in
                bytes.bindMemory(to: CChar.self).baseAddress.map { readlink("/proc/self/exe", $0, bytes.count) } ?? 0
            }
            if count > 0 { starts.append(String(decoding: buffer.prefix(count), as: UTF8.self)) }
        #endif
        starts += CommandLine.arguments.filter { $0.contains("xctest") }
        for start in starts {
            var parts = start.split(separator: "/", omittingEmptySubsequences: false)
            while parts.count > 1 {
                parts.removeLast()
                let candidate = parts.joined(separator: "/") + "/larderctl"
                var status = stat()
                if stat(candidate, &status) == 0, status.st_mode & S_IFMT == S_IFREG { return candidate }
            }
        }
        throw SystemCallFailure(call: "find larderctl", number: ENOENT)
    }
}

extension posix_spawn_file_actions_t {
    /// What `posix_spawn_file_actions_init` takes: a struct on Linux, a pointer on macOS.
    fileprivate static var empty: Self {
        #if canImport(Darwin)
            nil
        #else
            posix_spawn_file_actions_t()
        #endif
    }
}
