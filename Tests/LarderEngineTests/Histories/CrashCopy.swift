import LarderPlatform
import LarderTestSupport

@testable import LarderEngine

extension TestLarder {
    /// Returns a larder with a copy of the current files: what the next process finds if this one gets SIGKILL now.
    ///
    /// Writes must not run during the copy. If LevelDB changes files in the background meanwhile, they are copied
    /// again. The copy is removed with this larder's directory.
    func crashCopy(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let parent = self.parent + "/crash-\(try FileSystem.list(self.parent).count)"
        try Files.copyUnchanged(path, to: parent + "/larder")
        return try crashCopy(in: parent, configure)
    }

    /// Opens the copy of the larder in the directory `larder` of `parent`.
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

    /// The paths of the journal's segments, the oldest first.
    var journalSegments: [String] {
        let directory = path + "/JOURNAL"
        return ((try? FileSystem.list(directory)) ?? []).filter { JournalFormat.number(ofFile: $0) != nil }
            .map { directory + "/" + $0 }
    }
}
