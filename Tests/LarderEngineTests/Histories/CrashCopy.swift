import LarderPlatform
import LarderTestSupport

@testable import LarderEngine

extension TestLarder {
    /// Returns a larder with a copy of the current files: what the next process finds if this one gets SIGKILL now.
    ///
    /// No writes may run meanwhile; LevelDB may still merge and remove files in the background, and then the files are
    /// copied again. The copy is removed with this larder's directory.
    func crashCopy(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let parent = self.parent + "/crash-\(try FileSystem.list(self.parent).count)"
        while true {
            let before = try Files.sizes(below: path)
            do {
                try Files.copy(path, to: parent + "/larder")
                if try Files.sizes(below: path) == before { return try crashCopy(in: parent, configure) }
            } catch {
                // Unless a file went away while it was copied.
                guard try Files.sizes(below: path) != before else { throw error }
            }
            try FileSystem.removeTree(parent)
        }
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
