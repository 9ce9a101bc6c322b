import Larder
import PackageRecords

/// `sections`: goes over all entries lazily and adds them up.
enum Sections {
    static func run(_ arguments: inout Arguments) throws {
        let cache = try Databases.open(&arguments)
        try arguments.end()
        var sums: [String: (packages: Int, bytes: Int64)] = [:]
        let entries = try cache.entries(of: PackageRecord.self).makeIterator()
        while let entry = try entries.next() {
            let record = try entry.value()
            let old = sums[record.section ?? "none"] ?? (0, 0)
            // Sizes come from outside: an absurd one must not stop the program.
            let (bytes, overflow) = old.bytes.addingReportingOverflow(record.installedBytes ?? 0)
            sums[record.section ?? "none"] = (old.packages + 1, overflow ? .max : bytes)
        }
        for (section, sum) in sums.sorted(by: { ($1.value.bytes, $0.key) < ($0.value.bytes, $1.key) }) {
            Console.out("  \(section): \(Format.count(sum.packages)) packages, \(Format.bytes(sum.bytes))")
        }
    }
}
