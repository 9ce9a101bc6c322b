import LarderPlatform

extension DaemonProcess {
    /// The current resident memory of the daemon, in bytes; nil if the system has no /proc.
    package var residentBytes: Int? { status("VmRSS:") }

    /// The peak resident memory since the start or ``forgetPeak()``, in bytes; nil if it is unknown.
    package var peakResidentBytes: Int? { status("VmHWM:") }

    /// Resets the peak to the current value.
    package func forgetPeak() {
        let file = open("/proc/\(process.pid)/clear_refs", O_WRONLY)
        guard file >= 0 else { return }
        _ = write(file, "5", 1)
        close(file)
    }

    /// Returns a line of /proc/PID/status, in bytes.
    private func status(_ name: String) -> Int? {
        guard let file = fopen("/proc/\(process.pid)/status", "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, Int32(line.count), file) != nil {
            let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                .split(whereSeparator: \.isWhitespace)
            if words.count >= 2, words[0] == name { return Int(words[1]).map { $0 * 1024 } }
        }
        return nil
    }
}
