#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The programs of this package, run as processes.
enum Programs {
    /// Starts the program `name` with `words` as its arguments and nothing but `environment` as its environment, and what
    /// tells a sanitizer how to report: nobody may be there to read of leaks.
    static func spawn(
        _ name: String, _ words: [[UInt8]], environment: [String] = [],
        _ actions: inout posix_spawn_file_actions_t
    ) throws -> pid_t {
        let program = try path(of: name)
        // The threads that tests run on block signals, and a process begins with the mask of the thread that started
        // it.
        var attributes = posix_spawnattr_t.empty
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var mask = sigset_t()
        sigemptyset(&mask)
        posix_spawnattr_setsigmask(&attributes, &mask)
        posix_spawnattr_setflags(&attributes, Int16(truncatingIfNeeded: POSIX_SPAWN_SETSIGMASK))
        var process = pid_t()
        let status = withCStrings([Array(program.utf8)] + words) { arguments in
            withCStrings((environment + sanitizerOptions).map { Array($0.utf8) }) { environment in
                posix_spawn(&process, program, &actions, &attributes, arguments, environment)
            }
        }
        guard status == 0 else { throw SystemCallFailure(call: "posix_spawn \(program)", number: status) }
        return process
    }

    private static var sanitizerOptions: [String] {
        ["ASAN_OPTIONS", "TSAN_OPTIONS"].compactMap { (name: String) -> String? in
            getenv(name).map { "\(name)=\(String(cString: $0))" }
        }
    }

    /// Waits for the end of a process. Its exit code, or 128 and the number of the signal that ended it.
    static func wait(for process: pid_t) throws -> CInt {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw SystemCallFailure(call: "waitpid", number: errno) }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func withCStrings<Result>(
        _ strings: [[UInt8]], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let copies = strings.map { bytes in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
            for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
            copy[bytes.count] = 0
            return copy
        }
        defer { for copy in copies { copy.deallocate() } }
        return body(copies + [nil])
    }

    /// The programs stand in the same directory as the tests: that of the running executable or, on macOS, the one that
    /// the bundle is in.
    private static func path(of name: String) throws -> String {
        var starts: [String] = []
        #if os(Linux)
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = buffer.withUnsafeMutableBytes { bytes in
                bytes.bindMemory(to: CChar.self).baseAddress.map { readlink("/proc/self/exe", $0, bytes.count) } ?? 0
            }
            if count > 0 { starts.append(String(decoding: buffer.prefix(count), as: UTF8.self)) }
        #endif
        starts += CommandLine.arguments.filter { $0.contains("xctest") }
        for start in starts {
            var parts = start.split(separator: "/", omittingEmptySubsequences: false)
            while parts.count > 1 {
                parts.removeLast()
                let candidate = parts.joined(separator: "/") + "/" + name
                var status = stat()
                if stat(candidate, &status) == 0, status.st_mode & S_IFMT == S_IFREG { return candidate }
            }
        }
        throw SystemCallFailure(call: "find \(name)", number: ENOENT)
    }
}

extension posix_spawn_file_actions_t {
    /// What `posix_spawn_file_actions_init` takes: a struct on Linux, a pointer on macOS.
    static var empty: Self {
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
