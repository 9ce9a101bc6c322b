/// The content of LevelDB's manifest: the files that it names, and the length of its valid part.
///
/// A manifest is a log of edits. Each edit is a sequence of fields with a tag; integers are varints. The format is
/// described in LevelDB's doc/impl.md and db/version_edit.cc.
package struct ManifestScan: Hashable, Sendable {
    /// The number in the manifest's file name.
    package let number: UInt64
    package private(set) var log = LogScan()
    /// The lowest number of a log that LevelDB still needs. In addition, LevelDB needs the log ``previousLogNumber``.
    package private(set) var logNumber: UInt64 = 0
    package private(set) var previousLogNumber: UInt64 = 0
    /// The next file number: files that are created later have this number or a higher one.
    package private(set) var nextFileNumber: UInt64 = 0
    /// The current tables, by number.
    package private(set) var tables: [UInt64: Table] = [:]
    /// Whether an edit has an unknown tag or is malformed. The other properties are then unreliable.
    package private(set) var hasUnknownEdit = false

    /// A table. The keys are LevelDB's internal keys, which consist of the user's key and eight more bytes.
    package struct Table: Hashable, Sendable {
        package var level: UInt64
        package var byteCount: UInt64
        package var smallest: [UInt8]
        package var largest: [UInt8]
    }

    /// Reads the manifest that `CURRENT` names, without changing it.
    /// - Returns: nil if `CURRENT` or its manifest is missing or damaged.
    package static func scan(directory: String) throws(LevelDBError) -> ManifestScan? {
        guard let name = try FileState.currentManifest(directory, "scan manifest") else { return nil }
        return try scan(directory: directory, name: name)
    }

    static func scan(directory: String, name: String) throws(LevelDBError) -> ManifestScan? {
        guard let number = FileNames.manifestNumber(name) else { return nil }
        var result = ManifestScan(number: number)
        do throws(LevelDBError) {
            var edits: [[UInt8]] = []
            result.log = try LogScan.scan("\(directory)/\(name)") { edit in
                edits.append(Array(edit))
                return nil
            }
            for edit in edits { result.apply(edit) }
        } catch {
            if error.code == .notFound { return nil }
            throw error
        }
        return result
    }

    /// Reads the edits that LevelDB has appended since the last call. If `CURRENT` now names another manifest, reads
    /// that one. If LevelDB is still writing the last edit, the next call reads it.
    /// - Returns: whether anything has changed.
    package mutating func update(directory: String) throws(LevelDBError) -> Bool {
        guard let name = try FileState.currentManifest(directory, "scan manifest") else { return false }
        guard FileNames.manifestNumber(name) == number else {
            guard let other = try Self.scan(directory: directory, name: name) else { return false }
            self = other
            return true
        }
        var edits: [[UInt8]] = []
        let previous = log.goodBytes
        log = try LogScan.scan("\(directory)/\(name)", from: previous) { edit in
            edits.append(Array(edit))
            return nil
        }
        for edit in edits { apply(edit) }
        return log.goodBytes != previous
    }

    private init(number: UInt64) { self.number = number }

    /// Whether LevelDB needs the log with this number when it opens.
    package func needs(log number: UInt64) -> Bool { number >= logNumber || number == previousLogNumber }

    private mutating func apply(_ edit: [UInt8]) {
        var fields = Fields(rest: edit[...])
        while !fields.rest.isEmpty {
            guard let tag = fields.varint() else {
                hasUnknownEdit = true
                return
            }
            var isValid = true
            switch tag {
            case 1: isValid = fields.skipText()  // comparator
            case 2: isValid = fields.varint().map { logNumber = $0 } != nil
            case 3: isValid = fields.varint().map { nextFileNumber = $0 } != nil
            case 4: isValid = fields.varint() != nil  // last sequence
            case 5: isValid = fields.varint() != nil && fields.skipText()  // where compactions go on
            case 6: isValid = remove(&fields)
            case 7: isValid = add(&fields)
            case 9: isValid = fields.varint().map { previousLogNumber = $0 } != nil
            default: isValid = false
            }
            if !isValid {
                hasUnknownEdit = true
                return
            }
        }
    }

    /// Removes a table. If the edit moves the table to another level, a later field adds it again.
    private mutating func remove(_ fields: inout Fields) -> Bool {
        guard let level = fields.varint(), let number = fields.varint() else { return false }
        if tables[number]?.level == level { tables[number] = nil }
        return true
    }

    private mutating func add(_ fields: inout Fields) -> Bool {
        guard let level = fields.varint(), let number = fields.varint(), let byteCount = fields.varint(),
            let smallest = fields.text(), let largest = fields.text()
        else { return false }
        tables[number] = Table(level: level, byteCount: byteCount, smallest: smallest, largest: largest)
        return true
    }

    private struct Fields {
        var rest: ArraySlice<UInt8>

        mutating func varint() -> UInt64? {
            var value: UInt64 = 0
            for shift in stride(from: UInt64(0), through: 63, by: 7) {
                guard let byte = rest.popFirst() else { return nil }
                value |= UInt64(byte & 0x7f) << shift
                if byte < 0x80 { return value }
            }
            return nil
        }

        mutating func skipText() -> Bool {
            guard let count = varint(), count <= UInt64(rest.count) else { return false }
            rest = rest.dropFirst(Int(count))
            return true
        }

        mutating func text() -> [UInt8]? {
            let before = rest
            guard skipText() else { return nil }
            var text = Fields(rest: before)
            _ = text.varint()
            return Array(text.rest.prefix(text.rest.count - rest.count))
        }
    }
}
