import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of a disk that fails and recovers. The faults are real ones, in separate processes and file systems.
@Suite struct FaultyDiskTests {
    /// The file size limit truncates a frame of the journal, and then a record of LevelDB's log. After that, data that
    /// LevelDB accepts may not reach the disk, so writes are refused until LevelDB is reopened. No acknowledged write
    /// is lost.
    @Test func aFailedWriteLosesNoAcknowledgedWrites() async throws {
        let larder = try TestLarder()
        let report = larder.parent + "/acknowledged"
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = larder.path as String, report = report as String] in
            signal(SIGXFSZ, SIG_IGN)
            do {
                try FaultyDiskTests.writeAcrossAFault(path, report)
            } catch {
                try? Files.write(report, Array("\(error)".utf8))
            }
            kill(getpid(), SIGKILL)
        }
        let acknowledged = String(decoding: try Files.read(report), as: UTF8.self).split(separator: "\n").map(
            String.init)
        #expect(acknowledged.count > 100, "\(acknowledged)")
        #expect(acknowledged.last == "done")
        let contents = try larder.database().contents(EnumerationOptions(includeExpired: true))
        for key in acknowledged.dropLast() { #expect(contents[key]?.count == 1000, "\(key)") }
    }

    /// Runs in its own process, which is then killed. Writes the problems that it finds to the report.
    private static func writeAcrossAFault(_ path: String, _ report: String) throws {
        var options = EngineOptions()
        options.backgroundMaintenance = false
        let engine = try Engine.open(path, options: options)
        let database = try engine.openDatabase("books")
        let value = String(repeating: "x", count: 1000)
        var lines: [String] = []
        func expect(_ isTrue: Bool, _ what: String) { if !isTrue { lines.append("wrong: \(what)") } }
        for number in 0..<50 {
            try database.put("before\(number)", value)
            lines.append("before\(number)")
        }
        let snapshot = try database.snapshot()
        let cursor = try database.cursor()
        for fault in 0..<3 {
            try limitFileSize(to: 120_500 + rlim_t(fault) * 777)
            var codes: [LarderError.Code?] = []
            for number in 0..<200 {
                let key = "fault\(fault):\(number)"
                let code = errorCode { try database.put(key, value) }
                if code == nil { lines.append(key) }
                if codes.last != code { codes.append(code) }
            }
            expect(codes == [nil, .commitFailed], "codes at fault \(fault): \(codes)")
            expect(try database.value("fault\(fault):199") == nil, "a write that was refused is seen")
            // A checkpoint fails too, and LevelDB accepts no writes until it is reopened.
            try limitFileSize(to: 3000)
            engine.maintain()
            expect(errorCode { try database.put("x", value) } == .writesSuspended, "suspended")
            engine.maintain()
            expect(errorCode { try database.put("x", value) } == .writesSuspended, "still suspended")
            expect(try database.value("before1") == value, "reads continue")
            if fault == 0 { expect(try snapshot.value("before1") == value, "snapshots work") }
            try limitFileSize(to: nil)
            engine.maintain()
            expect(errorCode { _ = try snapshot.value("before1") } == .invalidated, "snapshot")
            expect(errorCode { _ = try cursor?.next() } == .invalidated, "cursor")
            expect(engine.statistics.reopens.read() == fault + 1, "reopened")
            // The next checkpoint empties the journal.
            engine.maintain()
            // Writes so few entries that the journal stays below the file size limit of the next round.
            for number in 0..<100 {
                try database.put("after\(fault):\(number)", value)
                lines.append("after\(fault):\(number)")
            }
            _ = try database.snapshot()
        }
        lines.append("done")
        try Files.write(report, Array(lines.joined(separator: "\n").utf8))
    }

    /// - Parameter bytes: the new limit; nil for the maximum that the system allows.
    private static func limitFileSize(to bytes: rlim_t?) throws {
        guard ResourceLimit.fileSize.set(current: bytes) else { _exit(9) }
    }

    @Test func runningOutOfFileDescriptorsIsNotTreatedAsDamage() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let larder = try TestLarder(below: path) { $0.onDamage = .salvage }
            try larder.database("books", policy: .high).put("a", "1")
            larder.close()
            let database = try larder.engine().database("books")
            let other = try larder.engine().database("other")
            var files: [Int32] = []
            var limit = rlimit()
            limit.rlim_cur = 64
            limit.rlim_max = 4096
            ResourceLimit.openFiles.set(limit)
            while true {
                let file = open("/dev/null", O_RDONLY)
                if file < 0 { break }
                files.append(file)
            }
            for _ in 0..<2 {
                guard errorCode({ _ = try database.value("a") }) == .io else { _exit(2) }
                guard errorCode({ try database.put("a", "2") }) == .io else { _exit(3) }
                guard errorCode({ _ = try database.purge() }) == .io else { _exit(4) }
                guard errorCode({ try other.put("a", "2") }) == .io else { _exit(5) }
                try larder.maintain()
            }
            for file in files { close(file) }
            guard larder.setAside.isEmpty else { _exit(6) }
            guard try database.value("a") == "1", database.policy == .high else { _exit(7) }
            try other.put("a", "2")
            guard try other.value("a") == "2" else { _exit(8) }
            larder.close()
            _exit(0)
        }
    }

    /// If the process runs out of file descriptors during a purge, the old entries stay.
    @Test func aPurgeWithoutFileDescriptorsKeepsTheEntries() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let larder = try TestLarder(below: path)
            try larder.database(policy: .high).put("a", "1")
            var limit = rlimit()
            limit.rlim_max = 4096
            for spare in 0..<12 {
                let database = try larder.database()
                limit.rlim_cur = 256
                ResourceLimit.openFiles.set(limit)
                var files: [Int32] = []
                while true {
                    let file = open("/dev/null", O_RDONLY)
                    if file < 0 { break }
                    files.append(file)
                }
                for _ in 0..<min(spare, files.count) { close(files.removeLast()) }
                let code = errorCode { _ = try database.purge() }
                for file in files { close(file) }
                try larder.maintain()
                let expected = code == nil ? nil : "1"
                guard try database.value("a") == expected else { _exit(2) }
                guard try larder.epochs().count == (code == nil ? 0 : 1) else { _exit(3) }
                larder.close()
                guard try larder.database().value("a") == expected else { _exit(4) }
                if code == nil { _exit(spare > 0 ? 0 : 5) }
            }
            _exit(0)
        }
    }

    @Test func missingPermissionsAreNotTreatedAsDamage() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let larder = try TestLarder(below: path) { $0.onDamage = .salvage }
            try larder.database("books", policy: .high).put("a", "1")
            larder.close()
            let database = try larder.engine().database("books")
            // Root may read every file, so the test temporarily runs as another user.
            let isRoot = geteuid() == 0
            if isRoot { guard seteuid(65534) == 0 else { _exit(0) } } else { chmod(larder.directory(of: "books"), 0) }
            guard errorCode({ _ = try database.value("a") }) == .io else { _exit(2) }
            guard errorCode({ try database.put("a", "2") }) == .io else { _exit(3) }
            guard errorCode({ _ = try database.purge() }) == .io else { _exit(4) }
            guard errorCode({ _ = try larder.engine().deleteDatabase("books") }) == .io else { _exit(5) }
            try larder.maintain()
            if isRoot { seteuid(0) } else { chmod(larder.directory(of: "books"), 0o700) }
            guard larder.setAside.isEmpty else { _exit(6) }
            guard try database.value("a") == "1", database.policy == .high else { _exit(7) }
            _ = try larder.engine().deleteDatabase("books")
            _exit(0)
        }
    }

    @Test("a full disk loses no acknowledged writes", .enabled(if: SmallDisk.isPossible)) func aFullDisk() throws {
        let disk = try SmallDisk(bytes: 48 << 20)
        let time = ManualTimeSource()
        var options = EngineOptions()
        options.backgroundMaintenance = false
        let engine = try Engine.open(disk.path + "/larder", options: options, time: time)
        defer { engine.shutdown() }
        let database = try engine.openDatabase("books", policy: .middle)
        let other = try engine.openDatabase("other")
        try other.put("a", "1")
        let value = String(repeating: "x", count: 50_000)
        var acknowledged: [String] = []
        disk.fill(leaving: 500_000)
        for number in 0..<30 where errorCode({ try database.put("k\(number)", value) }) == nil {
            acknowledged.append("k\(number)")
        }
        #expect(acknowledged.count > 3)
        #expect(acknowledged.count < 15)
        // A checkpoint fails too, because the disk is full.
        engine.maintain()
        #expect(errorCode { try database.put("x", "1") } == .writesSuspended)
        for key in acknowledged { #expect(try database.value(key) == value) }
        // Creating another database on the full disk fails.
        #expect(errorCode { _ = try engine.openDatabase("third") } == .io)
        #expect(
            try FileSystem.list(disk.path + "/larder") == [
                "JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME", "books", "other",
            ])
        try Files.remove(disk.filler)
        engine.maintain()
        for key in acknowledged { #expect(try database.value(key) == value) }
        try database.put("x", "1")
        #expect(try database.value("x") == "1")
        #expect(try other.value("a") == "1")
    }

    private func openEngine(_ disk: SmallDisk) throws -> Engine {
        var options = EngineOptions()
        options.backgroundMaintenance = false
        return try Engine.open(disk.path + "/larder", options: options, time: ManualTimeSource())
    }

    /// A purge succeeds on a full disk, because users purge to free space.
    @Test(.enabled(if: SmallDisk.isPossible)) func aPurgeFreesSpaceOnAFullDisk() throws {
        let disk = try SmallDisk(bytes: 48 << 20)
        let engine = try openEngine(disk)
        defer { engine.shutdown() }
        let database = try engine.openDatabase("books", policy: .middle)
        for number in 0..<40 { try database.put("k\(number)", String(repeating: "x", count: 50_000)) }
        disk.fill(leaving: 0)
        _ = try database.purge()
        #expect(try database.contents() == [:])
        #expect(database.policy == .middle)
        try database.put("a", "1")
        #expect(try database.contents() == ["a": "1"])
    }

    /// Entries that were purged while the disk was full stay purged, whatever fails afterwards, and other databases are
    /// not affected.
    @Test(.enabled(if: SmallDisk.isPossible)) func entriesPurgedOnAFullDiskStayPurged() throws {
        let disk = try SmallDisk(bytes: 48 << 20)
        var engine = try openEngine(disk)
        let database = try engine.openDatabase("books", policy: .middle)
        let other = try engine.openDatabase("other")
        try other.put("kept", "1")
        let value = String(repeating: "x", count: 50_000)
        for round in 0..<3 {
            for number in 0..<20 { try database.put("k\(number)", value) }
            if round == 1 { try engine.save() }
            disk.fill(leaving: 0)
            #expect(errorCode { _ = try database.purge() } == nil, "a purge needs no room")
            #expect(errorCode { _ = try database.purge() } == nil)
            disk.fill(leaving: 0)
            let code = errorCode { try other.put("x", String(repeating: "x", count: 8_000_000)) }
            #expect(code == .commitFailed)
            #expect(try database.contents() == [:])
            try Files.remove(disk.filler)
            #expect(try database.contents() == [:])
            engine.maintain()
            try database.put("new", "1")
            try other.put("new", "1")
            try engine.save()
            #expect(try database.contents() == ["new": "1"])
            _ = try database.purge()
        }
        engine.shutdown()
        engine = try openEngine(disk)
        defer { engine.shutdown() }
        #expect(try engine.openDatabase("books").contents() == [:])
        #expect(try engine.openDatabase("other").contents() == ["kept": "1", "new": "1"])
    }

    /// Writes resume as soon as the disk has space for them, not only when much space is free.
    @Test(.enabled(if: SmallDisk.isPossible)) func writesResumeWhenALittleSpaceIsFree() throws {
        let disk = try SmallDisk(bytes: 48 << 20)
        let engine = try openEngine(disk)
        defer { engine.shutdown() }
        let database = try engine.openDatabase("books")
        try database.put("a", "1")
        try database.flush()
        let store = try #require(database.durableState.store)
        store.suspend(LarderError(.io, "no space left", operation: "test"))
        disk.fill(leaving: 500_000)
        engine.maintain()
        try database.put("b", "2")
        #expect(try database.contents() == ["a": "1", "b": "2"])
    }
}
