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

/// The format of the engine's short binary files, and of the headers of longer ones:
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  magic number of the kind
///      8      4  version of the layout, from 1 on
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16     8n  numbers
///                4  CRC-32C of everything before
/// ```
enum SealedBlock {
    enum Defect: Error, Equatable {
        case newerVersion(UInt32)
        case malformed
    }

    static func bytes(_ magic: UInt64, version: UInt32, _ numbers: [UInt64]) -> [UInt8] {
        var bytes: [UInt8] = []
        func append(_ value: UInt32) { withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) } }
        BigEndian.append(magic, to: &bytes)
        append(version)
        append(CRC32C.checksum(bytes))
        for number in numbers { BigEndian.append(number, to: &bytes) }
        append(CRC32C.checksum(bytes))
        return bytes
    }

    /// Checks the block at the start of `bytes`, and returns its numbers.
    static func numbers(
        _ count: Int, in bytes: UnsafeRawBufferPointer, _ magic: UInt64, version most: UInt32
    ) throws(Defect) -> [UInt64] {
        func isSealed(_ end: Int) -> Bool {
            guard let sum = BigEndian.read(bytes, at: end, count: 4) else { return false }
            return sum == UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[0..<end])))
        }
        guard BigEndian.read(bytes, at: 0) == magic, let version = BigEndian.read(bytes, at: 8, count: 4), isSealed(12)
        else { throw .malformed }
        // A newer layout may differ after this, so nothing else of it is read.
        guard version <= UInt64(most) else { throw .newerVersion(UInt32(version)) }
        guard version >= 1, isSealed(16 + 8 * count) else { throw .malformed }
        return (0..<count).compactMap { BigEndian.read(bytes, at: 16 + 8 * $0) }
    }
}

/// A block that has two places in its file, which are written alternately. The newer of the two blocks is valid.
protocol AlternatingMark {
    /// Increases from mark to mark.
    var number: UInt64 { get }

    init(parsing bytes: UnsafeRawBufferPointer) throws(SealedBlock.Defect)
}

extension AlternatingMark {
    /// Returns the newest valid mark of a file; nil if there is none.
    static func newest(in file: [UInt8], secondOffset: Int) throws(SealedBlock.Defect) -> Self? {
        var newest: Self?
        for offset in [0, secondOffset] where offset < file.count {
            let mark = file.withUnsafeBytes { bytes in
                Result { () throws(SealedBlock.Defect) in
                    try Self(parsing: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
                }
            }
            switch mark {
            case .success(let mark): if newest.map({ $0.number < mark.number }) ?? true { newest = mark }
            case .failure(.malformed): break
            case .failure(let newer): throw newer
            }
        }
        return newest
    }
}
