import LarderPlatform
import LarderTestSupport

/// The program larderctl, run as a process.
struct Larderctl {
    struct Result {
        /// The exit code as reported by a shell: 128 plus the signal's number if a signal terminated the process.
        let exitCode: CInt
        let output: [UInt8]
        let errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// The value of `LARDER_SOCKET` for the program.
    let socketPath: String?
    /// The faults of the program's file operations.
    var faults: FaultControl?
    /// More variables, as `NAME=VALUE`.
    var variables: [String] = []

    init(socketPath: String?, faults: FaultControl? = nil, variables: [String] = []) {
        self.socketPath = socketPath
        self.faults = faults
        self.variables = variables
    }

    func callAsFunction(_ words: String..., input: [UInt8] = []) throws -> Result { try run(words, input: input) }

    func run(_ words: [String], input: [UInt8] = []) throws -> Result {
        try run(words.map { Array($0.utf8) }, input: input)
    }

    /// Runs larderctl and waits until it exits.
    /// - Parameters:
    ///   - outputPath: the file for standard output; nil returns the output in the result.
    ///   - joinsErrors: whether standard error goes to the same place as standard output.
    func run(
        _ words: [[UInt8]], input: [UInt8] = [], outputPath: String? = nil, joinsErrors: Bool = false
    ) throws -> Result {
        let program = try DaemonProcess.program("larderctl")
        let shell = joinsErrors ? ["sh", "-c", "exec \"$0\" \"$@\" 2>&1"] : []
        let child = try ChildProcess(
            command: (shell + [program]).map { Array($0.utf8) } + words, input: input,
            environment: environment + variables + (try faults?.environment() ?? []), outputPath: outputPath)
        let exitCode =
            switch try child.waitForExit() {
            case .exited(let code): code
            case .killed(let signal): 128 + signal
            }
        return Result(exitCode: exitCode, output: child.outputBytes, errors: child.errors)
    }

    /// The environment of the program: only the path of the socket.
    var environment: [String] { socketPath.map { ["LARDER_SOCKET=\($0)"] } ?? [] }

    #if os(Linux)
        /// Runs larderctl with a terminal as its standard output. Returns the bytes written to the terminal.
        func runOnTerminal(_ words: [String], joinsErrors: Bool = false) throws -> [UInt8] {
            let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            guard terminal >= 0 else { throw ChildProcess.Failure(description: "cannot open /dev/ptmx") }
            defer { close(terminal) }
            // The output is far smaller than the terminal's buffer, so the process ends although nothing reads it.
            _ = try run(
                words.map { Array($0.utf8) }, outputPath: try Self.otherSide(of: terminal), joinsErrors: joinsErrors)
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 65_536)
            // Reading from a terminal fails after the program has closed the other side.
            while case let count = read(terminal, &piece, piece.count), count > 0 { bytes += piece[..<count] }
            return bytes
        }

        /// Opens the other side of a terminal. Swift's module Glibc lacks the POSIX functions for that, so this makes
        /// the same system calls.
        static func otherSide(of terminal: CInt) throws -> String {
            let (unlock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
            var locked: CInt = 0
            var number: CInt = 0
            guard ioctl(terminal, unlock, &locked) == 0, ioctl(terminal, getNumber, &number) == 0 else {
                throw ChildProcess.Failure(description: "cannot open the other side of a terminal")
            }
            return "/dev/pts/\(number)"
        }
    #endif
}
