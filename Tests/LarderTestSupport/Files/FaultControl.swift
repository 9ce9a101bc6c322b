import CLarderFaultLibrary
import LarderPlatform

/// The kinds of the C library's file calls that a ``FaultControl/Rule`` can select.
package struct FileCalls: OptionSet, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    private init(_ call: Int) { rawValue = 1 << UInt64(call) }

    /// Opens an existing file, without O_CREAT.
    package static let open = FileCalls(LF_OPEN)
    /// Opens with O_CREAT.
    package static let create = FileCalls(LF_CREATE)
    package static let read = FileCalls(LF_READ)
    package static let write = FileCalls(LF_WRITE)
    /// fsync and fdatasync of a file.
    package static let sync = FileCalls(LF_SYNC)
    /// fsync of a directory.
    package static let syncDirectory = FileCalls(LF_SYNCDIR)
    package static let truncate = FileCalls(LF_TRUNCATE)
    package static let allocate = FileCalls(LF_ALLOCATE)
    package static let rename = FileCalls(LF_RENAME)
    package static let link = FileCalls(LF_LINK)
    package static let unlink = FileCalls(LF_UNLINK)
    package static let makeDirectory = FileCalls(LF_MKDIR)
    package static let removeDirectory = FileCalls(LF_RMDIR)
    package static let list = FileCalls(LF_LIST)
    package static let listNext = FileCalls(LF_LISTNEXT)
    package static let stat = FileCalls(LF_STAT)
    package static let access = FileCalls(LF_ACCESS)
    package static let close = FileCalls(LF_CLOSE)
    package static let map = FileCalls(LF_MMAP)
    package static let lock = FileCalls(LF_LOCK)
    package static let statistics = FileCalls(LF_STATFS)

    package static let all = FileCalls(rawValue: (1 << UInt64(LF_CALLS)) - 1)
    /// Calls that change files on disk, or make changes durable.
    package static let changing: FileCalls = [
        .create, .write, .sync, .syncDirectory, .truncate, .allocate, .rename, .link, .unlink, .makeDirectory,
        .removeDirectory,
    ]
    /// Calls that read the state of files on disk.
    package static let looking: FileCalls = [.open, .read, .list, .listNext, .stat, .access, .map, .statistics]
}

/// Injects faults, kills, delays and clock changes into a program with a preloaded library. Affects only calls on files
/// below one directory, and records a trace of these calls.
///
/// ```swift
/// let faults = try FaultControl(in: place)
/// let daemon = try DaemonProcess(in: place, faults: faults)
/// faults.arm(.failing(.sync, EIO))                      // every fsync from now on
/// faults.arm(.failing(.all, ENOSPC, from: 7, count: 1)) // the seventh call from now on, once
/// faults.disarm()
/// ```
///
/// Rules and clocks persist from one process to the next: a rule armed before a start applies to the start.
/// Thread-safe, except for arming one slot from two threads. `@unchecked Sendable`: the memory is mapped for the life
/// of this object and accessed atomically; a rule is written before it is armed.
package final class FaultControl: @unchecked Sendable {
    /// Describes which calls are hit by a fault, and what happens to them.
    package struct Rule: Sendable {
        package enum Action: Sendable {
            /// Fails the call without making it.
            case fail(Int32)
            /// Reads or writes half as many bytes, at least one.
            case shorten
            /// Writes nothing, and returns 0.
            case empty
            /// Sends SIGKILL instead of making the call.
            case killBefore
            /// Makes the call, then sends SIGKILL.
            case killAfter
            /// Makes the call after a delay in nanoseconds.
            case delay(nanoseconds: UInt64)
            /// Suspends the call until ``FaultControl/release(slot:)`` is called or the rule is disarmed.
            case pause
        }

        package var calls: FileCalls
        package var action: Action
        /// Hits only calls on paths below the root that contain this text; empty for all. For a rename, both paths are
        /// checked.
        package var path = ""
        /// Hits no calls on paths that contain this text; if the text is empty, no path is excluded.
        package var except = ""
        /// The first call to hit, counted from 1 among the matching calls since the rule was armed.
        package var first: UInt64 = 1
        /// The number of matching calls to hit, starting with ``first``.
        package var count: UInt64 = .max
        /// Hits only one in this many calls, at random by ``seed``; 0 for all.
        package var oneIn: UInt64 = 0
        package var seed: UInt64 = 0

        package init(_ calls: FileCalls, _ action: Action) {
            self.calls = calls
            self.action = action
        }

        package static func failing(
            _ calls: FileCalls, _ error: Int32, path: String = "", except: String = "", from first: UInt64 = 1,
            count: UInt64 = .max
        ) -> Rule {
            var rule = Rule(calls, .fail(error))
            (rule.path, rule.except, rule.first, rule.count) = (path, except, first, count)
            return rule
        }

        package static func failing(
            _ calls: FileCalls, _ error: Int32, path: String = "", oneIn chances: UInt64, seed: UInt64
        ) -> Rule {
            var rule = Rule(calls, .fail(error))
            (rule.path, rule.oneIn, rule.seed) = (path, chances, seed)
            return rule
        }

        /// Kills the process with SIGKILL before or after a matching call, given by its number, counted from 1.
        package static func killing(_ calls: FileCalls, at number: UInt64, after: Bool = false) -> Rule {
            var rule = Rule(calls, after ? .killAfter : .killBefore)
            (rule.first, rule.count) = (number, 1)
            return rule
        }
    }

    /// The number of rules that can be armed at once.
    package static let slots = Int(LF_RULES)

    /// The directory whose files are affected.
    package let root: String
    /// The path of the control block; the trace is next to it.
    package let path: String
    package var tracePath: String { path + ".trace" }
    private let control: UnsafeMutablePointer<lf_control>
    private let traceStart: UnsafeMutableRawPointer?
    private let traceBytesMax: Int
    private let place: TemporaryDirectory?

    /// Creates a control block (memory that this object shares with the preloaded library) for future processes.
    /// - Parameters:
    ///   - place: the directory in which a ``DaemonProcess`` will be started; that daemon's larder is affected.
    ///   - traceBytes: the capacity of the trace in bytes; 0 for none. Memory is only used as the trace fills.
    package convenience init(in place: TemporaryDirectory, traceBytes: Int = 0) throws {
        try self.init(root: place.path + "/larder", path: place.path + "/faults", traceBytes: traceBytes, place: place)
    }

    /// - Parameters:
    ///   - root: the directory, as the program names it: absolute, without links and dots.
    ///   - path: the path of the control block, preferably on a file system in memory.
    package init(root: String, path: String, traceBytes: Int = 0, place: TemporaryDirectory? = nil) throws {
        self.root = root
        self.path = path
        self.place = place
        traceBytesMax = traceBytes
        control = try Self.map(path, bytes: MemoryLayout<lf_control>.size)
            .bindMemory(to: lf_control.self, capacity: 1)
        traceStart = traceBytes == 0 ? nil : try Self.map(path + ".trace", bytes: traceBytes)
        lf_set_root(control, root)
        if traceBytes > 0 { lf_set_trace(control, path + ".trace", UInt64(traceBytes)) }
        control.pointee.magic = UInt64(LF_MAGIC)
    }

    deinit {
        munmap(control, MemoryLayout<lf_control>.size)
        if let traceStart { munmap(traceStart, traceBytesMax) }
        unlink(path)
        if traceBytesMax > 0 { unlink(path + ".trace") }
    }

    private static func map(_ path: String, bytes: Int) throws -> UnsafeMutableRawPointer {
        let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0, ftruncate(file, off_t(bytes)) == 0 else { throw failure("make", path) }
        defer { close(file) }
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), start != MAP_FAILED else {
            throw failure("map", path)
        }
        return start
    }

    private static func failure(_ what: String, _ path: String) -> ChildProcess.Failure {
        ChildProcess.Failure(description: "cannot \(what) \(path): \(String(cString: strerror(errno)))")
    }

    /// Returns the environment variables for a program that the faults are to affect.
    package func environment() throws -> [String] {
        ["LD_PRELOAD=\(try FaultLibrary.path())", "\(LF_VARIABLE)=\(path)"]
    }

    // MARK: Rules

    /// Replaces the rule in a slot, and counts the calls that match the new rule from now on. If rules in several slots
    /// hit a call, the rule in the lowest slot applies.
    package func arm(_ rule: Rule, slot: Int = 0) {
        precondition((0..<Self.slots).contains(slot), "there are \(Self.slots) slots")
        var raw = lf_rule()
        raw.calls = rule.calls.rawValue
        raw.first = rule.first
        raw.count = rule.count
        raw.chances = rule.oneIn
        raw.seed = rule.seed
        switch rule.action {
        case .fail(let error):
            raw.action = UInt32(LF_FAIL)
            raw.error = error
        case .shorten: raw.action = UInt32(LF_SHORTEN)
        case .empty: raw.action = UInt32(LF_EMPTY)
        case .killBefore: raw.action = UInt32(LF_KILL_BEFORE)
        case .killAfter: raw.action = UInt32(LF_KILL_AFTER)
        case .delay(let nanoseconds):
            raw.action = UInt32(LF_DELAY)
            raw.nanoseconds = nanoseconds
        case .pause: raw.action = UInt32(LF_PAUSE)
        }
        lf_arm(lf_rule_at(control, Int32(slot)), &raw, rule.path, rule.except)
    }

    /// Makes a slot count the matching calls without hitting any.
    package func count(_ calls: FileCalls, path: String = "", except: String = "", slot: Int = 0) {
        arm(.failing(calls, EIO, path: path, except: except, count: 0), slot: slot)
    }

    package func disarm(slot: Int) { lf_disarm(lf_rule_at(control, Int32(slot))) }

    package func disarm() { for slot in 0..<Self.slots { disarm(slot: slot) } }

    /// Returns the number of calls that matched a slot's rule since it was armed.
    package func matched(slot: Int = 0) -> UInt64 { lf_load(&lf_rule_at(control, Int32(slot)).pointee.matched) }

    /// Returns the number of calls that a slot's rule hit.
    package func hits(slot: Int = 0) -> UInt64 { lf_load(&lf_rule_at(control, Int32(slot)).pointee.hits) }

    /// Resumes all calls that a pausing rule has stopped so far.
    package func release(slot: Int = 0) {
        let rule = lf_rule_at(control, Int32(slot))
        if let rule { lf_store(&rule.pointee.released, lf_load(&rule.pointee.hits)) }
    }

    // MARK: Counters

    /// Returns the number of `calls` on files below the root, by all processes so far.
    package func made(_ calls: FileCalls = .all) -> UInt64 {
        (0..<Int32(LF_CALLS)).reduce(0) { calls.rawValue >> UInt64($1) & 1 == 1 ? $0 + lf_calls(control, $1) : $0 }
    }

    /// The number of calls that were hit by any rule so far.
    package var hits: UInt64 { lf_load(&control.pointee.hits) }

    /// The last call that was hit, such as `fsync JOURNAL/0000000000000001.log`, relative to the root. For failure
    /// messages of tests.
    package var lastHit: String { String(cString: lf_last_hit(control)) }

    /// The pid of the process that started last.
    package var attached: UInt64 { lf_load(&control.pointee.attached) }

    // MARK: Killing

    /// Sends SIGKILL to a recorded process, and waits for its end. The kill happens between two recorded changes, so
    /// that the trace is complete.
    package func kill(_ daemon: DaemonProcess) throws {
        daemon.process.send(signal: LF_DEATH)
        try daemon.process.waitForExit()
    }

    // MARK: Clocks

    /// Nanoseconds to add to the wall clock.
    package var wallOffset: Int64 {
        get { lf_load_signed(&control.pointee.wall_offset) }
        set { lf_store_signed(&control.pointee.wall_offset, newValue) }
    }

    /// Nanoseconds to add to the monotonic clock as the program reads it. Time limits that the system checks, such as
    /// that of a condition variable, follow the real clock.
    package var monotonicOffset: Int64 {
        get { lf_load_signed(&control.pointee.monotonic_offset) }
        set { lf_store_signed(&control.pointee.monotonic_offset, newValue) }
    }

    // MARK: The trace

    /// The length of the trace in bytes, which includes all calls so far.
    package var traceLength: Int { Int(lf_load(&control.pointee.trace_length)) }

    /// Whether the trace is complete: it had enough space, and no unrecordable call was made.
    package var isTraceComplete: Bool { lf_load(&control.pointee.trace_failed) == 0 }

    /// The trace so far. Valid while this object exists.
    package var trace: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: traceStart, count: traceStart == nil ? 0 : traceLength)
    }
}
