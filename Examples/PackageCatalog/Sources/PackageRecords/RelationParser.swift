/// Parses the relations of one field: `libc6 (>= 2.36), default-mta | mail-transport-agent, python3:any`.
///
/// Bounded by the length of the text. The operators `<` and `>` of old packages mean `<=` and `>=`. Empty elements
/// between commas are skipped, as by dpkg.
struct RelationParser {
    struct Failure: Error { let message: String }

    static func relations(_ text: String) throws(Failure) -> [Relation] {
        var relations: [Relation] = []
        for clause in text.split(separator: ",") {
            guard clause.contains(where: { !$0.isWhitespace }) else { continue }
            var alternatives: [Relation.Alternative] = []
            for part in clause.split(separator: "|", omittingEmptySubsequences: false) {
                alternatives.append(try alternative(part))
            }
            relations.append(Relation(alternatives))
        }
        return relations
    }

    /// Parses `name[:architecture] [(comparison version)]`.
    private static func alternative(_ text: Substring) throws(Failure) -> Relation.Alternative {
        var rest = text.drop(while: \.isWhitespace)
        let name = rest.prefix { !$0.isWhitespace && $0 != "(" && $0 != ":" }
        guard !name.isEmpty, name.unicodeScalars.allSatisfy(isNameCharacter) else {
            throw Failure(message: "invalid package name in '\(shown(text))'")
        }
        rest = rest.dropFirst(name.count)
        var architecture: String?
        if rest.first == ":" {
            let word = rest.dropFirst().prefix { !$0.isWhitespace && $0 != "(" }
            guard !word.isEmpty else { throw Failure(message: "no architecture after ':' in '\(shown(text))'") }
            architecture = String(word)
            rest = rest.dropFirst(word.count + 1)
        }
        rest = rest.drop(while: \.isWhitespace)
        var constraint: Relation.VersionConstraint?
        if rest.first == "(" {
            guard let end = rest.firstIndex(of: ")"), let inner = versionConstraint(rest[..<end].dropFirst()) else {
                throw Failure(message: "invalid version in '\(shown(text))'")
            }
            constraint = inner
            rest = rest[rest.index(after: end)...].drop(while: \.isWhitespace)
        }
        guard rest.isEmpty else { throw Failure(message: "unexpected '\(shown(rest))' in '\(shown(text))'") }
        return Relation.Alternative(String(name), architecture: architecture, constraint: constraint)
    }

    private static func versionConstraint(_ text: Substring) -> Relation.VersionConstraint? {
        let signs: [(String, Relation.VersionConstraint.Comparison)] = [
            ("<<", .earlier), ("<=", .earlierOrEqual), (">=", .laterOrEqual), (">>", .later), ("=", .equal),
            ("<", .earlierOrEqual), (">", .laterOrEqual),
        ]
        let text = text.drop(while: \.isWhitespace)
        guard let (sign, comparison) = signs.first(where: { text.hasPrefix($0.0) }) else { return nil }
        let words = text.dropFirst(sign.count).split(whereSeparator: \.isWhitespace)
        guard words.count == 1 else { return nil }
        return Relation.VersionConstraint(comparison, String(words[0]))
    }

    /// Accepts letters, digits, and `+ - .`; also `_`, which virtual packages of some tools contain.
    private static func isNameCharacter(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "+", "-", ".", "_": true
        default: false
        }
    }

    /// Cut to a readable length.
    private static func shown(_ text: Substring) -> String {
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return words.count > 60 ? words.prefix(60) + "…" : words
    }
}
