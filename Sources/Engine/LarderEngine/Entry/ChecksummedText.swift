/// The content of a small text file of a larder: each line has a name and a value. The first line has the kind and the
/// version of the file, the last line the checksum of all previous lines.
package struct ChecksummedText {
    package enum Defect: Error, Equatable {
        case newerFormat(Int)
        case malformed(String)
    }

    let version: Int
    /// The values of the lines, in the order of the names for this version.
    let values: [Substring]

    static func text(
        _ kind: String, version: Int, _ fields: [(name: String, value: any CustomStringConvertible)]
    ) -> String {
        let body = fields.reduce(into: "\(kind) \(version)\n") { $0 += "\($1.name) \($1.value)\n" }
        return body + CRC32C.line(of: body)
    }

    /// - Parameter names: the names of the values: a list for each version, beginning with version 1.
    init(parsing bytes: [UInt8], kind: String, names: [[String]]) throws(Defect) {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformed("it is not text") }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let fields = lines.map { $0.split(separator: " ", maxSplits: 1) }
        guard let first = fields.first, first.count == 2, first[0] == kind, let version = Int(first[1])
        else { throw .malformed("the first line must be '\(kind)' followed by a version") }
        guard version >= 1 else { throw .malformed("invalid version \(version)") }
        // A newer layout may have other lines, so nothing else of it is read.
        guard version <= names.count else { throw .newerFormat(version) }
        let names = names[version - 1]
        let last = names.count + 1
        guard lines.count == last + 2, lines[last + 1].isEmpty else { throw .malformed("it needs \(last + 1) lines") }
        let body = lines[..<last].map { $0 + "\n" }.joined()
        guard lines[last] + "\n" == CRC32C.line(of: body) else { throw .malformed("the checksum does not match") }
        var values: [Substring] = []
        for (field, name) in zip(fields.dropFirst(), names) {
            guard field.count == 2, field[0] == name else { throw .malformed("'\(name)' is missing") }
            values.append(field[1])
        }
        self.version = version
        self.values = values
    }
}
