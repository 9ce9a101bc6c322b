/// The system's monotonic clock. Counts from an unspecified instant that stays the same while the machine runs.
package enum MonotonicClock {
    @inlinable package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    @inlinable package static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }
}

/// The CPU time of the calling thread. Reading it is a system call, and far slower than reading ``MonotonicClock``.
package enum ThreadClock {
    package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
