import LarderCommandCatalog
import LarderEngine

/// The kinds of events that are published: the value of the setting `notify-keyspace-events`.
struct KeyspaceEvents: OptionSet, Sendable {
    let rawValue: Int

    /// Publish to the channel `__keyspace@<db>__:<key>`.
    static let keyspace = KeyspaceEvents(rawValue: 1)
    /// Publish to the channel `__keyevent@<db>__:<event>`.
    static let keyevent = KeyspaceEvents(rawValue: 2)
    static let generic = KeyspaceEvents(rawValue: 4)
    static let string = KeyspaceEvents(rawValue: 8)
    static let expired = KeyspaceEvents(rawValue: 16)
    /// Entries that were removed to keep a disk limit. An entry that is only removed from memory causes no event.
    static let evicted = KeyspaceEvents(rawValue: 32)
    static let new = KeyspaceEvents(rawValue: 64)
    /// The letter for reads of missing keys is accepted for compatibility, but reads cause no events.
    static let missed = KeyspaceEvents(rawValue: 128)
    /// The letters for types that Larder does not have: lists, sets, hashes, sorted sets, streams, modules.
    private static let others: [(Character, KeyspaceEvents)] = [
        ("l", KeyspaceEvents(rawValue: 256)), ("s", KeyspaceEvents(rawValue: 512)),
        ("h", KeyspaceEvents(rawValue: 1024)), ("z", KeyspaceEvents(rawValue: 2048)),
        ("t", KeyspaceEvents(rawValue: 4096)), ("d", KeyspaceEvents(rawValue: 8192)),
    ]
    private static let all: KeyspaceEvents = others.reduce([.generic, .string, .expired, .evicted]) { $0.union($1.1) }
    /// The letters in the order in which Redis shows them.
    private static let letters: [(Character, KeyspaceEvents)] =
        [("g", .generic), ("$", .string)] + others.prefix(4) + [("x", .expired), ("e", .evicted)] + others.suffix(2)

    /// Parses the letters of the setting.
    /// - Returns: nil if Redis does not know one of the letters.
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

    /// The letters of the setting as Redis shows them. As in Redis, `n` is omitted if `A` is shown.
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

    /// Whether any event can be published with this setting.
    var isActive: Bool {
        !isDisjoint(with: [.keyspace, .keyevent]) && !isDisjoint(with: [.generic, .string, .expired, .evicted, .new])
    }

    static let errorText = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
}

/// The events that a write causes, with the names that Redis uses.
extension WriteTag {
    typealias Event = (kind: KeyspaceEvents, name: String)

    /// Returns the events for an entry that was stored.
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

    /// The events for an entry that was removed.
    var removed: [Event] {
        switch self {
        case .rename: [(.generic, "rename_from")]
        case .move: [(.generic, "move_from")]
        // SET with a deadline in the past stores the entry, which expires immediately.
        case .set: [(.string, "set"), (.generic, "expire"), (.expired, "expired")]
        default: [(.generic, "del")]
        }
    }

    /// Whether the stored entry is always reported as new. In Redis, these commands first remove an existing entry of
    /// the key, without an event.
    var replaces: Bool { [.rename, .move, .copy, .restore].contains(self) }

    /// Whether the command moves an entry from one key to another.
    var moves: Bool { self == .rename || self == .move }
}
