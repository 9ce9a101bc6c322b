/// The program that this process runs.
package enum Program {
    /// The error if this process has no command line, not even a name: nil if it has one. Without this check, a program
    /// in a container without /proc would run with default options.
    package static var commandLineComplaint: String? {
        CommandLine.arguments.isEmpty
            ? "/proc is not mounted, but Swift reads the command line from /proc/self/cmdline" : nil
    }

    /// The path of this program; if the system does not report it, the name with which it was started.
    package static let path: String = {
        #if os(Linux)
            if let path = FileSystem.canonical("/proc/self/exe") { return path }
        #endif
        let called = CommandLine.arguments.first ?? ""
        return FileSystem.canonical(called) ?? called
    }()
}

/// Identifies the current boot of the machine. As long as the machine has not restarted, writes of earlier processes
/// are not lost even if they were not synced.
package enum MachineStart {
    /// A different text for each boot; nil if the system does not report one.
    package static let identifier: String? = {
        #if canImport(Darwin)
            var bytes = [UInt8](repeating: 0, count: 128)
            var count = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
            let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            return text.isEmpty ? nil : text
        #else
            guard let bytes = (try? FileSystem.read("/proc/sys/kernel/random/boot_id")) ?? nil else { return nil }
            let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
            return text.isEmpty ? nil : text
        #endif
    }()
}

package struct ProcessMemory {
    package let residentBytes: Int
    /// The resident memory without mapped files, which the system can drop at any time.
    package let ownBytes: Int

    /// Returns nil if the system does not report the memory.
    package static func measure() -> ProcessMemory? {
        // Linux reports numbers of pages: all, resident ones, and those of mapped files.
        guard let bytes = (try? FileSystem.read("/proc/self/statm")) ?? nil else { return nil }
        let pages = String(decoding: bytes, as: UTF8.self).split(separator: " ").compactMap { Int($0) }
        guard pages.count > 2 else { return nil }
        let pageBytes = Int(sysconf(CInt(_SC_PAGESIZE)))
        return ProcessMemory(residentBytes: pages[1] * pageBytes, ownBytes: (pages[1] - pages[2]) * pageBytes)
    }

    /// Returns freed memory to the system that the C library would keep, if it has a function for this. glibc keeps
    /// free blocks that are followed by blocks in use.
    package static func trim() {
        // Looked up by name: no Swift module declares the function, and not every C library has it.
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        typealias Trim = @convention(c) (Int) -> Int32
        // If the C library has this function, it declares the function with this signature.
        _ = unsafeBitCast(symbol, to: Trim.self)(0)
    }
}

/// A resource limit of this process: getrlimit(2) and setrlimit(2).
package enum ResourceLimit {
    /// One more than the highest descriptor that this process may use.
    case openFiles
    /// The maximum length of a file that this process may write, in bytes.
    case fileSize

    private var number: ResourceNumber {
        switch self {
        case .openFiles: openFilesNumber
        case .fileSize: fileSizeNumber
        }
    }

    /// Returns the current soft and hard limit; nil if they cannot be read.
    package func read() -> rlimit? {
        var limit = rlimit()
        return getrlimit(number, &limit) == 0 ? limit : nil
    }

    /// Sets the soft and the hard limit.
    /// - Returns: false if the system refuses.
    @discardableResult
    package func set(_ limit: rlimit) -> Bool {
        var limit = limit
        return setrlimit(number, &limit) == 0
    }

    /// Sets the soft limit only.
    /// - Parameter current: the new soft limit; nil for the value of the hard limit.
    @discardableResult
    package func set(current: rlim_t?) -> Bool {
        guard var limit = read() else { return false }
        limit.rlim_cur = current ?? limit.rlim_max
        return set(limit)
    }
}

/// Words of commands that a user is shown.
package enum ShellWord {
    /// Quotes a word for a POSIX shell, if it needs that.
    package static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "_./:@%+=,-".utf8.contains(byte)
            }
        }
        return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
