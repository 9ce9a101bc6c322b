import LarderClient
import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderctl

/// Tests that each rule has a finding at its threshold, and none just below it.
@Suite struct DoctorRuleTests {
    struct Case: Sendable, CustomStringConvertible {
        let rule: String
        let speaks: @Sendable (inout DoctorFacts) -> Void
        let isSilent: @Sendable (inout DoctorFacts) -> Void

        var description: String { rule }

        init(
            _ rule: String, _ speaks: @escaping @Sendable (inout DoctorFacts) -> Void,
            not isSilent: @escaping @Sendable (inout DoctorFacts) -> Void
        ) {
            (self.rule, self.speaks, self.isSilent) = (rule, speaks, isSilent)
        }

        /// Creates a case from two replies of INFO.
        init(_ rule: String, _ speaks: String, not isSilent: String) {
            self.init(rule, { $0.info = InfoText(speaks) }, not: { $0.info = InfoText(isSilent) })
        }
    }

    private static func clients(_ field: String, _ value: String) -> [[String: String]] {
        [["id": "7", "name": "web", field: value]]
    }

    static let cases: [Case] = [
        Case("writes-refused", "aof_last_write_status:err", not: "aof_last_write_status:ok"),
        Case(
            "database-unusable", { $0.databases = [(name: "books", state: "damaged")] },
            not: {
                $0.databases = ["open", "closed"].map { (name: "books", state: $0) }
            }),
        Case("origins-unusable", "origins_unusable:1", not: "origins_unusable:0"),
        Case(
            "origin-away", "origin_0:state=down,down-milliseconds=61000,outbox=3", not: "origin_0:state=up,outbox=3"),
        Case(
            "damage-met", "databases_missing:1",
            not: "salvages:0\r\njournal_damages:0\r\ndatabases_set_aside:0\r\ndatabases_missing:0\r\nfact_losses:0"),
        Case("clock-set-back", "clock_offset_milliseconds:60001", not: "clock_offset_milliseconds:60000"),
        Case("file-system-full", { $0.disk = (4, 100) }, not: { $0.disk = (5, 100) }),
        Case("no-disk-limit", "disk_limit:0", not: "disk_limit:16777216"),
        Case(
            "evicting", "evicted_entries:1000\r\nkeyspace_hits:7999\r\nkeyspace_misses:2001",
            not: "evicted_entries:1000\r\nkeyspace_hits:8000\r\nkeyspace_misses:2000"),
        Case(
            "memory-too-large", "maxmemory:51\r\ntotal_system_memory:100",
            not: "maxmemory:50\r\ntotal_system_memory:100"),
        Case("journal-long", "journal_bytes:268435457", not: "journal_bytes:268435456"),
        Case(
            "expiry-late", "expiry_lag_p99_ms:600001\r\nexpiry_lag_entries:1000",
            not: "expiry_lag_p99_ms:600001\r\nexpiry_lag_entries:999"),
        Case(
            "few-hits", "keyspace_hits:4999\r\nkeyspace_misses:5001", not: "keyspace_hits:4998\r\nkeyspace_misses:5001"),
        Case(
            "short-lives", "keyspace_hits:9000\r\nkeyspace_misses:1000\r\nkeyspace_misses_expired:1000",
            not: "keyspace_hits:9001\r\nkeyspace_misses:1000\r\nkeyspace_misses_expired:999"),
        Case(
            "origin-fails", "leases_granted:100\r\nfetch_failures:11", not: "leases_granted:100\r\nfetch_failures:10"),
        Case(
            "slow-commands",
            {
                $0.info = InfoText("server_time_usec:9000000000")
                $0.slowTimes = Array(repeating: 5401, count: 10)
            },
            not: {
                $0.info = InfoText("server_time_usec:9000000000")
                $0.slowTimes = Array(repeating: 5400, count: 10) + Array(repeating: 8000, count: 9)
            }),
        Case(
            "errors", "total_error_replies:51\r\ntotal_commands_processed:1000",
            not: "total_error_replies:50\r\ntotal_commands_processed:1000"),
        Case("clients-refused", "rejected_connections:1", not: "rejected_connections:0"),
        Case(
            "many-clients", "connected_clients:81\r\nmaxclients:100", not: "connected_clients:80\r\nmaxclients:100"),
        Case(
            "client-does-not-read", { $0.clients = clients("omem", "8388609") },
            not: { $0.clients = clients("omem", "8388608") }),
        Case(
            "short-connections",
            "uptime_in_seconds:200\r\ntotal_connections_received:1000\r\ntotal_commands_processed:2999",
            not: "total_connections_received:1000\r\ntotal_commands_processed:3000"),
        Case("monitor-on", { $0.clients = clients("flags", "OU") }, not: { $0.clients = clients("flags", "U") }),
        Case(
            "open-to-all",
            {
                $0.isSocketOpenToAll = true
                $0.settings["password-file"] = ""
            },
            not: {
                $0.isSocketOpenToAll = true
                $0.settings = ["password-file": "", "rights": "user:7=read"]
            }),
        Case("larder-writable", { $0.isLarderOpenToOthers = true }, not: { $0.isLarderOpenToOthers = false }),
    ]

    @Test(arguments: cases) func doctorReportsAFindingFromItsThresholdOn(_ example: Case) throws {
        var facts = DoctorFacts()
        example.speaks(&facts)
        let finding = try #require(DoctorRule.findings(facts).first { $0.rule.name == example.rule })
        #expect(finding.text.hasPrefix("\(example.rule): ") && !finding.text.contains("\n"))
        #expect(!finding.figures.isEmpty && finding.text.hasSuffix("; " + finding.rule.remedy))
        facts = DoctorFacts()
        example.isSilent(&facts)
        #expect(!DoctorRule.findings(facts).contains { $0.rule.name == example.rule })
    }

    /// The commands recommended by a finding must work when they are typed.
    @Test(arguments: ["evicting", "no-disk-limit", "memory-too-large", "file-system-full"])
    func commandsRecommendedByDoctorWork(_ name: String) throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("--database", "books", "set", "k", "v").exitCode == 0)
        let remedy = try #require(DoctorRule.all.first { $0.name == name }).remedy
        let calls = remedy.replacing("larderctl ", with: "\n").split(separator: "\n").dropFirst()
        #expect(!calls.isEmpty)
        for call in calls {
            let words = call.prefix { !",;)".contains($0) }.split(separator: " ").map { word in
                word == "BYTES" ? "64M" : word == "NAME" ? "books" : String(word)
            }
            let result = try larderctl.run(words)
            #expect(result.exitCode == 0 && result.errors.isEmpty, "\(words): \(result.errors)")
        }
    }

    /// A database that only lacks disk space is not damaged, and a check would find nothing.
    @Test func doctorDoesNotReportAFullFileSystemAsDamage() throws {
        var facts = DoctorFacts()
        facts.disk = (4, 100)
        facts.databases = [(name: "books", state: "failed")]
        let findings = DoctorRule.findings(facts)
        #expect(findings.map(\.rule.name) == ["file-system-full"])
        #expect(try #require(findings.first).figures.hasSuffix("writes are refused by database 'books'"))
        facts.disk = (50, 100)
        #expect(DoctorRule.findings(facts).map(\.rule.name) == ["database-unusable"])
    }

    /// The smallest possible limit cannot be lowered.
    @Test func doctorDoesNotAdviseToLowerTheSmallestLimit() throws {
        var facts = DoctorFacts()
        facts.disk = (4, 100)
        for (limit, isLowered) in [(0, true), (DoctorFacts.diskLimitMin, false), (DoctorFacts.diskLimitMin + 1, true)] {
            facts.info = InfoText("disk_limit:\(limit)\r\naof_last_write_status:err\r\nlast_write_errno:\(ENOSPC)")
            let remedies = DoctorRule.findings(facts).filter { $0.rule.name != "no-disk-limit" }.map(\.remedy)
            #expect(remedies.count == 2 && remedies.allSatisfy { $0.contains("lower") == isLowered }, "\(remedies)")
        }
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let least = DoctorFacts.diskLimitMin
        #expect(try larderctl("CONFIG", "SET", "max-disk", "\(least)").exitCode == 0)
        #expect(try larderctl("CONFIG", "SET", "max-disk", "\(least - 1)").exitCode == 4)
    }

    /// If writes fail because of an error other than damage, a check finds nothing to repair.
    @Test(arguments: [
        (ENOSPC, "max-disk"), (EDQUOT, "quota"), (EFBIG, "ulimit -f"), (EROFS, "remount"), (EIO, "dmesg"),
        (EACCES, "chown"), (ENOENT, "put the missing directory back"),
    ])
    func doctorGivesTheRemedyForTheErrorOfWrites(_ number: Int32, _ remedy: String) throws {
        var facts = DoctorFacts()
        facts.info = InfoText("aof_last_write_status:err\r\nlast_write_errno:\(number)")
        facts.databases = [(name: "books", state: "failed")]
        let findings = DoctorRule.findings(facts)
        // If files are missing, the list of databases tells whose.
        let others = number == ENOENT ? ["database-unusable"] : []
        #expect(findings.map(\.rule.name) == ["writes-refused"] + others)
        let finding = try #require(findings.first)
        #expect(finding.figures == "writes are failing: \(SystemErrorText.of(number))")
        #expect(finding.remedy.contains(remedy) && finding.text.hasSuffix(finding.remedy))
    }

    /// A refused command counts, because it got an error reply, although it did not run.
    @Test("refused commands are counted as commands") func refusedCommandsAreCommands() {
        var facts = DoctorFacts()
        facts.info = InfoText(
            "total_error_replies:900\r\ntotal_commands_processed:100\r\n"
                + "cmdstat_set:calls=50,usec=1,usec_per_call=1.00,rejected_calls=900,failed_calls=0")
        #expect(DoctorRule.findings(facts).map(\.figures) == ["900 of 1000 commands"])
    }

    @Test("each rule of doctor has a test case") func everyDoctorRuleHasATestCase() {
        #expect(Self.cases.map(\.rule) == DoctorRule.all.map(\.name))
        #expect(Set(DoctorRule.all.map(\.name)).count == DoctorRule.all.count)
        #expect(DoctorRule.findings(DoctorFacts()).isEmpty, "without facts there are no findings")
    }

    /// The numbers of a daemon may be invalid.
    @Test func malformedFiguresDoNotCrashDoctor() {
        let names = DoctorRuleTests.fieldNames
        for value in ["9223372036854775807", "-9223372036854775808", "-1", "x", ""] {
            var facts = DoctorFacts()
            facts.info = InfoText(names.map { "\($0):\(value)" }.joined(separator: "\r\n"))
            facts.clients = [["omem": value, "flags": value]]
            facts.disk = (0, 0)
            facts.slowTimes = [.max, .min]
            _ = DoctorRule.findings(facts)
        }
    }

    private static let fieldNames = [
        "salvages", "journal_damages", "databases_set_aside", "databases_missing", "fact_losses",
        "clock_offset_milliseconds", "disk_bytes",
        "disk_limit",
        "evicted_entries", "keyspace_hits", "keyspace_misses", "maxmemory", "total_system_memory", "journal_bytes",
        "expiry_lag_p99_ms", "expiry_lag_entries", "keyspace_misses_expired", "fetch_failures", "leases_granted",
        "total_error_replies", "total_commands_processed", "rejected_connections", "connected_clients", "maxclients",
        "total_connections_received", "server_time_usec",
    ]
}
