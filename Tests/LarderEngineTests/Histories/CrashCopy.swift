import Platform
import TestSupport

@testable import LarderEngine

extension TestLarder {
    /// A larder with the files as they stand: what the next process finds when this one gets SIGKILL now.
    ///
    /// Nothing may be written meanwhile. Goes with this one's directory.
    func crashCopy(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let parent = self.parent + "/crash-\(try FileSystem.list(self.parent).count)"
        try Files.copy(path, to: parent + "/larder")
        return try crashCopy(in: parent, configure)
    }

    /// The larder that was copied to `larder` in a directory.
    func crashCopy(in parent: String, _ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let options = options
        let crashCopy = try TestLarder(below: parent) { new in
            let onEvent = new.onEvent
            new = options
            new.onEvent = onEvent
            new.beforeCommit = nil
            new.journalFaults = nil
            configure(&new)
        }
        crashCopy.time.advance(milliseconds: time.wallMilliseconds() - crashCopy.time.wallMilliseconds())
        return crashCopy
    }

    /// The files of the journal, the oldest first.
    var journalSegments: [String] {
        let directory = path + "/JOURNAL"
        return ((try? FileSystem.list(directory)) ?? []).filter { JournalFormat.number(ofFile: $0) != nil }
            .map { directory + "/" + $0 }
    }
}
