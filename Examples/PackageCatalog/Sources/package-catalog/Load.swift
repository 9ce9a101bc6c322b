import Larder
import PackageRecords

/// `load`: reads package records and stores them in batches of a thousand.
///
/// A record replaces the stored one with the same key. Records of packages that the machine no longer has are not
/// deleted here: they expire after the policy's interval.
enum Load {
    private static let batchEntries = 1000
    /// The number of problems to show. Further problems are only counted.
    private static let problemsShown = 3

    static func run(_ arguments: inout Arguments) throws {
        let directory = try arguments.required("--directory")
        let policyText = arguments.option("--policy") ?? "low"
        guard let policy = UpdatePolicy(policyText) else {
            throw Arguments.Failure(message: "--policy \(policyText): must be one of \(UpdatePolicy.syntax)")
        }
        let translationFiles = arguments.all("--translations")
        let files = [
            (Databases.installed, arguments.option("--installed")),
            (Databases.available, arguments.option("--available")),
        ]
        try arguments.end()
        guard files.contains(where: { $0.1 != nil }) else {
            throw Arguments.Failure(message: "load needs --installed or --available")
        }
        let translations = try read(translationFiles)
        for case (let name, let file?) in files {
            let cache = try Cache(
                named: name, policy: policy,
                indexes: [
                    Index(\PackageRecord.needs), Index(\PackageRecord.words),
                    Index(\PackageRecord.section, .descending(\PackageRecord.installedBytes)),
                ], directory: directory)
            try load(file, into: cache, translations)
        }
    }

    private static func read(_ files: [String]) throws -> Translations {
        var translations = Translations()
        var problems = Problems()
        for file in files {
            try ControlFile.read(file) { step in
                do {
                    if case .stanza(let stanza) = step { try translations.add(stanza) }
                    if case .problem(let problem) = step { throw problem }
                } catch let problem as RecordProblem {
                    problems.add(problem)
                }
            }
        }
        guard !files.isEmpty else { return translations }
        let languages = translations.languages.joined(separator: ", ")
        Console.out("translations: \(Format.count(translations.count)) descriptions in \(languages)\(problems.shown)")
        return translations
    }

    private static func load(_ file: String, into cache: Cache, _ translations: Translations) throws {
        let clock = ContinuousClock()
        let begin = clock.now
        let key: KeyPath<PackageRecord, String> =
            cache.name == Databases.installed ? \.installedKey : \.availableKey
        let batch = cache.makeBatch()
        var problems = Problems()
        var (records, storedBytes, relations, languages) = (0, 0, 0, Set<String>())
        func store() throws {
            storedBytes += batch.byteCount
            try cache.apply(batch)
            batch.removeAll()
        }
        let readBytes = try ControlFile.read(file) { step in
            do {
                if case .problem(let problem) = step { throw problem }
                guard case .stanza(let stanza) = step else { return }
                let record = try PackageRecord(stanza, translations: translations)
                try batch.set(record, forKey: record[keyPath: key])
                records += 1
                relations += record.relations.values.reduce(0) { $0 + $1.count }
                languages.formUnion(record.descriptions.keys)
            } catch let problem as RecordProblem {
                problems.add(problem)
            }
            if batch.count >= batchEntries { try store() }
        }
        try store()
        let time = clock.now - begin
        let rate = Int(Double(records) / max(0.001, time / .seconds(1)))
        let entries = try cache.count()
        Console.out(
            """
            \(cache.name): \(Format.count(records + problems.count)) records, \(Format.bytes(readBytes)), \
            \(Format.count(problems.count)) skipped\(problems.shown)
                \(Format.count(entries)) entries, \(Format.bytes(storedBytes)) of JSON; in them \
            \(Format.count(relations)) relations, descriptions in \(languages.sorted().joined(separator: ", "))
                policy \(cache.policy); read and stored in \(Format.seconds(time)), \(Format.count(rate)) a second
            """)
    }

    /// Collects the problems of a file.
    private struct Problems {
        private(set) var count = 0
        private var first: [String] = []

        mutating func add(_ problem: RecordProblem) {
            count += 1
            if count <= problemsShown { first.append(problem.description) }
        }

        /// The first problems, each on its own line; empty if there are none.
        var shown: String {
            (first + (count > first.count ? ["…"] : [])).map { "\n    \($0)" }.joined()
        }
    }
}
