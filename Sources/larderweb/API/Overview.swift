import LarderClient
import LarderVocabulary

/// The current state of the daemon, for the overview page. Counters count from the start of the daemon.
struct Overview: Sendable {
    private let collector: Collector

    init(_ collector: Collector) { self.collector = collector }

    /// The fields of INFO that the page shows.
    private static let numberFields = FieldMetric.all.map(\.field) + ["server_time_usec"]
    private static let textFields = ["larder_version", "run_id", "directory", "durability", "unixsocket"]

    /// Returns the response to `/api/overview`. Its member `problem` is the reason why the daemon is not available.
    func all(_ settings: JSONObject) -> JSONObject {
        do throws(LarderClientError) {
            let figures = try collector.figures.value()
            func fields<Value>(_ names: [String], _ value: (String) -> Value?) -> [String: Value] {
                Dictionary(names.compactMap { name in value(name).map { (name, $0) } }) { $1 }
            }
            return [
                "settings": settings, "numbers": fields(Self.numberFields, figures.info.number),
                "texts": fields(Self.textFields, figures.info.text), "commands": figures.commands.map(Self.command),
                // Nil if the daemon's list of databases could not be read.
                "databases": (try? collector.databases.value())?.map { Self.database($0, figures) },
            ]
        } catch {
            return ["settings": settings, "problem": error.message]
        }
    }

    private static func command(_ command: CommandFigures) -> JSONObject {
        func seconds(_ microseconds: Double?) -> Double? { microseconds.map { $0 / 1_000_000 } }
        return [
            "name": command.name, "calls": Double(command.calls), "seconds": seconds(Double(command.microseconds)),
            "failed": Double(command.failed) + Double(command.rejected), "p50": seconds(command.p50),
            "p99": seconds(command.p99), "p999": seconds(command.p999),
        ]
    }

    private static func database(_ info: DatabaseInfo, _ figures: DaemonFigures) -> JSONObject {
        [
            "name": info.name, "policy": info.policy, "stale": info.staleEntries, "bytes": info.bytes,
            "entries": figures.entries[info.name] ?? info.entries.map(Double.init), "limit": info.limit,
            "state": info.state,
        ]
    }

    /// The maximum number of databases in the response to `/api/freshness`; the largest come first.
    private static let databasesMax = 20

    /// Returns the distribution of the remaining lifetimes of each database's fresh entries, as counted by the daemon.
    /// Omits databases without entries, or whose entries could not be counted.
    func freshness() throws(LarderClientError) -> [JSONObject] {
        let counted = try collector.databases.value().compactMap { info in
            info.entries.flatMap { count in count > 0 ? info.ends.map { (info.name, count, $0) } : nil }
        }
        return counted.sorted { $0.1 > $1.1 }.prefix(Self.databasesMax).map { name, entries, ends in
            func share(_ count: Int64) -> Double { min(1, Double(count) / Double(entries)) }
            return [
                "database": name, "entries": entries, "minute": share(ends.minute), "hour": share(ends.hour),
                "day": share(ends.day), "never": share(ends.never),
            ]
        }
    }

    private static let clientsMax = 200

    /// Returns the fields in CLIENT LIST of the 200 most recently active connections, most recent first.
    func clients() throws(LarderClientError) -> [[String: String]] {
        let lines = (try collector.polling.command("CLIENT", "LIST").string ?? "").split(separator: "\n")
        let clients = lines.map { line in
            let pairs = line.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
            return Dictionary(pairs.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }) { $1 }
        }
        func idle(_ client: [String: String]) -> Double { client["idle"].flatMap { Double($0) } ?? 0 }
        return Array(clients.sorted { idle($0) < idle($1) }.prefix(Self.clientsMax))
    }

    private static let slowCountMax = "32"
    private static let wordsMax = 6

    /// Returns the newest commands of the slow log, with their first words in printable form.
    func slowCommands() throws(LarderClientError) -> [JSONObject] {
        SlowCommand.read(try collector.polling.command("SLOWLOG", "GET", Self.slowCountMax)).map { command in
            let words = command.words.prefix(Self.wordsMax).map { printableKey($0) }
            return [
                "time": command.seconds, "seconds": Double(command.microseconds) / 1_000_000,
                "words": words + (command.words.count > Self.wordsMax ? ["…"] : []), "client": command.clientName,
            ]
        }
    }
}
