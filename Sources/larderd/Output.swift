import LarderEngine
import LarderPlatform
import Synchronization

/// Writes requested text, such as the help, to standard output. Thread-safe.
enum Output {
    private static let failure = Atomic<Int32>(0)

    /// Writes the whole text at once.
    static func write(_ text: String) {
        do throws(FileError) {
            try FileSystem.writeAll(Array(text.utf8), descriptor: STDOUT_FILENO, path: "standard output")
        } catch {
            failure.store(error.number, ordering: .relaxed)
        }
    }

    /// Returns `code`, or the exit code of a failure if the output could not be written.
    static func finish(_ code: Int32) -> Int32 {
        let number = failure.load(ordering: .relaxed)
        guard number != 0 else { return code }
        Daemon.complain("cannot write to standard output: \(SystemErrorText.of(number))")
        return code == ExitCode.done ? ExitCode.failed : code
    }
}
