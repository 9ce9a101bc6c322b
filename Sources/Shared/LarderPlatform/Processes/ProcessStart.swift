/// Starts another program with posix_spawn(3). The new process gets ``descriptors``, and all descriptors of this
/// process that are not closed on exec. In it, no signal is blocked, and SIGPIPE has its default action.
package struct ProcessStart {
    /// The program (a path, or a name that is searched for in `PATH`), followed by its arguments.
    package var words: [[UInt8]]
    /// The environment as `NAME=value` strings; nil to inherit that of this process.
    package var environment: [String]?
    /// The descriptors of this process that become 0, 1, 2 and so on in the new process.
    package var descriptors: [Int32] = []
    /// In the new process, closes the descriptors from `descriptors.count` to below this number; 0 closes none.
    package var closesBelow: Int32 = 0

    package init(_ words: [String], environment: [String]? = nil) {
        self.init(words: words.map { Array($0.utf8) }, environment: environment)
    }

    package init(words: [[UInt8]], environment: [String]? = nil) {
        (self.words, self.environment) = (words, environment)
    }

    /// Starts the program and returns its process number.
    /// - Throws: the system's error, with the program as the path.
    package func start() throws(FileError) -> pid_t {
        var actions = FileActions.empty
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
        }
        // Closing a descriptor that is not open is not an error.
        for number in Int32(descriptors.count)..<max(closesBelow, Int32(descriptors.count)) {
            posix_spawn_file_actions_addclose(&actions, number)
        }
        var attributes = Attributes.empty
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        Self.letSignalsThrough(&attributes)
        var process = pid_t()
        let status = Self.withCStrings(words) { words in
            guard let program = words[0] else { return ENOENT }
            guard let environment else { return posix_spawnp(&process, program, &actions, &attributes, words, environ) }
            return Self.withCStrings(environment.map { Array($0.utf8) }) { environment in
                posix_spawnp(&process, program, &actions, &attributes, words, environment)
            }
        }
        guard status == 0 else {
            throw FileError(
                operation: "start", path: String(decoding: words.first ?? [], as: UTF8.self), number: status)
        }
        return process
    }

    /// Whether this process ignores a signal, for example because nohup(1) has started it.
    package static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        #if canImport(Darwin)
            return unsafeBitCast(action.__sigaction_u.__sa_handler, to: Int.self) == 1
        #else
            return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
        #endif
    }

    /// Makes the new process start without blocked signals, and with the default action of SIGPIPE. Otherwise it would
    /// inherit the starting thread's blocked signals, and this process's ignored ones.
    private static func letSignalsThrough(_ attributes: inout Attributes) {
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var standard = sigset_t()
        sigemptyset(&standard)
        sigaddset(&standard, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &standard)
        posix_spawnattr_setflags(
            &attributes, Int16(truncatingIfNeeded: POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    }

    /// Calls `body` with the strings as C strings, followed by a null pointer. They are valid during the call only.
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
}

package enum ProcessEnd: Equatable, Sendable {
    case exited(Int32)
    case killed(signal: Int32)

    private init(status: Int32) {
        let signal = status & 0x7F
        self = signal == 0 ? .exited((status >> 8) & 0xFF) : .killed(signal: signal)
    }

    /// Waits until a child of this process terminates.
    package static func wait(for process: pid_t) throws(FileError) -> ProcessEnd {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw FileError(operation: "wait for", path: "\(process)", number: errno) }
        }
        return ProcessEnd(status: status)
    }

    /// Returns how a child of this process has ended; nil while the child runs. Do not call it again after a result.
    package static func poll(_ process: pid_t) -> ProcessEnd? {
        var status: Int32 = 0
        guard waitpid(process, &status, WNOHANG) == process else { return nil }
        return ProcessEnd(status: status)
    }
}

// These C types are structs on Linux and pointers on macOS.
#if canImport(Darwin)
    private typealias FileActions = posix_spawn_file_actions_t?
    private typealias Attributes = posix_spawnattr_t?
    extension Optional { fileprivate static var empty: Self { nil } }
#else
    private typealias FileActions = posix_spawn_file_actions_t
    private typealias Attributes = posix_spawnattr_t
    extension posix_spawn_file_actions_t { fileprivate static var empty: Self { Self() } }
    extension posix_spawnattr_t { fileprivate static var empty: Self { Self() } }
#endif
