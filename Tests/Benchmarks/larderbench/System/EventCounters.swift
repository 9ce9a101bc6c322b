import LarderPlatform

/// Counts events of a running process, user and system: perf_event_open(2). Threads that start later are included.
final class EventCounters {
    /// An event: its type and number in the kernel's interface.
    struct Event {
        let type: UInt32
        let number: UInt64

        static let cycles = Event(type: 0, number: 0)
        static let instructions = Event(type: 0, number: 1)
        /// Counted by the kernel, so it exists without hardware counters.
        static let pageFaults = Event(type: 1, number: 2)
    }

    /// A descriptor for each thread that exists.
    private var descriptors: [Int32] = []

    /// Starts counting.
    init(_ event: Event, of process: pid_t) throws(BenchError) {
        for name in TemporaryTree.names(in: "/proc/\(process)/task") {
            guard let thread = pid_t(name) else { continue }
            let descriptor = Self.open(event, thread)
            if descriptor >= 0 {
                descriptors.append(descriptor)
            } else if errno != ESRCH {
                throw Self.error(errno)
            }
        }
        guard !descriptors.isEmpty else { throw BenchError("process \(process) has ended") }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }

    /// The number of events since the start.
    var count: Double {
        descriptors.reduce(0) { sum, descriptor in
            // The count, and the times for which the counter was enabled and for which it was on the processor.
            var fields: [UInt64] = [0, 0, 0]
            let read = fields.withUnsafeMutableBytes { unistdRead(descriptor, $0) }
            guard read == 24, fields[2] > 0 else { return sum }
            return sum + Double(fields[0]) * Double(fields[1]) / Double(fields[2])
        }
    }

    /// The reason why this machine's processor does not count instructions and cycles for this user; nil if it does.
    static let absence: BenchError? = {
        do throws(BenchError) {
            _ = try EventCounters(.instructions, of: getpid())
            _ = try EventCounters(.cycles, of: getpid())
            return nil
        } catch {
            return error
        }
    }()

    private static func error(_ number: Int32) -> BenchError {
        switch number {
        case ENOENT, EOPNOTSUPP: BenchError("the machine has no such counters, like most virtual machines")
        case EACCES, EPERM: BenchError("the kernel forbids it to this user (kernel.perf_event_paranoid)")
        default: .system("perf_event_open")
        }
    }

    private static func open(_ event: Event, _ thread: pid_t) -> Int32 {
        #if os(Linux)
            typealias Call = @convention(c) (Int, UnsafeMutableRawPointer?, Int, Int, Int, UInt) -> Int
            // Swift cannot call `syscall`, because its number of arguments varies. It takes all of them as words, so
            // the call as a function with six words is safe.
            guard let symbol = dlsym(nil, "syscall") else { return -1 }
            let call = unsafeBitCast(symbol, to: Call.self)
            // `struct perf_event_attr` in its first version, of 64 bytes: type and size; number; -; -; read_format
            // (with both times); flags (inherit); -; -.
            var attributes = [UInt64(event.type) | 64 << 32, event.number, 0, 0, 3, 2, 0, 0]
            return attributes.withUnsafeMutableBytes {
                Int32(truncatingIfNeeded: call(number, $0.baseAddress, Int(thread), -1, -1, closeOnExec))
            }
        #else
            errno = ENOSYS
            return -1
        #endif
    }

    /// PERF_FLAG_FD_CLOEXEC
    private static let closeOnExec: UInt = 8
    #if arch(x86_64)
        private static let number = 298
    #else
        private static let number = 241
    #endif
}
