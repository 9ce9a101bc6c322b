import LarderPlatform
import LarderServer
import LarderTestSupport
import Testing

/// The scripts in `Clients/Programs`, each in the language of the client library that it uses. A script checks its
/// results and prints `all is well` as its last line; the tests only start it.
enum ClientProgram {
    static let directory = PackageRoot.path + "/Tests/LarderSystemTests/Clients/Programs"

    /// The last line of a script's output if all its checks succeeded.
    private static let success = "all is well\n"

    /// Runs a script to its end, and expects success.
    /// - Parameters:
    ///   - interpreter: the program that runs the script; nil if the file is itself a program.
    ///   - file: a path, or a name in `Clients/Programs`.
    static func run(
        _ interpreter: String?, _ file: String, _ arguments: [String], environment: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let path = file.hasPrefix("/") ? file : directory + "/" + file
        let command = (interpreter.map { [$0] } ?? []) + [path] + arguments
        let (end, output, errors) = try ChildProcess.run(
            "env", environment + command, directory: directory)
        #expect(
            end == .exited(0) && output.hasSuffix(success), "\(command): \(end), \(output) \(errors)",
            sourceLocation: sourceLocation)
    }

    /// Fails if a program that `make test` installs is missing.
    static func require(_ program: String, package: String) throws {
        let (end, _, _) = try ChildProcess.run("sh", ["-c", "command -v \"$0\"", program])
        try #require(end == .exited(0), "\(program) is missing: `make test` installs Debian's package \(package)")
    }

    /// The Python interpreter with the clients' packages: `LARDER_PYTHON`, or the environment that `make proofs`
    /// creates.
    static func python() throws -> String {
        if let path = TestSetting.python.text { return path }
        var place = try DaemonProcess.program()
        while let slash = place.lastIndex(of: "/") {
            place = String(place[..<slash])
            let candidate = place + "/venv/bin/python"
            if access(candidate, X_OK) == 0 { return candidate }
        }
        throw ChildProcess.Failure(
            description: "no Python with redis-py: `make proofs` makes .build/venv; or set LARDER_PYTHON")
    }

    /// Runs a script in Python.
    static func runPython(
        _ file: String, _ arguments: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        // Write no files to the scripts' directory, and ignore warnings of packages.
        try run(
            try python(), file, arguments, environment: ["PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore"],
            sourceLocation: sourceLocation)
    }
}
