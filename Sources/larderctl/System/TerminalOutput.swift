import LarderPlatform

/// Writes bytes to the terminal or to standard error.
enum TerminalOutput {
    /// Writes all bytes. Blocks until there is space. If an error occurs, drops the rest.
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
