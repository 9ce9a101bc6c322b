/// A program that runs beside this one. Its output goes into a file.
final class ChildProcess {
    let pid: pid_t
    let outputPath: String
    private var exitStatus: Int32?

    /// Starts a program.
    /// - Parameter words: its path, or its name if it is to be found in PATH, and its arguments.
    ///
    /// It ends with this process, however that ends, where the system can see to it: `setpriv`, which is part of every
    /// Debian, asks the kernel for it and becomes the program.
    init(_ words: [String], outputPath: String) throws(BenchError) {
        self.outputPath = outputPath
        let words = Self.canEndWithParent ? [Self.setpriv, "--pdeathsig", "KILL"] + words : words
        var actions = posix_spawn_file_actions_t.empty
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, outputPath, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        // A process begins with the signals blocked that its starter blocks, and could not be asked to end.
        var attributes = posix_spawnattr_t.empty
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var mask = sigset_t()
        sigemptyset(&mask)
        posix_spawnattr_setsigmask(&attributes, &mask)
        posix_spawnattr_setflags(&attributes, Int16(truncatingIfNeeded: POSIX_SPAWN_SETSIGMASK))
        var child = pid_t()
        let status = posix_spawnp(&child, words[0], &actions, &attributes, &arguments, environ)
        guard status == 0 else { throw BenchError("cannot start \(words[0]): \(String(cString: strerror(status)))") }
        pid = child
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
        if exitStatus != nil { return true }
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return false }
        exitStatus = status
        return true
    }

    /// Waits for the end.
    /// - Returns: the status as `waitpid` gives it, 0 for an exit with code 0.
    @discardableResult
    func wait() -> Int32 {
        if let exitStatus { return exitStatus }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            guard errno == EINTR else { return -1 }
        }
        exitStatus = status
        return status
    }

    /// Asks the process to end, and kills it if it does not within `seconds`.
    func stop(within seconds: Double = 20) {
        guard !hasEnded else { return }
        kill(pid, SIGTERM)
        let end = Clocks.monotonic() + seconds
        while !hasEnded {
            if Clocks.monotonic() > end { kill(pid, SIGKILL) }
            Clocks.sleep(0.005)
        }
    }

    /// Ends the process without warning, as a crash would.
    func crash() {
        guard !hasEnded else { return }
        kill(pid, SIGKILL)
        wait()
    }

    /// Its output.
    var output: String { TextFile.read(outputPath) ?? "" }

    /// The last lines it wrote, for messages.
    var lastLines: String { lastLines(output) }

    func lastLines(_ text: String) -> String { text.split(separator: "\n").suffix(3).joined(separator: " | ") }

    /// Its resident memory, in MiB.
    var residentMiB: Double? {
        guard let status = TextFile.read("/proc/\(pid)/status") else { return nil }
        for line in status.split(separator: "\n") where line.hasPrefix("VmRSS:") {
            let number = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
            return number.flatMap { Double($0) }.map { $0 / 1024 }
        }
        return nil
    }
}

// What the `init` functions of both take: a struct on Linux, a pointer on macOS.

extension posix_spawn_file_actions_t {
    fileprivate static var empty: Self {
        #if canImport(Darwin)
            nil
        #else
            posix_spawn_file_actions_t()
        #endif
    }
}

extension posix_spawnattr_t {
    fileprivate static var empty: Self {
        #if canImport(Darwin)
            nil
        #else
            posix_spawnattr_t()
        #endif
    }
}
