import LarderPlatform

/// A child process that runs a program, with its output in a file.
final class ChildProcess {
    let pid: pid_t
    let outputPath: String
    private var end: ProcessEnd?

    /// Starts a program.
    /// - Parameter words: the program's path, or a name to find in PATH; then its arguments.
    ///
    /// If the system supports it, the program is killed when this process terminates in any way. `setpriv`, part of
    /// every Debian, requests that from the kernel, and then executes the program.
    init(_ words: [String], outputPath: String) throws(BenchError) {
        self.outputPath = outputPath
        let words = Self.canEndWithParent ? [Self.setpriv, "--pdeathsig", "KILL"] + words : words
        pid = try BenchError.mapping { () throws(FileError) in
            let input = try Self.open("/dev/null", O_RDONLY)
            defer { close(input) }
            let output = try Self.open(outputPath, O_WRONLY | O_CREAT | O_TRUNC)
            defer { close(output) }
            var start = ProcessStart(words)
            start.descriptors = [input, output, output]
            return try start.start()
        }
    }

    private static func open(_ path: String, _ flags: Int32) throws(FileError) -> Int32 {
        let file = FileSystem.openFile(path, flags | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        return file
    }

    private static let setpriv = "/usr/bin/setpriv"
    private static let canEndWithParent = access(setpriv, X_OK) == 0

    deinit {
        guard !hasEnded else { return }
        kill(pid, SIGKILL)
        wait()
    }

    /// Whether the process has ended.
    var hasEnded: Bool {
        if end == nil { end = ProcessEnd.poll(pid) }
        return end != nil
    }

    /// Waits until the process has ended.
    @discardableResult
    func wait() -> ProcessEnd? {
        if end == nil { end = try? ProcessEnd.wait(for: pid) }
        return end
    }

    /// Asks the process to terminate, and kills it if it has not terminated within `seconds`.
    func stop(within seconds: Double = 20) {
        guard !hasEnded else { return }
        kill(pid, SIGTERM)
        let end = Clocks.monotonic() + seconds
        while !hasEnded {
            if Clocks.monotonic() > end { kill(pid, SIGKILL) }
            Clocks.sleep(0.005)
        }
    }

    /// Kills the process, as a crash would.
    func crash() {
        guard !hasEnded else { return }
        kill(pid, SIGKILL)
        wait()
    }

    /// The output of the process.
    var output: String { TextFile.read(outputPath) ?? "" }

    /// The last lines of the process's output, for messages.
    var lastLines: String { lastLines(output) }

    func lastLines(_ text: String) -> String { text.split(separator: "\n").suffix(3).joined(separator: " | ") }

    /// The resident memory of the process, in MiB.
    var residentMiB: Double? { number("VmRSS:", in: "status").map { $0 / 1024 } }

    /// The part of the resident memory that shows mapped files, which the kernel can drop, in MiB.
    var mappedMiB: Double? { number("RssFile:", in: "status").map { $0 / 1024 } }

    /// The bytes that the process and its ended children caused to be written to disks, without those of files that
    /// were removed before; nil if the kernel does not count them.
    var diskBytesWritten: Double? {
        guard let written = number("write_bytes:", in: "io") else { return nil }
        return written - (number("cancelled_write_bytes:", in: "io") ?? 0)
    }

    /// Returns a number from a file of the kernel about the process.
    private func number(_ field: String, in file: String) -> Double? {
        guard let text = TextFile.read("/proc/\(pid)/\(file)") else { return nil }
        for line in text.split(separator: "\n") where line.hasPrefix(field) {
            let number = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
            return number.flatMap { Double($0) }
        }
        return nil
    }
}
