import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the metrics in both formats.
@Suite struct WebMetricsTests {
    private static let openMetrics =
        "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"
    private static let plain = "Accept: text/plain;version=0.0.4"

    /// A daemon on which commands of all kinds have been run.
    private func daemon() throws -> DaemonProcess {
        let daemon = try DaemonProcess(["--max-disk", "64M"])
        let client = try daemon.connect()
        for line in [
            "SET a 1", "GET a", "GET b", "FETCH c", "SET d 1 EX 100", "SELECT other", "SET odd\\\"name 1", "INCR a x",
            "NOSUCH", "EVAL return(1) 0", "PURGE TAG t",
        ] { _ = try client.call(line) }
        return daemon
    }

    private func value(_ series: String, in text: String) -> Double? {
        text.split(separator: "\n").first { $0.hasPrefix(series + " ") }
            .flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    @Test func metricsCanBeRequestedAsOpenMetrics() throws {
        let web = try WebProcess(try daemon().socketPath)
        #expect(try web.get("/metrics").body.contains("larder_up 0"), "the daemon was released and is down")
        let daemon = try daemon()
        let other = try WebProcess(daemon.socketPath)
        let reply = try other.get("/metrics", [Self.openMetrics])
        #expect(reply.header("content-type") == "application/openmetrics-text; version=1.0.0; charset=utf-8")
        let lines = reply.body.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.suffix(2) == ["# EOF", ""])
        #expect(value("larder_up", in: reply.body) == 1)
        #expect(value("larder_hits_total", in: reply.body) == 1)
        #expect(value("larder_misses_total", in: reply.body) ?? 0 >= 1)
        #expect(value("larder_leases_granted_total", in: reply.body) == 1)
        #expect(value("larder_command_duration_seconds_count{command=\"get\"}", in: reply.body) == 2)
        #expect(value("larder_command_failures_total{command=\"incr\"}", in: reply.body) == nil)
        #expect(value("larder_database_entries{database=\"other\"}", in: reply.body) == 1)
        #expect(value("larder_database_entries{database=\"0\"}", in: reply.body) == 2)
        #expect(value("larder_disk_limit_bytes", in: reply.body) == 67_108_864)
        for losses in ["journal_damages", "salvages", "databases_set_aside", "databases_missing", "fact_losses"] {
            #expect(value("larder_\(losses)_total", in: reply.body) == 0, "\(losses)")
        }
        try expectFamilies(reply.body)
    }

    @Test(arguments: [[], ["Accept: */*"], [plain]])
    func metricsUseThePlainTextFormatByDefault(_ headers: [String]) throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath)
        let reply = try web.get("/metrics", headers)
        #expect(reply.header("content-type") == "text/plain; version=0.0.4; charset=utf-8")
        #expect(reply.body.contains("\n# TYPE larder_hits_total counter\n") && !reply.body.contains("# EOF"))
    }

    /// Checks that each family appears once, with its help, followed by its samples. Also checks that counters have the
    /// suffix of counters, and that names contain units.
    private func expectFamilies(_ text: String) throws {
        var families: Set<Substring> = []
        var family: Substring = ""
        var kind: Substring = ""
        for line in text.split(separator: "\n") where line != "# EOF" {
            let words = line.split(separator: " ", maxSplits: 3)
            if line.hasPrefix("# HELP ") {
                family = words[2]
                #expect(families.insert(family).inserted, "\(family) twice")
            } else if line.hasPrefix("# TYPE ") {
                #expect(words[2] == family)
                kind = words[3]
            } else if line.hasPrefix("# UNIT ") {
                #expect(words[2] == family && family.hasSuffix("_" + words[3]))
            } else {
                let name = line.prefix { $0 != "{" && $0 != " " }
                let suffixes =
                    switch kind {
                    case "counter": ["_total"]
                    case "info": ["_info"]
                    case "summary": ["", "_sum", "_count"]
                    default: [""]
                    }
                #expect(suffixes.contains { name == family + $0 }, "\(line) of \(family)")
            }
        }
        #expect(families.count > 60)
    }

    @Test func promtoolFindsNoErrors() throws {
        let promtool = try #require(
            WebTools.path("promtool"), "promtool is missing: `make proofs` installs prometheus")
        let daemon = try daemon()
        let web = try WebProcess(daemon.socketPath)
        let reply = try web.get("/metrics", [Self.plain])
        #expect(reply.header("content-type") == "text/plain; version=0.0.4; charset=utf-8")
        let (end, output, errors) = try ChildProcess.run(
            promtool, ["check", "metrics"], input: Array(reply.body.utf8))
        #expect(end == .exited(0) && output.isEmpty && errors.isEmpty, "\(output)\(errors)")
        // Check that promtool detects errors at all.
        let wrong = try ChildProcess.run(promtool, ["check", "metrics"], input: Array("x{ 1\n".utf8))
        #expect(wrong.end != .exited(0))
    }

    @Test func prometheusScrapesTheMetrics() throws {
        let prometheus = try #require(
            WebTools.path("prometheus"), "prometheus is missing: `make proofs` installs it")
        let daemon = try daemon()
        let place = try TemporaryDirectory(inMemory: true)
        let token = place.path + "/token"
        try Files.write(token, Array("a-token-for-prometheus\n".utf8))
        chmod(token, 0o600)
        let web = try WebProcess(daemon.socketPath, ["--token-file", token], listen: "127.0.0.1:0")
        try Files.write(
            place.path + "/prometheus.yml",
            Array(
                """
                global: {scrape_interval: 1s}
                scrape_configs:
                - job_name: larder
                  authorization: {credentials_file: \(token)}
                  static_configs: [{targets: ["\(web.address.dropFirst(7).dropLast())"]}]

                """.utf8))
        let (end, output, errors) = try ChildProcess.run(
            "python3", [WebTools.programs + "/scrape.py", prometheus, place.path, "larder_up", "larder_hits_total"])
        #expect(end == .exited(0) && output == "larder_up 1\nlarder_hits_total 1\n", "\(output)\(errors)")
    }

    @Test func metricsReportWhetherTheDaemonIsUp() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let web = try WebProcess(place.path + "/socket")
        let reply = try web.get("/metrics")
        #expect(reply.status == 200 && value("larder_up", in: reply.body) == 0)
        #expect(try web.get("/healthz").body == #"{"status":"ok","daemon":"away"}"#)
        let overview = try web.get("/api/overview")
        #expect(overview.status == 200 && overview.body.contains("\"problem\":\""))
        #expect(try web.get("/api/keys").status == 503)
        for _ in 0..<2 {
            _ = try web.process.waitForErrorLine(containing: " warning the daemon is not available: ")
            let daemon = try DaemonProcess(in: place)
            _ = try web.process.waitForErrorLine(containing: " info connected to larderd ")
            await eventually { (try? web.get("/metrics")).flatMap { value("larder_up", in: $0.body) } == 1 }
            daemon.kill()
            await eventually { (try? web.get("/metrics")).flatMap { value("larder_up", in: $0.body) } == 0 }
        }
    }

    /// Metrics show that an origin is down, and that writes are queued for it.
    @Test func metricsReportAnOriginThatIsDown() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("SELECT shop") == "+OK\r\n")
        #expect(try client.call("ORIGIN unix://\(redis.socketPath) BEHIND") == "+OK\r\n")
        #expect(try client.call("GET k") == "$-1\r\n")
        redis.kill()
        #expect(try client.call("SET k v") == "+OK\r\n")
        let web = try WebProcess(daemon.socketPath)
        var text = ""
        // The daemon detects the loss at the next heartbeat.
        repeat {
            text = try web.get("/metrics", [Self.openMetrics]).body
        } while value("larder_origin_servers_down{database=\"shop\"}", in: text) != 1
        #expect(value("larder_origin_servers{database=\"shop\"}", in: text) == 1)
        #expect(value("larder_origin_asked_total{database=\"shop\"}", in: text) == 1)
        #expect(value("larder_origin_outbox_entries{database=\"shop\"}", in: text) == 1)
        #expect(value("larder_origins_unusable", in: text) == 0)
        try expectFamilies(text)
    }

    /// The number of series is bounded, regardless of the number of databases.
    @Test func theNumberOfMetricsIsLimited() throws {
        let daemon = try DaemonProcess(["--max-databases", "200"])
        let client = try daemon.connect()
        for number in 0..<130 {
            _ = try client.call("SELECT d\(number)")
            _ = try client.call("SET k v")
        }
        let text = try WebProcess(daemon.socketPath).get("/metrics").body
        #expect(value("larder_databases_omitted", in: text) == 30)
        #expect(text.split(separator: "\n").count { $0.hasPrefix("larder_database_bytes{") } == 100)
    }
}
