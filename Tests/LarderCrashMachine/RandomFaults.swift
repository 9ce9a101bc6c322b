import LarderPlatform
import LarderTestSupport

extension FaultControl.Rule: CustomStringConvertible {
    /// Returns a random rule by which calls fail as with a bad or full disk, a resource limit or too little memory. The
    /// rule applies to some calls on some files: once, at a rate, or until the rule is removed.
    static func random(atStart: Bool, _ random: inout SeededGenerator) -> FaultControl.Rule {
        let kinds: [(FileCalls, [Int32])] = [
            ([.write], [EIO, ENOSPC, EDQUOT]), ([.sync], [EIO, ENOSPC]), ([.syncDirectory], [EIO]),
            ([.open, .create, .list], [EMFILE, ENFILE, EACCES]), ([.create], [ENOSPC, EMFILE]),
            ([.read], [EIO]), ([.map], [ENOMEM]), ([.truncate, .write], [EIO]), ([.rename], [EIO, ENOSPC]),
            ([.unlink, .removeDirectory], [EIO, EACCES]), ([.write, .create, .makeDirectory, .allocate], [ENOSPC]),
            (.changing, [EIO, ENOSPC]), (.looking, [EIO]), (.all, [EIO]),
        ]
        let (calls, errors) = kinds.randomElement(using: &random) ?? kinds[0]
        var rule = FaultControl.Rule(calls, .fail(errors.randomElement(using: &random) ?? EIO))
        if !calls.isDisjoint(with: [.read, .write]), random.oneIn(5) {
            rule = FaultControl.Rule([.read, .write], .shorten)
        }
        rule.path =
            ["", "", "JOURNAL", ".log", ".ldb", "POINTER", "MANIFEST", "CURRENT"].randomElement(using: &random) ?? ""
        // Calls on LOCK do not fail: the file identifies the process that holds the larder, and has no data.
        rule.except = "LOCK"
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            rule.first = UInt64.random(in: 1...(atStart ? 60 : 20), using: &random)
            rule.count = 1
        case 1:
            rule.first = UInt64.random(in: 1...30, using: &random)
            rule.count = UInt64.random(in: 1...10, using: &random)
        case 2:
            rule.oneIn = UInt64.random(in: 2...20, using: &random)
            rule.seed = random.next()
        default: rule.first = UInt64.random(in: 1...20, using: &random)
        }
        return rule
    }

    public var description: String {
        let names: [(FileCalls, String)] = [
            (.open, "open"), (.create, "create"), (.read, "read"), (.write, "write"), (.sync, "fsync"),
            (.syncDirectory, "fsync of directories"), (.truncate, "truncate"), (.allocate, "allocate"),
            (.rename, "rename"), (.link, "link"), (.unlink, "unlink"), (.makeDirectory, "mkdir"),
            (.removeDirectory, "rmdir"), (.list, "list"), (.listNext, "readdir"), (.stat, "stat"), (.access, "access"),
            (.close, "close"), (.map, "mmap"), (.lock, "lock"), (.statistics, "statvfs"),
        ]
        let calls = names.filter { self.calls.contains($0.0) }.map(\.1).joined(separator: " ")
        let which = oneIn > 0 ? "one in \(oneIn)" : "from the \(first)th, \(count == .max ? "all" : "\(count)")"
        return "\(calls) of '\(path)': \(action), \(which)"
    }
}
