import LarderCommandCatalog
import LarderEngine

/// The published events: the setting `notify-keyspace-events`.
struct KeyspaceEvents: OptionSet, Sendable {
    let rawValue: Int

    /// To `__keyspace@<db>__:<key>`.
    static let keyspace = KeyspaceEvents(rawValue: 1)
    /// To `__keyevent@<db>__:<event>`.
    static let keyevent = KeyspaceEvents(rawValue: 2)
    static let generic = KeyspaceEvents(rawValue: 4)
    static let string = KeyspaceEvents(rawValue: 8)
    static let expired = KeyspaceEvents(rawValue: 16)
    /// Entries removed to keep a disk limit. Entries evicted from memory only are still stored.
    static let evicted = KeyspaceEvents(rawValue: 32)
    static let new = KeyspaceEvents(rawValue: 64)
    /// Accepted for compatibility: reads are not reported.
    static let missed = KeyspaceEvents(rawValue: 128)
    /// Events of types that Larder does not have: lists, sets, hashes, sorted sets, streams, modules.
    private static let others: [(Character, KeyspaceEvents)] = [
        ("l", KeyspaceEvents(rawValue: 256)), ("s", KeyspaceEvents(rawValue: 512)),
        ("h", KeyspaceEvents(rawValue: 1024)), ("z", KeyspaceEvents(rawValue: 2048)),
        ("t", KeyspaceEvents(rawValue: 4096)), ("d", KeyspaceEvents(rawValue: 8192)),
    ]
    private static let all: KeyspaceEvents = others.reduce([.generic, .string, .expired, .evicted]) { $0.union($1.1) }
    /// In the order of Redis.
    private static let letters: [(Character, KeyspaceEvents)] =
        [("g", .generic), ("$", .string)] + others.prefix(4) + [("x", .expired), ("e", .evicted)] + others.suffix(2)

    /// Nil if Redis does not know a letter.
    init?(_ text: String) {
        self = []
        for letter in text {
            switch letter {
            case "A": formUnion(Self.all)
            case "K": insert(.keyspace)
            case "E": insert(.keyevent)
            case "m": insert(.missed)
            case "n": insert(.new)
            default:
                guard let known = Self.letters.first(where: { $0.0 == letter }) else { return nil }
                insert(known.1)
            }
        }
    }

    init(rawValue: Int) { self.rawValue = rawValue }

    /// The text that Redis shows. It omits `n` if all others are set.
    var text: String {
        var text = ""
        if isSuperset(of: Self.all) {
            text = "A"
        } else {
            for (letter, event) in Self.letters where contains(event) { text.append(letter) }
            if contains(.new) { text.append("n") }
        }
        if contains(.keyspace) { text.append("K") }
        if contains(.keyevent) { text.append("E") }
        if contains(.missed) { text.append("m") }
        return text
    }

    /// Whether any event would be published.
    var isActive: Bool {
        !isDisjoint(with: [.keyspace, .keyevent]) && !isDisjoint(with: [.generic, .string, .expired, .evicted, .new])
    }

    static let errorText = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
}

/// The events of writes, named like those of Redis.
extension WriteTag {
    typealias Event = (kind: KeyspaceEvents, name: String)

    /// The events of an entry that was stored.
    func stored(_ header: RecordHeader) -> [Event] {
        switch self {
        case .set, .other:
            guard case .own = header.rule else { return [(.string, "set")] }
            return [(.string, "set"), (.generic, "expire")]
        case .setKeeping: return [(.string, "set")]
        case .append: return [(.string, "append")]
        case .setrange: return [(.string, "setrange")]
        case .incrby: return [(.string, "incrby")]
        case .incrbyfloat: return [(.string, "incrbyfloat")]
        case .setbit: return [(.string, "setbit")]
        case .bitop: return [(.string, "set")]
        case .expire: return [(.generic, "expire")]
        case .getex:
            if case .own = header.rule { return [(.generic, "expire")] }
            return [(.generic, "persist")]
        case .persist: return [(.generic, "persist")]
        case .rename: return [(.generic, "rename_to")]
        case .copy: return [(.generic, "copy_to")]
        case .move: return [(.generic, "move_to")]
        case .restore: return [(.generic, "restore")]
        case .delete: return []
        }
    }

    /// The events of an entry that was removed.
    var removed: [Event] {
        switch self {
        case .rename: [(.generic, "rename_from")]
        case .move: [(.generic, "move_from")]
        // A deadline in the past: the entry is stored and expires in one step.
        case .set: [(.string, "set"), (.generic, "expire"), (.expired, "expired")]
        default: [(.generic, "del")]
        }
    }

    /// Whether the entry counts as new even if the key already had one: Redis removes the old entry first, without an
    /// event.
    var replaces: Bool { [.rename, .move, .copy, .restore].contains(self) }

    /// Whether the command moves an entry from one key to another.
    var moves: Bool { self == .rename || self == .move }
}
