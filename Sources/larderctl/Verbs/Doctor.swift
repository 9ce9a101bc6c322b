import LarderClient
import LarderPlatform

extension Verb {
    static let doctor = Verb(
        "doctor", "", "report problems of a running daemon, and how to fix them",
        details: """
            Prints one line per finding: its name, the figures, and what to do. docs/Operating.md lists all rules with their
            thresholds. Then a line for each rule that could not be checked, for lack of a right or during a replay. Exits with 8 if there is a
            finding, otherwise with 10 if a rule could not be checked, otherwise with 0. It does not read the files: larderctl check
            does. With --json: {"findings":[{"rule":…,"weight":"problem" or "advice","figures":…,"remedy":…}],
            "unseen":[{"rule":…,"reason":…}]}.
            """
    ) { _, context in
        let client = try context.options.connect()
        let facts = try facts(client)
        let (findings, omissions) = (DoctorRule.findings(facts), DoctorRule.omissions(facts))
        context.show(["findings": findings, "unseen": omissions]) { output in
            for finding in findings { output.oneLine(finding.text) }
            if findings.isEmpty {
                let rest = omissions.isEmpty ? "" : ", \(omissions.count) could not be checked"
                output.line("no findings (\(DoctorRule.all.count - omissions.count) rules checked\(rest))")
            }
            for omission in omissions { output.oneLine(omission.text) }
        }
        return !findings.isEmpty ? .damaged : omissions.isEmpty ? .done : .unseen
    }

    private static func facts(_ client: BlockingLarderClient) throws -> DoctorFacts {
        var facts = DoctorFacts()
        facts.info = InfoText(try client.serverInfo(section: "everything"))
        let count = facts.info.integer("databases")
        // These requests would wait until all databases are replayed.
        let isLoading = facts.info.integer("loading") > 0
        facts.databases = try isLoading ? [] : client.databases().map { ($0.name, $0.state) }
        if facts.databases.count < count {
            facts.unseen[.databases] =
                isLoading
                ? "the journal is still being replayed"
                : "this user may read \(facts.databases.count) of \(count) databases"
        }
        func ask(_ source: DoctorFacts.Source, _ words: String...) throws -> RESPValue {
            let reply = try client.command(words)
            if let error = reply.errorMessage { facts.unseen[source] = error }
            return reply
        }
        for pair in try ask(.settings, "CONFIG", "GET", "*").pairs ?? [] {
            if let name = pair.key.string, let value = pair.value.string { facts.settings[name] = value }
        }
        facts.clients = FieldText.lines(try ask(.clients, "CLIENT", "LIST").bytes ?? []).map { line in
            Dictionary(FieldText.pairs(line).map { ($0.name, String(decoding: $0.value, as: UTF8.self)) }) { $1 }
        }
        facts.slowTimes = SlowCommand.read(try ask(.slowLog, "SLOWLOG", "GET", "-1")).filter(\.isOfProgram)
            .map(\.seconds)
        if let directory = facts.info.text("directory"), let free = FileSystem.room(directory: directory),
            let total = FileSystem.totalBytes(of: directory)
        {
            facts.disk = (free, total)
            facts.isLarderOpenToOthers = FileSystem.isWritableByOthers(directory)
        } else {
            facts.unseen[.disk] = "this user cannot access the file system of the larder's directory"
        }
        for origin in facts.origins where !isLoading && origin.fields["state"] != "up" {
            // If this user must not read the error, report only that the origin is down.
            guard (try? client.select(origin.database)) != nil, let fields = try? client.originInfo() else { continue }
            facts.originErrors[origin.database] = fields.first { $0.0 == "error" }?.1
        }
        facts.isSocketOpenToAll = isOpenToAll(client.socketPath)
        switch facts.isSocketOpenToAll {
        // The socket is not open to all users, so it does not matter if the settings are unknown.
        case false?: facts.unseen[.settings] = nil
        case nil: facts.unseen[.settings] = "this user cannot read the socket's mode"
        case true?: break
        }
        return facts
    }

    /// Whether all users can connect to a socket, according to its mode and those of its directories; nil if unknown.
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
