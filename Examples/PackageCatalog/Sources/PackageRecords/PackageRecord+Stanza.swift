extension PackageRecord {
    /// Creates the record of a package from the fields written by dpkg or apt.
    /// - Parameter translations: descriptions in other languages; those of this package's English description are used.
    /// - Throws: a problem if the name, the version or the architecture is missing, or a number or a relation is
    ///   invalid.
    public init(_ stanza: Stanza, translations: Translations = Translations()) throws(RecordProblem) {
        func required(_ field: String) throws(RecordProblem) -> String {
            guard let value = stanza[field], !value.isEmpty else {
                throw RecordProblem(line: stanza.line, "there is no \(field)")
            }
            return value
        }
        name = try required("Package")
        version = try required("Version")
        architecture = try required("Architecture")
        source = stanza["Source"]
        section = stanza["Section"]
        priority = stanza["Priority"]
        maintainer = stanza["Maintainer"]
        homepage = stanza["Homepage"]
        isEssential = stanza["Essential"] == "yes"
        status = stanza["Status"]
        descriptionMD5 = stanza["Description-md5"]
        installedBytes = try Self.size("Installed-Size", in: stanza, unitBytes: 1024)
        downloadBytes = try Self.size("Size", in: stanza, unitBytes: 1)
        relations = [:]
        (needs, words) = ([], [])
        for kind in Relation.Kind.allCases {
            guard let text = stanza[kind.rawValue] else { continue }
            do throws(RelationParser.Failure) {
                let parsed = try RelationParser.relations(text)
                if !parsed.isEmpty { relations[kind] = parsed }
            } catch {
                throw RecordProblem(line: stanza.line, "\(name): \(kind.rawValue): \(error.message)")
            }
        }
        descriptions = Description.all(in: stanza)
        if let descriptionMD5 {
            descriptions.merge(translations.descriptions(md5: descriptionMD5)) { _, translated in translated }
        }
        let needed = (relations[.preDepends] ?? []) + (relations[.depends] ?? [])
        needs = Set(needed.flatMap(\.alternatives).map(\.name)).sorted()
        let summary = descriptions["en"]?.summary.lowercased() ?? ""
        words = Set(summary.split { !$0.isLetter && !$0.isNumber }.map { String($0) }).sorted()
    }

    private static func size(_ field: String, in stanza: Stanza, unitBytes: Int64) throws(RecordProblem) -> Int64? {
        guard let text = stanza[field] else { return nil }
        guard let number = Int64(text), number >= 0 else {
            throw RecordProblem(line: stanza.line, "\(field) is no size")
        }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unitBytes)
        guard !overflow else { throw RecordProblem(line: stanza.line, "\(field) is too large") }
        return bytes
    }
}

extension PackageRecord.Description {
    /// All descriptions of a record: `Description`, which is English, `Description-ja`, and so on.
    static func all(in stanza: Stanza) -> [String: PackageRecord.Description] {
        var all: [String: PackageRecord.Description] = [:]
        if let text = stanza["Description"] { all["en"] = PackageRecord.Description(field: text) }
        for (language, text) in stanza.fields(beginning: "Description-") where language != "md5" {
            all[languageCode(language)] = PackageRecord.Description(field: text)
        }
        return all
    }

    /// Returns `zh_CN` for `zh_cn`: names of fields are in lower case.
    private static func languageCode(_ text: String) -> String {
        let parts = text.split(separator: "_", maxSplits: 1)
        guard parts.count == 2 else { return text }
        return "\(parts[0])_\(parts[1].uppercased())"
    }

    /// Parses a description: the first line is the summary. In later lines, a single point means an empty line.
    init(field: String) {
        var lines = field.split(separator: "\n", omittingEmptySubsequences: false)
        summary = lines.isEmpty ? "" : String(lines.removeFirst())
        text = lines.map { $0 == "." ? "" : $0 }.joined(separator: "\n")
    }
}
