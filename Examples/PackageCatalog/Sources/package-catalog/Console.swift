#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Writes to standard output and standard error.
enum Console {
    /// Writes a line at once, so that a reader gets it even if this program is killed afterwards.
    static func out(_ text: String, terminator: String = "\n") { write(text + terminator, STDOUT_FILENO) }

    static func error(_ text: String) { write("package-catalog: \(text)\n", STDERR_FILENO) }

    private static func write(_ text: String, _ descriptor: CInt) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            #if canImport(Glibc)
                let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            #else
                let count = bytes.withUnsafeBytes { Darwin.write(descriptor, $0.baseAddress, $0.count) }
            #endif
            if count < 0, errno == EINTR { continue }
            // The reader has closed the pipe, or the disk is full: the error cannot be reported.
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }
}

/// Formats numbers for people.
enum Format {
    /// `63,666`
    static func count(_ number: some BinaryInteger) -> String {
        var digits = String(number)
        var groups: [Substring] = []
        while digits.count > 3 {
            groups.insert(digits.suffix(3), at: 0)
            digits.removeLast(3)
        }
        return ([digits[...]] + groups).joined(separator: ",")
    }

    /// `7.2 MB`
    static func bytes(_ number: some BinaryInteger) -> String {
        let value = Double(number)
        for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] where value >= size {
            return "\((value / size * 10).rounded() / 10) \(unit)"
        }
        return "\(number) bytes"
    }

    /// `2.81 s`
    static func seconds(_ duration: Duration) -> String { "\((duration / .milliseconds(10)).rounded() / 100) s" }

    /// `4.2 ms`, `1,800 ms`
    static func milliseconds(_ duration: Duration) -> String {
        let value = duration / .milliseconds(1)
        return (value < 10 ? "\((value * 10).rounded() / 10)" : count(Int(value.rounded()))) + " ms"
    }

    /// Returns the result of `body`, and how long it took.
    static func timed<Result>(_ body: () throws -> Result) rethrows -> (Result, Duration) {
        let clock = ContinuousClock()
        let begin = clock.now
        let result = try body()
        return (result, clock.now - begin)
    }

    /// `23 h 59 min`, `59 s`
    static func span(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }
}
