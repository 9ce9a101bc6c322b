import LarderPlatform
import Testing

@testable import LarderLevelDB

@Suite struct ErrorTests {
    /// LevelDB's errors have no code, only a text, from which the code is derived.
    @Test(arguments: [
        ("NotFound: x: y", LevelDBError.Code.notFound, "x: y"),
        ("Corruption: bad block", .corruption, "bad block"),
        ("Not implemented: this", .notSupported, "this"),
        ("Invalid argument: that", .invalidArgument, "that"),
        ("IO error: /a/b: No space left on device", .ioError, "/a/b: No space left on device"),
        ("IO error: ", .ioError, ""),
        ("IO error", .unknown, "IO error"),
        ("Unknown code(9): z", .unknown, "Unknown code(9): z"),
        ("IO error: /a/000005.ldb: Invalid argument", .corruption, "/a/000005.ldb: Invalid argument"),
        ("NotFound: /a/000005.ldb: No such file or directory", .corruption, "/a/000005.ldb: No such file or directory"),
        ("IO error: /a/000005.ldb: Input/output error", .ioError, "/a/000005.ldb: Input/output error"),
        ("IO error: /a/000005.ldb: Too many open files", .ioError, "/a/000005.ldb: Too many open files"),
        ("IO error: /a/000005.log: Invalid argument", .ioError, "/a/000005.log: Invalid argument"),
        ("Corruption: IO error: both", .corruption, "IO error: both"),
        ("", .unknown, ""),
    ])
    func theErrorCodeIsParsedFromLevelDBsMessage(status: String, code: LevelDBError.Code, message: String) {
        let error = LevelDBError(status: status, operation: "get", path: "/p", key: [1])
        #expect(error == LevelDBError(code: code, message: message, operation: "get", path: "/p", key: [1]))
    }

    @Test func theSystemsErrorNumberIsParsedFromLevelDBsMessage() {
        func number(_ status: String) -> Int32? {
            LevelDBError(status: status, operation: "write", path: "/p", key: nil).systemErrorNumber
        }
        #expect(number("IO error: /a/000005.log: \(SystemErrorText.of(EFBIG))") == EFBIG)
        #expect(number("Corruption: bad block") == nil)
    }

    @Test func errorsNameTheOperationKeyAndPath() {
        let error = LevelDBError(
            code: .corruption, message: "block checksum mismatch", operation: "get", path: "/a/b", key: bytes("user:1"))
        #expect(error.description == "get of key \"user:1\" in /a/b: corruption: block checksum mismatch")
        #expect("\(error)" == error.description)
        let keyless = LevelDBError(code: .ioError, message: "full", operation: "write", path: "/a/b")
        #expect(keyless.description == "write in /a/b: input/output error: full")
    }

    @Test func errorsShowKeysPrintablyAndShortened() {
        func shown(_ key: [UInt8]) -> String {
            LevelDBError(code: .closed, message: "m", operation: "get", path: "/p", key: key).description
        }
        #expect(shown([]) == "get of key \"\" in /p: closed: m")
        #expect(shown([0, 0x1b, 0x22, 0x5c, 0x7f, 0xff]) == #"get of key "\x00\x1b\"\\\x7f\xff" in /p: closed: m"#)
        #expect(shown(bytes("é\n")) == #"get of key "\xc3\xa9\x0a" in /p: closed: m"#)
        let long = [UInt8](repeating: 0x61, count: 65)
        let cut = String(repeating: "a", count: 64)
        #expect(shown([UInt8](long.dropLast())) == "get of key \"\(cut)\" in /p: closed: m")
        #expect(shown(long) == "get of key \"\(cut)… (65 bytes)\" in /p: closed: m")
    }

    @Test func everyErrorCodeHasItsOwnName() {
        let codes: [LevelDBError.Code] = [
            .notFound, .corruption, .notSupported, .invalidArgument, .ioError, .closed, .busy, .unknown,
        ]
        #expect(Set(codes).count == codes.count)
        #expect(Set(codes.map { $0.description }).count == codes.count)
    }

    /// After a failed append, only that write throws. Later writes succeed once there is space. But their records
    /// follow an incomplete record, and may not be found in the log. A writer must therefore close and reopen.
    ///
    /// The test runs in a separate process, because the limit applies to the whole process.
    @Test func aFailedWriteThrowsAndLaterWritesCanSucceed() async {
        await #expect(processExitsWith: .exitCode(42)) {
            signal(SIGXFSZ, SIG_IGN)
            let workspace = try Workspace()
            try workspace.database.put(bytes("before"), bytes("1"))
            guard let unlimited = ResourceLimit.fileSize.read() else { exit(1) }
            guard ResourceLimit.fileSize.set(current: 300_000) else { exit(2) }
            let value = [UInt8](repeating: 1, count: 10_000)
            let error = failure { () throws(LevelDBError) in
                for number in 0..<100 { try workspace.database.put(key(number), value) }
            }
            guard let error, error.code == .ioError, error.operation == "write", error.key == nil,
                error.message.contains("File too large")
            else { exit(3) }
            let batch = WriteBatch()
            batch.put(bytes("batch"), value)
            let second = failure { () throws(LevelDBError) in try workspace.database.write(batch) }
            guard let second, second.code == .ioError, second.operation == "write", second.key == nil else { exit(4) }
            guard ResourceLimit.fileSize.set(unlimited) else { exit(5) }
            try workspace.database.put(bytes("after"), bytes("1"))
            guard try workspace.database.get(bytes("after")) == bytes("1") else { exit(6) }
            // Entries that were written before the failure exist after reopening.
            try workspace.reopen()
            guard try workspace.database.get(bytes("before")) == bytes("1") else { exit(7) }
            try workspace.database.put(bytes("again"), bytes("1"))
            try workspace.reopen()
            guard try workspace.database.get(bytes("again")) == bytes("1") else { exit(8) }
            workspace.directory.remove()
            exit(42)
        }
    }
}
