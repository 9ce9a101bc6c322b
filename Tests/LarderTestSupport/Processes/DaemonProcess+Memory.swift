import LarderPlatform

extension DaemonProcess {
    /// What the daemon has in memory now, in bytes; nil where the system has no /proc to tell it.
    package var residentBytes: Int? { status("VmRSS:") }

    /// The most it had in memory since it started, or since ``forgetPeak()``, in bytes; nil where nothing tells it.
    package var peakResidentBytes: Int? { status("VmHWM:") }

    /// From now on the peak begins at what is in memory now.
    package func forgetPeak() {
        let file = open("/proc/\(process.pid)/clear_refs", O_WRONLY)
        guard file >= 0 else { return }
        _ = write(file, "5", 1)
        close(file)
    }

    /// A line of /proc/PID/status, in bytes.
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
