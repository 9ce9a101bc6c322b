/// Descriptions in several languages, by the MD5 of the English description.
public struct Translations: Sendable {
    private var byMD5: [String: [String: PackageRecord.Description]] = [:]

    public init() {}

    /// The number of descriptions, in all languages together.
    public private(set) var count = 0

    /// The languages, in alphabetical order.
    public private(set) var languages: [String] = []

    /// Adds the descriptions of a record of one of apt's translation files.
    public mutating func add(_ stanza: Stanza) throws(RecordProblem) {
        guard let md5 = stanza["Description-md5"] else {
            throw RecordProblem(line: stanza.line, "there is no Description-md5")
        }
        for (language, description) in PackageRecord.Description.all(in: stanza) {
            if byMD5[md5, default: [:]].updateValue(description, forKey: language) == nil { count += 1 }
            guard !languages.contains(language) else { continue }
            languages.append(language)
            languages.sort()
        }
    }

    func descriptions(md5: String) -> [String: PackageRecord.Description] { byMD5[md5] ?? [:] }
}
