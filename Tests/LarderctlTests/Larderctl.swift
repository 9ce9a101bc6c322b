import LarderPlatform
import LarderTestSupport

/// The program larderctl, run as a process.
struct Larderctl {
    struct Result {
        /// The exit code as a shell reports it: 128 plus the number of the signal that ended the process.
        let exitCode: CInt
        let output: [UInt8]
        let errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// The socket that `LARDER_SOCKET` names to it.
    let socketPath: String?
    /// The faults that its file operations get.
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

    /// Runs larderctl and waits for its end.
    /// - Parameters:
    ///   - outputPath: the file for standard output; nil returns the output in the result.
    ///   - joinsErrors: whether standard error goes to the same place.
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

    /// Nothing else than the socket.
    var environment: [String] { socketPath.map { ["LARDER_SOCKET=\($0)"] } ?? [] }

    #if os(Linux)
        /// Runs it with a terminal as its standard output. Gives what the terminal got.
        func runOnTerminal(_ words: [String], joinsErrors: Bool = false) throws -> [UInt8] {
            let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            guard terminal >= 0 else { throw ChildProcess.Failure(description: "cannot open /dev/ptmx") }
            defer { close(terminal) }
            // The output is far smaller than the terminal's buffer, so the process ends although nothing reads it.
            _ = try run(
                words.map { Array($0.utf8) }, outputPath: try Self.otherSide(of: terminal), joinsErrors: joinsErrors)
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 65_536)
            // A terminal whose other side is gone ends with an error.
            while case let count = read(terminal, &piece, piece.count), count > 0 { bytes += piece[..<count] }
            return bytes
        }

        /// Opens a terminal's other side for others. Glibc's module lacks the calls of POSIX for that; these are what
        /// they do.
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
