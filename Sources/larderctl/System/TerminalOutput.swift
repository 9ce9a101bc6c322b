import LarderPlatform

/// Writes to the terminal, or to standard error.
enum TerminalOutput {
    /// Blocks while the output is not read. Output that cannot be written is lost.
    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var start = 0
        while start < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                systemWrite(descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start)
            }
            if count > 0 {
                start += count
            } else if errno == EAGAIN {
                var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: POLLOUT), revents: 0)
                _ = poll(&entry, 1, 1000)
            } else if errno != EINTR {
                return
            }
        }
    }
}
