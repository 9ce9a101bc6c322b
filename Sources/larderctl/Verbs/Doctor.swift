import LarderClient
import Platform

extension Verb {
    static let doctor = Verb(
        name: "doctor", synopsis: "",
        summary: "tell what is unusual about a running daemon, and what to do about it",
        details: """
            One line for each finding: its name, the figures, and what to do. docs/Operating.md lists all rules with their
            thresholds. Exits with 8 if there is a finding, else with 0. It does not read the files: larderctl check does.
            With --json: {"findings":[{"rule":…,"weight":"problem" or "advice","figures":…,"remedy":…}]}.
            """,
        argumentCount: 0...0
    ) { _, context in
        let client = try context.connect()
        let findings = DoctorRule.findings(try facts(client))
        if context.options.json {
            context.output.json(.object([("findings", .array(findings.map(\.json)))]))
        } else if findings.isEmpty {
            context.output.line("nothing is unusual: \(DoctorRule.all.count) rules looked")
        } else {
            for finding in findings { context.output.oneLine(Array(finding.text.utf8)) }
        }
        return findings.isEmpty ? .done : .damaged
    }

    private static func facts(_ client: BlockingLarderClient) throws -> DoctorFacts {
        var facts = DoctorFacts()
        facts.info = InfoFigures(try client.serverInfo(section: "everything"))
        facts.databases = try client.databases().map { DoctorFacts.Database(name: $0.name, state: $0.state) }
        for pair in try client.command("CONFIG", "GET", "*").pairs ?? [] {
            if let name = pair.key.string, let value = pair.value.string { facts.settings[name] = value }
        }
        for line in (try client.command("CLIENT", "LIST").string ?? "").split(separator: "\n") {
            var fields: [String: String] = [:]
            for field in line.split(separator: " ") {
                let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 { fields[String(parts[0])] = String(parts[1]) }
            }
            facts.clients.append(fields)
        }
        facts.slowTimes = SlowCommand.read(try client.command("SLOWLOG", "GET", "-1")).filter(\.isOfProgram)
            .map(\.seconds)
        if let directory = facts.info.text("directory"), let free = FileSystem.room(directory: directory),
            let total = FileSystem.totalBytes(of: directory)
        {
            facts.disk = (free, total)
        }
        facts.isSocketOpenToAll = isOpenToAll(client.socketPath)
        return facts
    }

    /// Whether everybody may write to a socket: its own rights, and the way to it.
    private static func isOpenToAll(_ path: String) -> Bool? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        guard status.st_mode & 0o002 != 0 else { return false }
        var directory = FileSystem.parent(FileSystem.absolute(path))
        while true {
            guard stat(directory, &status) == 0 else { return nil }
            guard status.st_mode & 0o001 != 0 else { return false }
            if directory == "/" || directory.isEmpty { return true }
            directory = FileSystem.parent(directory)
        }
    }
}
