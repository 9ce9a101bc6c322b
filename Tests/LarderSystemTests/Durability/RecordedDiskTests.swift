import LarderCrashMachine
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the files that may be left after each kind of accident, for small programs whose correct outcomes are
/// known.
@Suite(.enabled(if: FaultLibrary.isAvailable)) struct RecordedDiskTests {
    private typealias Outcome = [String: String]

    /// Runs a Python program in an empty directory, and returns all outcomes that an accident at its end may have.
    private func outcomes(
        _ accident: RecordedDisk.Accident, _ lines: [String], arm: (FaultControl) -> Void = { _ in }
    ) throws -> Set<Outcome> {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place, traceBytes: 1 << 20)
        arm(faults)
        let helpers = """
            import os
            os.mkdir('\(place.path)/larder'); os.chdir('\(place.path)/larder')
            here = os.getcwd() + '/'
            def write(name, text, at=0):
                file = os.open(here + name, os.O_WRONLY | os.O_CREAT)
                os.lseek(file, at, 0)
                os.write(file, text.encode())
                return file
            def sync(file):
                try: os.fsync(file)
                except OSError: pass
                os.close(file)
            def syncdir(name): sync(os.open(here + name, os.O_RDONLY))

            """
        let (end, _, errors) = try ChildProcess.run(
            "env", try faults.environment() + ["python3", "-c", helpers + lines.joined(separator: "\n")],
            directory: place.path)
        try #require(end == .exited(0), "\(errors)")
        let trace = FileTrace(faults.trace)
        let records = trace.records()
        try #require(faults.isTraceComplete && !records.isEmpty)
        var disk = RecordedDisk(trace, records)
        disk.advance(to: records.count)
        var random = SeededGenerator(seed: 1)
        return Set(
            (0..<600).map { _ in
                let image = disk.image(after: accident, using: &random)
                let files = image.files.map { ($0.path, String(decoding: $0.bytes, as: UTF8.self)) }
                return Outcome(uniqueKeysWithValues: files)
            })
    }

    /// A new file is renamed over an old one without having been synced.
    private let replacing = [
        "sync(write('a', 'old'))", "syncdir('')", "write('b', 'N')", "os.rename(here + 'b', here + 'a')",
    ]

    @Test("in the model, a killed process leaves all its writes") func writesOfAKilledProcessAreAllKept() throws {
        #expect(try outcomes(.kill, replacing) == [["a": "N"]])
    }

    @Test(
        "in the model of a power cut, a file renamed without a sync may be empty",
        arguments: [RecordedDisk.Accident.orderedPowerCut, .strictPowerCut])
    func aFileRenamedWithoutSyncMayBeEmpty(_ accident: RecordedDisk.Accident) throws {
        let contents = ["", "N", "\0"]
        let expected = Set(
            [["a": "old"]] + contents.map { ["a": $0] } + contents.map { ["a": "old", "b": $0] })
        #expect(try outcomes(accident, replacing) == expected)
    }

    @Test("names become durable in order, or independently, depending on the model")
    func namesAreOrderedOrIndependent() throws {
        let lines = ["write('x', '')", "write('y', '')"]
        let inOrder: Set<Outcome> = [[:], ["x": ""], ["x": "", "y": ""]]
        #expect(try outcomes(.orderedPowerCut, lines) == inOrder)
        #expect(try outcomes(.strictPowerCut, lines) == inOrder.union([["y": ""]]))
    }

    /// Data that was truncated after a failed sync does not reappear, even if a part of it had reached the disk.
    @Test(
        "data truncated after a failed sync does not reappear",
        arguments: [RecordedDisk.Accident.kill, .orderedPowerCut, .strictPowerCut])
    func truncatedDataDoesNotReappear(_ accident: RecordedDisk.Accident) throws {
        for name in ["a", "b", "c", "d"] {
            let lines = [
                "f = write('\(name)', 'text')", "try: os.fsync(f)", "except OSError: pass", "os.ftruncate(f, 1)",
                "sync(f)",
                "syncdir('')",
            ]
            let found = try outcomes(accident, lines) { $0.arm(.failing(.sync, EIO, path: "", from: 1, count: 1)) }
            // Whether the first byte is on the disk is unknown.
            #expect(found.isSubset(of: [[name: "t"], [name: "\0"]]) && !found.isEmpty, "\(found)")
        }
    }

    /// In one model, an fsync of a file makes its name durable; in the other model it does not.
    @Test("a synced file may lose its name if its directory was not synced") func aSyncedFileMayLackItsName() throws {
        let lines = ["os.mkdir(here + 'd')", "sync(write('d/f', 'text'))"]
        #expect(try outcomes(.orderedPowerCut, lines) == [["d/f": "text"]])
        #expect(try outcomes(.strictPowerCut, lines) == [[:], ["d/f": "text"]])
        let both = lines + ["syncdir('d')", "syncdir('')"]
        #expect(try outcomes(.strictPowerCut, both) == [["d/f": "text"]])
    }

    @Test(
        "in the model of a power cut, each page is written or lost independently",
        arguments: [RecordedDisk.Accident.orderedPowerCut, .strictPowerCut])
    func pagesAreWrittenIndependently(_ accident: RecordedDisk.Accident) throws {
        let lines = [
            "sync(write('f', 'a' * 8192)), syncdir('')", "write('f', 'b' * 4096)", "write('f', 'c' * 4096, 4096)",
        ]
        let (a, b, c) = ("a", "b", "c")
        let whole = try outcomes(accident, lines).filter { outcome in
            // Skip outcomes in which a write was cut in the middle of a page.
            Set(outcome["f", default: ""].prefix(4096)).count == 1
                && Set(outcome["f", default: ""].suffix(4096)).count == 1
        }
        let pages = Set(whole.map { "\($0["f"]?.first ?? "?")\($0["f"]?.last ?? "?")" })
        #expect(pages == [a + a, b + a, a + c, b + c])
    }

    /// After a failed fsync, the system treats the data as written, although it may not be on the disk. The next fsync
    /// does not report that.
    @Test("in the model, a sync after a failed sync does not write the data")
    func aSyncAfterAFailedOneWritesNothing() throws {
        let lines = ["file = write('f', 'x')", "syncdir('')", "sync(os.dup(file))", "sync(file)"]
        let failing = try outcomes(.strictPowerCut, lines) { $0.arm(.failing(.sync, 5, count: 1)) }
        #expect(failing.isSubset(of: [["f": "x"], ["f": "\0"]]))
        #expect(try outcomes(.strictPowerCut, lines) == [["f": "x"]])
    }
}
