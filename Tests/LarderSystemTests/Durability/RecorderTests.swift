import LarderCrashMachine
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that the recorder sees every change of a program's files, or reports that it does not. All simulated accidents
/// depend on this.
@Suite(.enabled(if: FaultLibrary.isAvailable)) struct RecorderTests {
    private static func differences(_ faults: FaultControl) throws -> [String] {
        let trace = FileTrace(faults.trace)
        let records = trace.records()
        var disk = RecordedDisk(trace, records)
        disk.advance(to: records.count)
        var random = SeededGenerator(seed: 1)
        return try disk.image(after: .kill, using: &random).differences(from: faults.root)
    }

    @Test(
        "replaying a complete trace gives the same files as the daemon's",
        arguments: [["--checkpoint", "2K"], ["--checkpoint", "16K", "--max-disk", "64M", "--durability", "always"]])
    func aCompleteTraceRebuildsTheFilesOfTheDaemon(_ options: [String]) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place, traceBytes: 256 << 20)
        var random = SeededGenerator(seed: testSeed())
        for life in 0..<3 {
            let daemon = try DaemonProcess(options, in: place, faults: faults)
            let client = try daemon.connect()
            for line in [
                "SELECT books", "SET a 1 TAGS 1 t", "SET b 2", "PURGE TAG t", "PURGE PREFIX b", "POLICY low", "SAVE",
                "FLUSHDB", "SET c 3", "SELECT mirror", "ORIGIN redis://127.0.0.1:1/\(life) AROUND", "SELECT 0",
                "SWAPDB 0 1", "FUNCTION FLUSH", "BACKUP \(place.path)/backups-\(life)", "PURGE EXPIRED",
            ] {
                let reply = try client.call(line)
                #expect(!reply.hasPrefix("-"), "\(line): \(reply)")
            }
            for number in 0..<100 {
                let value = random.bytes(count: number == 50 ? 5 << 20 : Int.random(in: 0...3000, using: &random))
                try client.send(encodeRequest([Array("SET".utf8), Array("k\(number)".utf8), value]))
                #expect(try client.receive() == Array("+OK\r\n".utf8))
            }
            client.close()
            if life == 1 { try faults.kill(daemon) } else { #expect(try daemon.stop() == .exited(0)) }
            #expect(faults.isTraceComplete)
            #expect(try Self.differences(faults) == [], "after life \(life)")
        }
        let used: [(String, FileCalls)] = [
            ("create", .create), ("write", .write), ("fsync", .sync), ("fsync of a directory", .syncDirectory),
            ("truncate", .truncate), ("allocate", .allocate), ("rename", .rename), ("link", .link),
            ("unlink", .unlink), ("mkdir", .makeDirectory), ("rmdir", .removeDirectory),
        ]
        for (name, calls) in used { #expect(faults.made(calls) > 0, "no \(name) was seen") }
    }

    /// Runs lines of Python in an empty directory.
    private func run(_ lines: [String]) throws -> (faults: FaultControl, place: TemporaryDirectory) {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place, traceBytes: 1 << 20)
        let head = [
            "import os, ctypes", "here = '\(place.path)/larder/'", "os.mkdir(here[:-1])", "libc = ctypes.CDLL(None)",
            "a = os.open(here + 'a', os.O_RDWR | os.O_CREAT)", "os.write(a, b'x' * 10000)", "os.lseek(a, 0, 0)",
            "b = os.open(here + 'b', os.O_RDWR | os.O_CREAT)",
        ]
        let (end, _, errors) = try ChildProcess.run(
            "env", try faults.environment() + ["python3", "-c", (head + lines).joined(separator: "\n")],
            directory: place.path)
        try #require(end == .exited(0), "\(errors)")
        return (faults, place)
    }

    @Test(
        "replaying a recorded call gives the same files",
        arguments: [
            "os.posix_fallocate(b, 0, 9000)", "libc.fallocate(b, 1, ctypes.c_long(0), ctypes.c_long(9000))",
            "os.link(here + 'a', here + 'c')", "os.rename(here + 'a', here + 'b')",
            "libc.renameat2(-100, (here + 'a').encode(), -100, (here + 'c').encode(), 0)",
            "os.open(here + 'a', os.O_WRONLY | os.O_TRUNC)", "os.truncate(here + 'a', 20000)", "os.ftruncate(a, 5)",
            "os.pwritev(a, [b'12', b'345'], 7)", "os.writev(a, [b'12', b'345'])", "os.pwrite(b, b'z', 5000)",
            "os.write(os.open(here + 'a', os.O_WRONLY | os.O_APPEND), b'end')", "os.write(os.dup(a), b'copy')",
            "os.mkdir(here + 'd'); os.rename(here + 'a', here + 'd/a')", "os.unlink(here + 'a')",
            "os.mkdir(here + 'd'); os.rmdir(here + 'd')",
        ]) func aRecordedCallIsRebuilt(_ line: String) throws
    {
        let (faults, place) = try run([line])
        #expect(faults.isTraceComplete)
        #expect(try Self.differences(faults) == [])
        withExtendedLifetime(place) {}
    }

    @Test(arguments: [
        "os.copy_file_range(a, b, 100)", "os.sendfile(b, a, 0, 100)", "os.symlink('a', here + 'c')",
        "libc.fallocate(a, 3, ctypes.c_long(0), ctypes.c_long(4096))",
        "libc.renameat2(-100, (here + 'a').encode(), -100, (here + 'b').encode(), 2)",
        "import mmap; mmap.mmap(a, 4096)[0] = 65",
    ]) func aCallThatCannotBeRecordedMakesTheTraceIncomplete(_ line: String) throws {
        let (faults, place) = try run([line])
        #expect(!faults.isTraceComplete)
        withExtendedLifetime(place) {}
    }

    /// The recorder handles every function that changes files and is imported by the daemon or LevelDB.
    @Test func theRecorderHandlesAllCallsThatChangeFiles() throws {
        let library = try FaultLibrary.path()
        let daemon = try DaemonProcess.program()
        let (end, output, _) = try ChildProcess.run("ldd", [daemon])
        try #require(end == .exited(0))
        let levelDB = try #require(
            output.split(separator: "\n").first { $0.contains("libleveldb") }?.split(separator: " ").first {
                $0.hasPrefix("/")
            })
        func symbols(_ arguments: [String]) throws -> Set<String> {
            let (end, output, errors) = try ChildProcess.run("nm", arguments)
            try #require(end == .exited(0), "\(errors)")
            return Set(
                output.split(separator: "\n").compactMap {
                    $0.split(separator: " ").last?.split(separator: "@").first.map(String.init)
                })
        }
        let recorded = try symbols(["-D", "--defined-only", library])
        let imported = try symbols(["-D", "--undefined-only", daemon]).union(
            symbols(["-D", "--undefined-only", String(levelDB)]))
        let changing: Set<String> = [
            "open", "open64", "openat", "openat64", "creat", "creat64", "mkstemp", "mkstemp64", "mkostemp", "tmpfile",
            "write", "pwrite", "pwrite64", "writev", "pwritev", "pwritev64", "pwritev2", "copy_file_range", "sendfile",
            "sendfile64", "splice", "truncate", "truncate64", "ftruncate", "ftruncate64", "fallocate", "fallocate64",
            "posix_fallocate", "posix_fallocate64", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync",
            "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "remove",
            "rmdir", "mkdir", "mkdirat", "mknod", "mkfifo", "mmap", "mmap64", "dup", "dup2", "dup3", "fcntl", "fcntl64",
            "close", "freopen", "freopen64", "io_submit", "io_uring_enter",
        ]
        let used = imported.intersection(changing)
        #expect(used.isSuperset(of: ["fallocate", "rename", "fsync"]) || used.count > 10, "\(used)")
        // These functions are used only for standard descriptors, not for files of a larder.
        let escaping = used.subtracting(recorded).subtracting(["dup2", "dup3", "freopen", "freopen64"])
        #expect(escaping.isEmpty)
    }
}
