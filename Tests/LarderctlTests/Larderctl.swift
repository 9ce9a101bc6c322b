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
        let exitCode = try Programs.wait(for: try spawn(words, &actions))
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
            _ = try Programs.wait(for: process)
            return Reading.all(terminal)
        }

        /// Opens a terminal's other side for others. Glibc's module lacks the calls of POSIX for that; these are what
        /// they do.
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
        return try Programs.wait(for: try spawn(words, &actions))
    }

    private func spawn(_ words: [[UInt8]], _ actions: inout posix_spawn_file_actions_t) throws -> pid_t {
        try Programs.spawn(
            "larderctl", words, environment: socketPath.map { ["LARDER_SOCKET=\($0)"] } ?? [], &actions)
    }
}
