import LarderClient
import LarderPlatform

/// Imports the entries of an export into a daemon. For one thread at a time.
///
/// Its memory does not grow with the file: entries are sent in batches, and the next batch is read only after the
/// daemon has acknowledged the previous one.
struct Importer {
    /// The numbers of lines by result.
    struct Report: Equatable, Codable {
        var imported = 0
        /// Entries that had expired, and were not imported.
        var expired = 0
        /// Entries not imported, because the larder has a newer one or, with ``Choice/keepsExisting``, a fresh one.
        var kept = 0
        /// Entries that the options exclude.
        var leftOut = 0
        /// Invalid lines that were skipped because of ``Choice/skipsInvalid``.
        var invalid = 0

        var entries: Int { imported + expired + kept + leftOut }
    }

    /// The options of an import: which entries are imported, and into which database.
    struct Choice {
        /// The databases to import; empty for all.
        var databases: Set<String> = []
        var prefix: [UInt8] = []
        /// The database into which all entries are imported; nil to import each into the database with the same name.
        var target: String?
        var keepsExisting = false
        var skipsInvalid = false

        /// The options as text, for comparison with those of a stored position. Does not contain `skipsInvalid`, which
        /// does not affect which entries are stored.
        var text: String {
            let names = databases.sorted().joined(separator: ",")
            let hex = prefix.map { String($0, radix: 16) }.joined(separator: ".")
            return "databases=\(names) prefix=\(hex) into=\(target ?? "") keep=\(keepsExisting)"
        }
    }

    private let client: BlockingLarderClient
    private let choice: Choice
    private let name: String
    private let descriptor: Int32
    /// The size of the file in bytes; 0 for a pipe.
    private let total: Int
    private let progress = ProgressLine()

    private(set) var report = Report()
    /// Whether this import continues an interrupted one.
    private(set) var isResumed = false
    /// Messages for the user in addition to the report, such as the first invalid lines.
    private(set) var notes: [String] = []

    private var databases: Set<String> = []
    private var indexes: [String: [ListedIndex]] = [:]
    private var selected: String?
    private var pending: [(line: Int, words: [[UInt8]])] = []
    private var pendingBytes = 0
    /// Whether the last line of the export (`end`) was read.
    private var isComplete = false

    // The identity of the import, and the position after the entries that the daemon has acknowledged; nil if none.
    private var identity: ImportPosition.Identity?
    private var acknowledged: ImportPosition?
    private var settling = SettlingPosition()

    private static let batchCount = 256
    private static let batchBytes = 1 << 20
    private static let notesMax = 5

    init(_ client: BlockingLarderClient, _ descriptor: Int32, name: String, _ choice: Choice) throws {
        self.client = client
        self.choice = choice
        self.name = name
        self.descriptor = descriptor
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        total = isFile ? Int(status.st_size) : 0
        databases = Set(try client.databases().map(\.name))
    }

    /// - Parameter keepsPosition: whether `descriptor` is the file `name`, so that a position can be stored next to it.
    mutating func run(keepsPosition: Bool) throws {
        defer { progress.end() }
        var reader = LineReader(descriptor, name: name)
        try begin(reader, keepsPosition: keepsPosition)
        if let position = acknowledged, position.offset > reader.offset {
            lseek(descriptor, off_t(position.offset), SEEK_SET)
            reader = LineReader(descriptor, name: name, offset: position.offset, number: position.line)
            report = position.report
            isResumed = true
        }
        do {
            try readLines(reader)
            try flush(reader)
            try checkEnd(reader)
        } catch {
            // Store the position, so that the next import continues after the acknowledged entries.
            acknowledged.map { save($0) }
            throw error
        }
        if identity != nil { unlink(ImportPosition.path(name)) }
    }

    // MARK: The first line

    private mutating func begin(_ reader: LineReader, keepsPosition: Bool) throws {
        var digest: UInt32 = 0
        let first = try reader.next { line in
            digest = ImportPosition.digest(line)
            return ExportLine.parsed(line)
        }
        switch first {
        case .success(.header(let header)): indexes = header.indexes
        case .success: throw foreign("the first line must have \"format\"")
        case .failure(let defect): throw foreign("its first line: " + defect.message)
        case nil: throw foreign(reader.hasHalfLine ? "its first line is incomplete" : "it is empty")
        }
        guard keepsPosition, total > 0, let larder = Exporter.larder(client) else { return }
        let identity = ImportPosition.Identity(header: digest, larder: larder, options: choice.text)
        self.identity = identity
        acknowledged = ImportPosition(identity: identity, offset: reader.offset, line: 1, tail: 0)
        guard let previous = ImportPosition.read(ImportPosition.path(name)) else { return }
        if previous.identity == identity, previous.offset <= total,
            previous.tail == ImportPosition.tail(descriptor, before: previous.offset)
        {
            acknowledged = previous
        } else {
            note(
                "\(ImportPosition.path(name)) is for another file, larder or selection: the import starts from "
                    + "the beginning")
        }
    }

    private func foreign(_ reason: String) -> InputOutputError {
        InputOutputError(message: "\(name) is not an export that this larderctl can read: \(reason)")
    }

    private mutating func note(_ text: String) {
        if notes.count < Self.notesMax { notes.append(text) }
    }

    // MARK: Lines

    private mutating func readLines(_ reader: LineReader) throws {
        while true {
            switch try reader.next(ExportLine.parsed) {
            case nil: return
            case .success where isComplete: try pass(LineDefect("it follows the last line of an export"), reader)
            case .success(.header): try pass(LineDefect("it is the first line of another export"), reader)
            case .success(let line): try take(line, reader)
            case .failure(let defect): try pass(defect, reader)
            }
            progress.show(done: reader.offset, total: total)
        }
    }

    /// Skips an invalid line if the options allow that. Otherwise sends the entries before the line, and throws.
    private mutating func pass(_ defect: LineDefect, _ reader: LineReader) throws {
        if !choice.skipsInvalid { try flush(reader, isBefore: true) }
        try pass(
            "\(name), line \(reader.number): \(defect.message)",
            "\nthe preceding lines are imported; fix the line and import again, or skip such lines with --skip-invalid")
    }

    private mutating func pass(_ text: String, _ advice: String) throws(InputOutputError) {
        guard choice.skipsInvalid else { throw InputOutputError(message: text + advice) }
        report.invalid += 1
        note(text)
    }

    private mutating func take(_ line: ExportLine, _ reader: LineReader) throws {
        switch line {
        case .header: break
        case .end(let entries):
            isComplete = true
            if Int64(report.entries + pending.count) != entries, report.invalid == 0 {
                try pass(
                    LineDefect(
                        "it states \(entries) entries, but the lines before it have \(report.entries + pending.count)"),
                    reader)
            }
        case .database(let line): try prepare(line, reader)
        case .entry(let entry, let name):
            guard isChosen(name), entry.key.starts(with: choice.prefix) else {
                report.leftOut += 1
                return
            }
            let database = choice.target ?? name
            if database != selected {
                try flush(reader, isBefore: true)
                try select(database, reader)
            }
            pending.append((reader.number, entry.placing(keepsExisting: choice.keepsExisting)))
            pendingBytes += entry.key.count + entry.value.count
            if pending.count >= Self.batchCount || pendingBytes >= Self.batchBytes { try flush(reader) }
        }
    }

    private func isChosen(_ database: String) -> Bool {
        choice.databases.isEmpty || choice.databases.contains(database)
    }

    private mutating func select(_ database: String, _ reader: LineReader) throws {
        guard !CompanionName.isOne(database) else {
            throw UsageError(
                "\(name), line \(reader.number): \(CompanionName.refusal(database)); select databases with --database")
        }
        do throws(LarderClientError) {
            try client.select(database)
        } catch {
            guard let text = error.serverText else { throw error }
            throw LarderClientError.server(
                "\(name), line \(reader.number): the database '\(printableKey(database.utf8))': \(text)",
                operation: "import")
        }
        selected = database
        databases.insert(database)
    }

    /// Selects the database of a database line, sets its policy if the database is new, and creates its indexes.
    private mutating func prepare(_ line: DatabaseLine, _ reader: LineReader) throws {
        guard isChosen(line.database) else { return }
        let database = choice.target ?? line.database
        try flush(reader, isBefore: true)
        let isNew = !databases.contains(database)
        try select(database, reader)
        if isNew {
            try client.setPolicy(line.policy, grace: .milliseconds(line.grace), jitter: Int(line.jitter))
        } else if case let present = try client.policyInfo().policy, present != line.policy.description {
            note(
                "the database '\(database)' keeps its policy \(present); the file has \(line.policy.description). "
                    + "To change it: larderctl --database \(database) policy \(line.policy.description)")
        }
        for problem in try client.create(indexes[line.database] ?? []) { note("the database '\(database)' \(problem)") }
    }

    // MARK: Sending

    /// Sends the pending entries, and updates the position.
    /// - Parameter isBefore: whether the new position is the start of the line that was read last, instead of its end.
    private mutating func flush(_ reader: LineReader, isBefore: Bool = false) throws {
        try send()
        let (offset, line) = isBefore ? (reader.lineStart, reader.number - 1) : (reader.offset, reader.number)
        if let identity, let tail = ImportPosition.tail(descriptor, before: offset) {
            acknowledged = ImportPosition(identity: identity, offset: offset, line: line, tail: tail, report: report)
        }
        if let position = settling.next(acknowledged, now: MonotonicClock.milliseconds()) { save(position) }
    }

    private mutating func send() throws {
        guard !pending.isEmpty else { return }
        let batch = pending
        pending = []
        pendingBytes = 0
        let replies = try client.pipeline(batch.map(\.words))
        guard replies.count == batch.count else {
            throw LarderClientError.unexpectedReply(to: "PLACE", "one reply per entry")
        }
        for (entry, reply) in zip(batch, replies) {
            switch reply.string {
            case "stored": report.imported += 1
            case "expired": report.expired += 1
            case "kept": report.kept += 1
            default:
                let text = reply.errorMessage ?? "malformed reply"
                throw LarderClientError.server(
                    "\(name), line \(entry.line): the entry was not stored: \(text)", operation: "PLACE")
            }
        }
    }

    // MARK: The position

    private mutating func save(_ position: ImportPosition) {
        guard identity != nil, position.line > 1 else { return }
        do {
            try position.save(ImportPosition.path(name))
        } catch {
            identity = nil
            note("cannot store the position; after an interruption, the import starts from the beginning: \(error)")
        }
    }

    // MARK: End of the file

    private mutating func checkEnd(_ reader: LineReader) throws {
        guard !isComplete || reader.hasHalfLine else { return }
        let text =
            reader.hasHalfLine
            ? "\(name) ends within line \(reader.number + 1), which is incomplete"
            : "\(name) ends after line \(reader.number), without the last line of an export"
        try pass(
            text,
            ": the export was interrupted, or a part is missing. The \(reader.number) complete lines are imported; "
                + "--skip-invalid accepts such a file")
    }
}
