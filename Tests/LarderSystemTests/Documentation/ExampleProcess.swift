import Foundation
import LarderTestSupport
import Testing

/// Runs shell lines for the tests of the examples, without blocking the threads that tests share, because builds take
/// long.
enum ExampleProcess {
    struct Result: Sendable {
        let exitCode: Int32
        let output: String
        let errors: String
    }

    /// The package's directory.
    static let root = PackageRoot.path

    /// Runs a shell command to its end. As in a shell, the exit code of a process that a signal ended is 128 plus the
    /// signal.
    static func run(_ line: String, directory: String = root) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Swift.Result {
                        let child = try ChildProcess.run("sh", ["-c", line], directory: directory)
                        let exitCode =
                            switch child.end {
                            case .exited(let code): code
                            case .killed(let signal): 128 + signal
                            }
                        return Result(exitCode: exitCode, output: child.output, errors: child.errors)
                    })
            }
        }
    }

    /// Like ``run(_:directory:)``, but any exit code other than 0 fails the test.
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
}
