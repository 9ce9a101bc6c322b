import Larder
import PackageRecords

/// `sections`: iterates lazily over all entries, and sums them by section.
enum Sections {
    static func run(_ arguments: inout Arguments) throws {
        let cache = try Databases.open(&arguments)
        try arguments.end()
        var sums: [String: (packages: Int, bytes: Int64)] = [:]
        let entries = try cache.entries(of: PackageRecord.self).makeIterator()
        while let entry = try entries.next() {
            let record = try entry.value()
            let old = sums[record.section ?? "none"] ?? (0, 0)
            // Sizes come from a file: an extreme one must not crash the program.
            let (bytes, overflow) = old.bytes.addingReportingOverflow(record.installedBytes ?? 0)
            sums[record.section ?? "none"] = (old.packages + 1, overflow ? .max : bytes)
        }
        for (section, sum) in sums.sorted(by: { ($1.value.bytes, $0.key) < ($0.value.bytes, $1.key) }) {
            Console.out("  \(section): \(Format.count(sum.packages)) packages, \(Format.bytes(sum.bytes))")
        }
    }
}
