import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderctl

/// Tests of `larderctl export`, and of `import` of its files.
@Suite struct LarderctlExportTests {
    private let place: TemporaryDirectory
    private let daemon: DaemonProcess
    private let larderctl: Larderctl
    private var file: String { place.path + "/larder/file" }

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        // Faults apply to files in this directory: see FaultControl.
        try FileSystem.makeDirectory(place.path + "/larder")
        daemon = try DaemonProcess()
        larderctl = Larderctl(socketPath: daemon.socketPath)
    }

    /// All lines except the first one, which contains a time and a directory.
    private static func lines(_ bytes: [UInt8]) -> Substring {
        let text = String(decoding: bytes, as: UTF8.self)
        return text[(text.utf8.firstIndex(of: 0x0A) ?? text.startIndex)...]
    }

    private func lines(_ path: String) throws -> Substring { Self.lines(try Files.read(path)) }

    @Test func pendingWritesAreNotExported() throws {
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN unix:///nowhere BEHIND") == "+OK\r\n")
        #expect(try client.call("SET a 1") == "+OK\r\n")
        let all = try larderctl("export")
        #expect(all.exitCode == 0 && all.text.contains(#""database":"0""#) && !all.text.contains("outbox"), "\(all)")
        let named = try larderctl("export", "--database", "0.outbox", file)
        #expect(named.exitCode == 0, "\(named)")
        #expect(try client.call("ORIGIN NONE DISCARD") == "+OK\r\n")
        let imported = try larderctl("import", file)
        #expect(imported.exitCode == 2 && imported.errors.contains("'0.outbox'"), "\(imported)")
        _ = try client.call(["SELECT", "0.outbox"])
        #expect(try client.call("DBSIZE") == ":0\r\n")
    }

    /// Stores entries with values, policies and tags of all kinds.
    private static func fill(_ client: SocketClient) throws {
        func call(_ words: String...) throws { _ = try client.call(words) }
        func call(_ key: [UInt8], _ value: [UInt8], _ more: String...) throws {
            try client.send(encodeRequest([Array("SET".utf8), key, value] + more.map { Array($0.utf8) }))
            let reply = String(decoding: try client.receive(), as: UTF8.self)
            #expect(reply == "+OK\r\n", "a key of \(key.count), a value of \(value.count) bytes")
        }
        var random = SeededGenerator(seed: 7)
        try call("POLICY", "low", "GRACE", "100", "JITTER", "3")
        let values: [String] = [
            "", "text", #"{"a": [1, 2.50, "x"]}"#, "42", "1e999", "-0", "null", "\"\"", " 1", "1 ", "{\n\"a\":1}\n",
            "[1",
            "\u{9b}31m", "\u{7f}", "é\u{2028}\\\"", #""\ud800""#, "\"\u{85}\"", "tab\tline\r\n", "\u{a0}\u{a0}",
        ]
        // These values are longer than the pieces in which values are written.
        let long = [
            "x" + String(repeating: "é", count: 200_000), "[" + String(repeating: "1,", count: 200_000) + "1]",
            String(repeating: "\u{85}", count: 1000) + String(repeating: "y", count: 300_000),
        ]
        for (number, value) in (values + long).enumerated() {
            try call(Array("text:\(number)".utf8), Array(value.utf8))
        }
        for number in 0..<20 {
            try call([0xFF, UInt8(number)], random.bytes(count: number * 50))
        }
        try call(Array(repeating: 0x0A, count: 200), Array(repeating: 1, count: 1000))
        try call(random.bytes(count: 65_536), Incompressible.bytes(count: 400_000, &random))
        try call([], Array("the empty key".utf8))
        try call("SET", "long", String(repeating: "x\u{0}\"", count: 100_000))
        for policy in ["highest", "high", "middle", "low", "lowest", "never", "3600.5"] {
            // The entry may become stale during the test, which makes no difference.
            try call("SET", "policy:\(policy)", "v", "POLICY", policy, "GRACE", "5000")
        }
        try call("SET", "stale", "old", "PX", "1", "GRACE", "5000", "CODEC", "json", "TAGS", "2", "t:1", "t 2")
        try call("SELECT", "x.y-z_1")
        try call("POLICY", "every:7200")
        try call("SET", "k", "v", "GRACE", "0.5", "CODEC", "plist")
        try call("SELECT", String(repeating: "d", count: 64))
        try call("SET", "k", "v", "CODEC", "custom", "TAGS", "1", "t")
        try call("SELECT", "15")
        try call("POLICY", "never")
        try call("SET", "k", "[1]")
    }

    @Test func anImportRestoresTheExportedEntries() throws {
        let client = try daemon.connect()
        try Self.fill(client)
        // Wait until this entry is stale.
        while try client.call("GET stale") != "$-1\r\n" { nap() }
        let made = try larderctl("export", file)
        #expect(made.exitCode == 0 && made.text.contains("57 entries of 4 databases"), "\(made)")
        #expect(!FileSystem.exists(file + ".part"))
        let piped = try larderctl("export")
        #expect(try Self.lines(piped.output) == lines(file))

        let other = try DaemonProcess()
        let copy = Larderctl(socketPath: other.socketPath)
        let done = try copy("import", file)
        #expect(done.exitCode == 0 && done.text == "imported 57 entries\n" && done.errors == "", "\(done)")
        #expect(try Self.lines(copy("export").output) == lines(file))
        #expect(try copy("get", "text:2").text == #"{"a": [1, 2.50, "x"]}"#)
        #expect(!FileSystem.exists(file + ".position"))
        // Importing the file again, from a pipe, changes nothing.
        let again = try copy("import", "--json", "-", input: piped.output)
        let report = #"{"imported":57,"expired":0,"kept":0,"leftOut":0,"invalid":0,"resumed":false,"notes":[]}"#
        #expect(again.text == report + "\n", "\(again)")
        #expect(try Self.lines(copy("export").output) == lines(file))
    }

    @Test func exportCanBeLimitedToDatabasesAndAPrefix() throws {
        for database in ["a", "b", "c"] {
            for key in ["x1", "x2", "y"] {
                #expect(try larderctl("--database", database, "SET", key, "v").exitCode == 0)
            }
        }
        #expect(try larderctl("export", "--database", "a", "--database", "c", "--prefix", "x", file).exitCode == 0)
        let keys = try Files.read(file).split(separator: 0x0A).filter {
            String(decoding: $0, as: UTF8.self).contains("\"key\"")
        }
        #expect(keys.count == 4)
        let missing = try larderctl("export", "--database", "aa")
        #expect(missing.exitCode == 2 && missing.errors.contains("no database 'aa'; did you mean a?"), "\(missing)")
        #expect(try larderctl("--database", "a", "purge").exitCode == 0)
        let one = try larderctl("import", file, "--database", "a", "--prefix", "x2", "--into", "new", "--json")
        #expect(one.text.hasPrefix(#"{"imported":1,"expired":0,"kept":0,"leftOut":3,"#), "\(one)")
        #expect(try larderctl("--database", "new", "keys").text == "x2\n")
        #expect(try larderctl("--database", "a", "keys").text == "")
    }

    @Test func anImportKeepsThePolicyOfAnExistingDatabase() throws {
        #expect(try larderctl("SET", "k", "v").exitCode == 0)
        #expect(try larderctl("export", file).exitCode == 0)
        #expect(try larderctl("policy", "low").exitCode == 0)
        let result = try larderctl("import", file)
        #expect(
            result.exitCode == 0 && result.errors.contains("'0' keeps its policy low; the file has lowest"),
            "\(result)")
        #expect(try larderctl("policy").text.hasPrefix("low, "))
        #expect(try larderctl("SET", "k", "newer").exitCode == 0)
        #expect(try larderctl("import", file).text == "imported 0 entries, 1 kept\n")
        #expect(try larderctl("get", "k").text == "newer")
    }

    @Test func indexesAreExportedAndImported() throws {
        let client = try daemon.connect()
        _ = try client.call(["SET", "b:1", #"{"year":1}"#])
        let prefix = encodeRequest(
            ["INDEX", "CREATE", "odd", "PREFIX"].map { Array($0.utf8) } + [
                [0xFF, 0], Array("ON".utf8), Array("$.DESC".utf8),
            ])
        #expect(try client.call("INDEX CREATE byYear ON year DESC a.b") == "+OK\r\n")
        #expect(try client.call(prefix) == Array("+OK\r\n".utf8))
        _ = try client.call("SELECT shop")
        _ = try client.call(["SET", "s", #"{"at":[1,2]}"#])
        #expect(try client.call("INDEX CREATE places PREFIX s GEO ON at") == "+OK\r\n")
        #expect(try larderctl("export", file).exitCode == 0)
        let first = String(decoding: try Files.read(file).prefix { $0 != 0x0A }, as: UTF8.self)
        #expect(
            first.hasSuffix(
                #","prefix":"","indexes":[{"database":"0","name":"byYear","prefix":"","paths":["year DESC","a.b"]},"#
                    + #"{"database":"0","name":"odd","prefix":{"base64":"/wA="},"paths":["DESC"]},"#
                    + #"{"database":"shop","name":"places","prefix":"s","paths":["at GEO"]}]}"#), "\(first)")

        let other = try DaemonProcess()
        let copy = Larderctl(socketPath: other.socketPath)
        func lists(_ tool: Larderctl, _ database: String) throws -> [Substring] {
            // Without the states and the counts.
            let text = try tool("--database", database, "index", "--json").text
            return text.split(separator: "{").map { $0.split(separator: #""state""#)[0] }
        }
        let done = try copy("import", file)
        #expect(done.exitCode == 0 && done.text == "imported 2 entries\n" && done.errors == "", "\(done)")
        for database in ["0", "shop"] { #expect(try lists(copy, database) == lists(larderctl, database)) }
        #expect(try copy("query", "keys", "where", "year", "=", "1").text == "KEY\nb:1\n")
        // An index of the same name is kept, and reported.
        #expect(try copy("index", "create", "byYear", "on", "year").exitCode == 0)
        #expect(try copy("--database", "shop", "index", "drop", "places").exitCode == 0)
        let again = try copy("import", "--database", "0", file)
        #expect(again.exitCode == 0 && again.errors.contains("'0' keeps its own index 'byYear'"), "\(again)")
        #expect(try copy("index").text.contains("byYear  year  ") && lists(copy, "shop") == ["[]\n"])
        // All indexes of a database are created in the one that gets its entries.
        #expect(try copy("import", "--database", "shop", "--into", "new", file).exitCode == 0)
        #expect(try lists(copy, "new") == lists(larderctl, "shop"))
        // An index that the daemon refuses is reported.
        let bad = #"{"database":"0","name":"a b","prefix":"","paths":["x"]}"#
        let header = Self.header.replacing("}", with: #","indexes":[\#(bad)]}"#)
        let line = #"{"database":"0","policy":"low"}"#
        let refused = try copy("import", input: Array("\(header)\n\(line)\n{\"end\":true,\"entries\":0}\n".utf8))
        #expect(
            refused.exitCode == 0 && refused.errors.contains("'0' does not get all indexes: ERR a name"), "\(refused)")
    }

    // MARK: Lines

    private static let header =
        #"{"format":"larder-entries","version":1,"created":1,"larder":null,"databases":["0"],"all":true,"prefix":""}"#

    @Test(arguments: [
        ("", "it is not a JSON object in UTF-8: the error is at byte 1 of the line"),
        (#"{"database":"0","key":"k","stored-at":1,"json":tru}"#, "the error is at byte"),
        (#"{"key":"k","stored-at":1,"json":1}"#, #"its "database" is missing"#),
        (#"{"database":"0","stored-at":1,"json":1}"#, #"its "key" is missing"#),
        (#"{"database":"0","key":"k","json":1}"#, #"its "stored-at" is missing"#),
        (#"{"database":"0","key":"k","stored-at":1}"#, #"neither "json" nor "value""#),
        (#"{"database":"0","key":"k","stored-at":1,"json":1,"value":""}"#, #"both "json" and "value""#),
        (#"{"database":"0","key":"k","key":"l","stored-at":1,"json":1}"#, "'key' is duplicate"),
        (#"{"database":"0","key":1,"stored-at":1,"json":1}"#, #"its "key" must be a string"#),
        (#"{"database":"0","key":{"base64":"A"},"stored-at":1,"json":1}"#, #"its "key" must be a string"#),
        (#"{"database":"0","key":{"base64":"QR=="},"stored-at":1,"json":1}"#, #"its "key" must be a string"#),
        (
            #"{"database":"0","key":"k","stored-at":1.5,"json":1}"#,
            #"its "stored-at" is 1.5, and must be a whole number"#
        ),
        (#"{"database":"0","key":"k","stored-at":-1,"json":1}"#, "must be a whole number, 0 or more"),
        (
            #"{"database":"0","key":"k","stored-at":1,"rule":"own","json":1}"#,
            #"its rule is "own" with the deadline missing"#
        ),
        (#"{"database":"0","key":"k","stored-at":1,"rule":"x","json":1}"#, #"its rule is "x""#),
        (#"{"database":"0","key":"k","stored-at":1,"grace":9000000000001,"json":1}"#, "from 0 to 9000000000000"),
        (#"{"database":"0","key":"k","stored-at":1,"codec":"x","json":1}"#, #"its codec is "x""#),
        (
            #"{"database":"0","key":"k","stored-at":1,"tags":"x","json":1}"#,
            #"its "tags" are "x", and must be an array"#
        ),
        (#"{"database":"0","key":"k","stored-at":1,"tags":[""],"json":1}"#, "a tag must have 1 to 128 bytes"),
        (#"{"database":"0","key":"k","stored-at":1,"tagz":[],"json":1}"#, #"unknown member "tagz"; did you mean"#),
        (#"{"database":"0","policy":"often"}"#, #"its policy is "often", and must be one of highest"#),
        (header, "the first line of another export"),
        (#"{"end":true,"entries":7}"#, "it states 7 entries, but the lines before it have 1"),
    ])
    func importReportsInvalidLines(line: String, message: String) throws {
        let good = #"{"database":"0","key":"good","stored-at":1,"rule":"never","json":1}"#
        let better = #"{"database":"0","key":"better","stored-at":1,"rule":"never","json":1}"#
        let end = #"{"end":true,"entries":2}"#
        let isEnd = line.hasPrefix("{\"end\"")
        let text = [Self.header, good, line] + (isEnd ? [] : [better, end])
        let input = Array(text.map { $0 + "\n" }.joined().utf8)
        let stopped = try larderctl("import", input: input)
        #expect(stopped.exitCode == 5 && stopped.errors.contains("standard input, line 3: "), "\(stopped)")
        #expect(stopped.errors.contains(message), "\(stopped.errors)")
        #expect(try larderctl("keys").text == "good\n", "only the lines before the invalid one are imported")
        let passed = try larderctl("import", "--skip-invalid", "--json", input: input)
        #expect(passed.exitCode == 0 && passed.text.contains(#""invalid":1,"#), "\(passed)")
        #expect(try larderctl("keys").text == (isEnd ? "good\n" : "better\ngood\n"))
    }

    @Test(arguments: [
        ("", "it is empty"), ("x", "its first line is incomplete"), ("x\n", "its first line: it is not a JSON object"),
        (#"{"end":true,"entries":0}"# + "\n", #"the first line must have "format""#),
        (#"{"format":"other","version":1}"# + "\n", #"its format is "other", not "larder-entries""#),
        (header.replacing(":1,", with: ":2,") + "\n", "its version is 2, but this larderctl reads version 1"),
        (header.replacing("}", with: #","indexes":1}"#) + "\n", #"its "indexes" are 1, and must be an array"#),
        (
            header.replacing("}", with: #","indexes":[{"database":"0","prefix":"","paths":[]}]}"#) + "\n",
            "must have a name"
        ),
    ])
    func importRefusesFilesThatAreNotExports(text: String, message: String) throws {
        let result = try larderctl("import", input: Array(text.utf8))
        #expect(result.exitCode == 5 && result.errors.contains(message), "\(result)")
    }

    /// A line without a line end is incomplete, even if it looks valid.
    @Test("the import of a truncated file reports where it ends") func importReportsATruncatedFile() throws {
        let good = #"{"database":"0","key":"good","stored-at":1,"rule":"never","json":1}"#
        let half = try larderctl(
            "import", input: Array("\(Self.header)\n\(good)\n\(good.replacing("good", with: "half"))".utf8))
        #expect(half.exitCode == 5 && half.errors.contains("ends within line 3, which is incomplete"), "\(half)")
        #expect(try larderctl("keys").text == "good\n")
        let short = try larderctl("import", input: Array("\(Self.header)\n\(good)\n".utf8))
        #expect(
            short.exitCode == 5 && short.errors.contains("ends after line 2, without the last line"), "\(short)")
    }

    @Test func importCountsExpiredEntries() throws {
        let lines = [
            Self.header, #"{"database":"0","key":"a","stored-at":1,"json":1}"#,
            #"{"database":"0","key":"b","stored-at":1,"rule":"own","deadline":5,"grace":5,"json":1}"#,
            #"{"database":"0","key":"c","stored-at":1,"rule":"own","deadline":5,"grace":9000000000000,"json":1}"#,
            #"{"database":"0","key":"d","stored-at":1,"rule":"never","json":1}"#, #"{"end":true,"entries":4}"#,
        ]
        let result = try larderctl("import", input: Array(lines.map { $0 + "\n" }.joined().utf8))
        #expect(result.text == "imported 2 entries, 2 had expired\n", "\(result)")
        #expect(try larderctl("keys").text == "d\n")
        #expect(try larderctl("meta", "c").text.contains("state      stale\n"))
    }

    // MARK: Interruptions

    /// An interrupted export can have any length; the next call must complete it.
    @Test func anExportResumesAfterTheLastCompleteLine() throws {
        let client = try daemon.connect()
        try Self.fill(client)
        #expect(try larderctl("--database", "0", "DEL", "long", "stale", "policy:high").exitCode == 0)
        #expect(try larderctl("export", file).exitCode == 0)
        let whole = try Files.read(file)
        var random = SeededGenerator(seed: testSeed())
        let ends = whole.indices.filter { whole[$0] == 0x0A }.map { $0 + 1 }
        let cuts = [0, 1, ends[0] - 1, ends[0], ends[1], ends[1] + 1, whole.count - 1, whole.count]
        for cut in cuts + (0..<5).map({ _ in random.below(whole.count) }) + [ends[ends.count - 5]] {
            try Files.remove(file)
            try Files.write(file + ".part", Array(whole[..<cut]))
            let result = try larderctl("export", file)
            #expect(result.exitCode == 0, "\(cut): \(result)")
            #expect(try lines(file) == Self.lines(whole), "\(cut)")
            #expect(!FileSystem.exists(file + ".part"))
        }
    }

    @Test func anExportDoesNotOverwriteAnotherUnfinishedExport() throws {
        #expect(try larderctl("SET", "k", "v").exitCode == 0)
        #expect(try larderctl("export", file).exitCode == 0)
        let part = try Files.read(file).dropLast(30)
        try Files.write(file + ".part", Array(part))
        let other = try larderctl("export", "--prefix", "x", file)
        #expect(other.exitCode == 2 && other.errors.contains("is an unfinished export of the larder"), "\(other)")
        #expect(try Files.read(file + ".part").count > 100, "the unfinished export is not changed")
        for (text, message) in [
            ("{\"end\":true,\"entries\":1}\n", "is not an unfinished export"),
            ("hello\n", "line 1, is not a line of an export"),
        ] {
            try Files.write(file + ".part", Array(text.utf8))
            let foreign = try larderctl("export", file)
            #expect(foreign.exitCode == 5 && foreign.errors.contains(message), "\(foreign)")
            #expect(try Files.read(file + ".part") == Array(text.utf8))
        }
        let folder = try larderctl("export", place.path)
        #expect(folder.exitCode == 2 && folder.errors.contains("is not a file"), "\(folder)")
    }

    /// The export is killed at each of its file operations, or stopped by a full disk. The next call completes it.
    @Test(.enabled(if: FaultLibrary.isAvailable)) func anExportInterruptedAtAnyPointCanBeCompleted() throws {
        let client = try daemon.connect()
        for number in 0..<2500 { _ = try client.call(["SET", "key:\(number)", "value of some length \(number)"]) }
        let faults = try FaultControl(root: place.path + "/larder", path: place.path + "/faults")
        let faulty = Larderctl(socketPath: daemon.socketPath, faults: faults)
        faults.count(.changing)
        #expect(try faulty("export", file).exitCode == 0)
        let (calls, whole) = (faults.matched(), try lines(file))
        #expect(calls > 4)
        for number in 1...calls {
            for rule in [
                FaultControl.Rule.killing(.changing, at: number), .killing(.changing, at: number, after: true),
                .failing(.changing, ENOSPC, from: number),
            ] {
                try Files.remove(file)
                faults.arm(rule)
                let result = try faulty("export", file)
                #expect(result.exitCode == 137 || result.exitCode == 5, "\(number): \(result)")
                if result.exitCode == 5 { #expect(result.errors.contains("No space left on device"), "\(result)") }
                faults.disarm()
                #expect(try faulty("export", file).exitCode == 0)
                #expect(try lines(file) == whole, "\(number)")
            }
        }
    }

    @Test("an export handles a closed pipe and a full disk") func pipesThatCloseAndFullDisks() throws {
        let client = try daemon.connect()
        for number in 0..<3000 { _ = try client.call("SET key:\(number) \(number)") }
        let program = try DaemonProcess.program("larderctl")
        let (end, output, errors) = try ChildProcess.run(
            "sh", ["-c", "\(program) --socket \(daemon.socketPath) export | head -n 2"])
        #expect(end == .exited(0) && errors == "" && output.split(separator: "\n").count == 2)
        #if os(Linux)
            let full = try larderctl.run([Array("export".utf8)], outputPath: "/dev/full")
            #expect(full.exitCode == 5 && full.errors.contains("No space left on device"), "\(full)")
        #endif
    }

    #if os(Linux)
        /// The progress line is overwritten repeatedly, and removed at the end.
        @Test func exportShowsItsProgressOnATerminal() throws {
            let client = try daemon.connect()
            for number in 0..<3000 { _ = try client.call("SET key:\(number) \(number)") }
            let shown = String(
                decoding: try larderctl.runOnTerminal(["export", file], joinsErrors: true), as: UTF8.self)
            #expect(
                shown.contains(/\r\d+ %  \d+ of 3000 entries  \d+\/s  0:\d\d left/) || shown.contains("\rpreparing"),
                "\(shown)")
            #expect(shown.contains(/\r +\r.*3000 entries of 1 database/) && !shown.contains("\\r"), "\(shown)")
        }
    #endif

    /// After a line was corrected, the lines before it are not imported again. A stored position is ignored for other
    /// files.
    @Test func anImportResumesWhereItStopped() throws {
        let good = (0..<1000).map { #"{"database":"0","key":"\#($0)","stored-at":1,"rule":"never","json":1}"# }
        func write(_ bad: String, _ first: String = Self.header) throws {
            let lines = [first] + good[..<700] + [bad] + good[700...] + [#"{"end":true,"entries":1001}"#]
            try Files.write(file, Array(lines.map { $0 + "\n" }.joined().utf8))
        }
        try write("bad")
        #expect(try larderctl("import", file).exitCode == 5)
        #expect(try larderctl("DBSIZE").text == "700\n")
        #expect(FileSystem.exists(file + ".position"))
        #expect(try larderctl("del", "5").exitCode == 0)
        let repaired = #"{"database":"0","key":"mended, and longer","stored-at":1,"rule":"never","json":1}"#
        try write(repaired)
        let result = try larderctl("import", file)
        #expect(result.text == "imported 1001 entries; including the previous call\n", "\(result)")
        #expect(try larderctl("DBSIZE").text == "1000\n", "an entry removed meanwhile is not restored")
        #expect(!FileSystem.exists(file + ".position"))

        // The position is ignored for another file with the same name, for other options, and if it is malformed.
        try write("bad")
        #expect(try larderctl("import", file).exitCode == 5)
        let position = try Files.read(file + ".position")
        try write(repaired, Self.header.replacing(#""created":1"#, with: #""created":2"#))
        #expect(try larderctl("import", "--json", file).text.contains(#""resumed":false,"notes":["#))
        try write(repaired)
        try Files.write(file + ".position", position)
        let into = try larderctl("import", "--into", "other", file)
        #expect(into.errors.contains("starts from the beginning") && into.text == "imported 1001 entries\n", "\(into)")
        try Files.write(file + ".position", Array("{}".utf8))
        #expect(try larderctl("import", file).text == "imported 1001 entries\n")
    }

    @Test func theFirstPositionOfAnImportIsStoredAfterTwoSeconds() {
        let identity = ImportPosition.Identity(header: 1, larder: "", options: "")
        func position(_ line: Int) -> ImportPosition {
            ImportPosition(identity: identity, offset: line * 10, line: line, tail: 0)
        }
        var settling = SettlingPosition()
        #expect(settling.next(position(2), now: 5_000) == nil)
        #expect(settling.next(position(3), now: 6_999) == nil, "a power failure may lose its entries")
        #expect(settling.next(position(4), now: 7_000) == position(2))
        #expect(settling.next(position(5), now: 8_999) == nil)
        #expect(settling.next(position(6), now: 9_000) == position(4))
    }

    /// The import is killed at an arbitrary time. The next call completes it.
    @Test func aKilledImportIsCompletedByTheNextCall() throws {
        let lines =
            [Self.header]
            + (0..<20_000).map { #"{"database":"0","key":"\#($0)","stored-at":1,"rule":"never","json":1}"# }
            + [#"{"end":true,"entries":20000}"#]
        try Files.write(file, Array(lines.map { $0 + "\n" }.joined().utf8))
        let client = try daemon.connect()
        let child = try ChildProcess(
            try DaemonProcess.program("larderctl"), ["--socket", daemon.socketPath, "import", file])
        while try client.call("GET 300") == "$-1\r\n" { nap() }
        child.killNow()
        let done = try larderctl("import", file)
        #expect(done.exitCode == 0 && done.text.hasPrefix("imported 20000 entries"), "\(done)")
        #expect(try larderctl("DBSIZE").text == "20000\n")
    }

    @Test func withoutADaemonExportAndImportExitWithThree() throws {
        #expect(try larderctl("SET", "k", "v").exitCode == 0)
        #expect(try larderctl("export", file).exitCode == 0)
        try daemon.stop()
        #expect(try larderctl("export").exitCode == 3)
        #expect(try larderctl("import", file).exitCode == 3)
    }
}
