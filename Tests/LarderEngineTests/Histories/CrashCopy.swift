import TestSupport

@testable import LarderEngine

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

extension TestLarder {
    /// A larder with the files as they stand: what the next process finds when this one gets SIGKILL now.
    ///
    /// Nothing may be written meanwhile. Goes with this one's directory.
    func survivor(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let parent = directory.path + "/survivor-\(try FileSystem.list(directory.path).count)"
        try Files.copy(path, to: parent + "/larder")
        return try survivor(in: parent, configure)
    }

    /// The larder that was copied to `larder` in a directory.
    func survivor(in parent: String, _ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let options = options
        let survivor = try TestLarder(below: parent) { new in
            let onEvent = new.onEvent
            new = options
            new.onEvent = onEvent
            new.beforeCommit = nil
            new.journalFaults = nil
            configure(&new)
        }
        survivor.time.advance(milliseconds: time.wallMilliseconds() - survivor.time.wallMilliseconds())
        return survivor
    }

    /// The files of the journal, the oldest first.
    var journalSegments: [String] {
        let directory = path + "/JOURNAL"
        return ((try? FileSystem.list(directory)) ?? []).filter { JournalFormat.number(ofFile: $0) != nil }
            .map { directory + "/" + $0 }
    }
}

/// Lets a test stop a thread at a place, and do something else meanwhile.
final class Turnstile: Sendable {
    private let state = Mutexed((isReached: false, isOpen: false))

    /// Says that the place is reached, and waits for ``open()``.
    func pass() {
        state.with { $0.isReached = true }
        while !state.with({ $0.isOpen }) { sched_yield() }
    }

    func awaitReached() { while !state.with({ $0.isReached }) { sched_yield() } }

    func open() { state.with { $0.isOpen = true } }
}
