import LarderCommandCatalog
import LarderEngine

/// The options of `SET key value`, and of MSETEX.
struct SetOptions {
    /// The condition on the fresh entry, or on its absence.
    enum Condition {
        case none, absent, present
        case value(ValueCondition)

        func allows(_ update: Update, _ index: Int) -> Bool {
            switch self {
            case .none: true
            case .absent: !update.isFresh(index)
            case .present: update.isFresh(index)
            case .value(let condition): condition.holds(update.payload(index))
            }
        }
    }

    enum Lifetime {
        case governed
        /// An instant in milliseconds since 1970.
        case until(Int64)
        case policy(UpdatePolicy)
        case keep
    }

    private(set) var condition = Condition.none
    private(set) var returnsPrevious = false
    private(set) var lifetime = Lifetime.governed
    /// Whether the lifetime was given as a time span, which is independent of clocks.
    private(set) var isSpan = false
    private(set) var codec = Codec.raw
    /// The grace in milliseconds; nil to use the database's.
    private(set) var grace: Int64?
    /// The jitter in percent; nil to use the database's jitter, which shortens only lifetimes that follow the policy.
    private(set) var jitter: Int?
    /// The leases for which the values were fetched, one per key; empty for none.
    private(set) var tokens: [UInt64] = []
    private var tags: Tags?
    /// Whether the new entry keeps the tags of the previous one, regardless of its lifetime.
    private var keepsTags = false
    var hasTags: Bool { tags != nil || keepsTags }
    /// Whether the new entry keeps anything of the previous one.
    var keepsAny: Bool { keepsDeadline || keepsTags }

    var keepsDeadline: Bool {
        if case .keep = lifetime { true } else { false }
    }

    var loading: Loading {
        switch condition {
        case _ where keepsAny || returnsPrevious: .records
        case .none: .none
        case .absent, .present: .headers
        case .value: .records
        }
    }

    /// Returns the deadline rule of the new entry; nil if its deadline has passed, so that nothing is stored.
    func rule(_ previous: Record?, _ rules: FreshnessRules, now: Int64) -> DeadlineRule? {
        switch lifetime {
        case .governed: jitter == nil ? .governed : rules.settings.rule(nil, jitter: jitter, now: now)
        case .until(let deadline):
            deadline > now ? .own(now + DatabasePolicy.shortened(deadline - now, by: jitter ?? 0)) : nil
        case .policy(let policy): rules.settings.rule(policy, jitter: jitter ?? 0, now: now)
        case .keep: previous?.header.rule ?? .governed
        }
    }

    /// Returns the grace of the new entry. If the lifetime is kept, the grace is kept with it.
    func grace(_ previous: Record?) -> Int64? { keepsDeadline ? grace ?? previous?.header.grace : grace }

    /// Returns the tags of the new entry. If the lifetime is kept, the tags are kept with it: the entry should still be
    /// invalidated with its sources.
    func tags(_ previous: Record?) -> Tags? { keepsAny ? tags ?? previous?.tags : tags }

    /// Whether the given leases are valid, if any were given. If they are valid, the next changes of the keys complete
    /// the leases.
    private func holdsLeases(_ update: Update) -> Bool {
        for (index, token) in tokens.enumerated() {
            guard update.holdsLease(index, token, tags: tags(kept(update, index))) else { return false }
        }
        return true
    }

    /// The previous entry whose lifetime, grace and tags the value at `index` keeps, if it keeps any.
    private func kept(_ update: Update, _ index: Int) -> Record? {
        keepsAny ? update.kept(index, isRefresh: !tokens.isEmpty) : nil
    }

    /// Stores one value under each key of an update, if the condition holds for all of them.
    /// - Returns: whether it did.
    func store(_ values: [UnsafeRawBufferPointer], long: LargeValue?, in update: Update) -> Bool {
        // Check everything before anything is stored, because a key may be given twice.
        for index in values.indices where !condition.allows(update, index) { return false }
        guard holdsLeases(update) else { return false }
        if keepsDeadline { update.origin.tag = WriteTag.setKeeping.rawValue }
        let allKept = keepsAny ? values.indices.map { kept(update, $0) } : []
        for (index, value) in values.enumerated() {
            let previous = keepsAny ? allKept[index] : nil
            guard let rule = rule(previous, update.rules, now: update.now) else {
                update.remove(index)
                continue
            }
            update.put(
                index, payload: value, long: long, rule: rule, grace: grace(previous), codec: codec,
                tags: tags(previous))
        }
        return true
    }

    init(if condition: Condition = .none, lifetime: Lifetime = .governed, returnsPrevious: Bool = false) {
        (self.condition, self.lifetime, self.returnsPrevious) = (condition, lifetime, returnsPrevious)
    }

    /// Parses the options. As in Redis, their combination is checked before their values are parsed.
    /// - Parameters:
    ///   - first: the index of the first option.
    ///   - isForMany: whether they apply to several entries, so that options for one value are not allowed.
    ///   - keyCount: the number of entries.
    init(_ call: Call, from first: Int = 3, isForMany: Bool = false, keyCount: Int = 1) throws(CommandError) {
        var words = Words(isForMany: isForMany, keyCount: keyCount)
        var index = first
        while index < call.count {
            index = try words.take(call, index)
        }
        if let index = words.valueConditionIndex {
            condition = .value(try ValueCondition(call, index))
        } else if words.isForAbsent {
            condition = .absent
        } else if words.isForPresent {
            condition = .present
        }
        returnsPrevious = words.returnsPrevious
        if let index = words.codecIndex {
            guard let named = Codec(name: call.text(index)) else {
                throw CommandError("ERR the codec must be raw, json, plist or custom")
            }
            codec = named
        }
        grace = try words.graceIndex.map { (index) throws(CommandError) in try LarderCommands.grace(call, index) }
        jitter = try words.jitterIndex.map { (index) throws(CommandError) in try LarderCommands.jitter(call, index) }
        tags = try words.tagIndices.map { (indices) throws(CommandError) in
            do throws(TagRules.Impossible) {
                return try Tags(checking: indices.map { call.array($0) })
            } catch {
                throw CommandError("ERR \(error.message)")
            }
        }
        keepsTags = words.keepsTags
        if let index = words.tokenIndex {
            for position in 0..<keyCount { tokens.append(try FetchingCommands.token(call, index + position)) }
        }
        switch words.lifetime {
        case nil: break
        case .keep: lifetime = .keep
        case .policy(let index):
            guard let policy = UpdatePolicy(call.text(index)) else { throw LarderCommands.badPolicy }
            lifetime = .policy(policy)
        case .expiry(let form, let index):
            let value = try call.integer(index)
            lifetime = .until(try form.deadline(value, call, positive: true))
            isSpan = !form.isAbsolute
        }
    }

    /// The given options, and the positions of their values.
    private struct Words {
        enum Lifetime {
            case keep
            case policy(Int)
            case expiry(ExpiryForm, Int)
        }

        let isForMany: Bool
        let keyCount: Int
        var isForAbsent = false
        var isForPresent = false
        var valueConditionIndex: Int?
        var returnsPrevious = false
        var lifetime: Lifetime?
        var codecIndex: Int?
        var graceIndex: Int?
        var jitterIndex: Int?
        var tokenIndex: Int?
        var tagIndices: Range<Int>?
        var keepsTags = false

        /// Parses the option at `index`.
        /// - Returns: the index of the next one.
        mutating func take(_ call: Call, _ index: Int) throws(CommandError) -> Int {
            if call.isWord(index, "NX"), !isForPresent, valueConditionIndex == nil {
                isForAbsent = true
            } else if call.isWord(index, "XX"), !isForAbsent, valueConditionIndex == nil {
                isForPresent = true
            } else if call.isWord(index, "GET"), !isForMany {
                returnsPrevious = true
            } else if call.isWord(index, "KEEPTTL"), lifetime == nil || isKeep {
                lifetime = .keep
            } else if call.isWord(index, "KEEPTAGS"), tagIndices == nil {
                keepsTags = true
            } else if call.isWord(index, "TAGS"), tagIndices == nil, !keepsTags {
                guard index + 1 < call.count, let count = parseInteger(call.bytes(index + 1)), count > 0,
                    count < call.count - index - 1
                else { throw CommandError("ERR TAGS needs the number of tags (1 or more), followed by the tags") }
                tagIndices = (index + 2)..<(index + 2 + Int(count))
                return index + 2 + Int(count)
            } else if call.isWord(index, "TOKEN"), tokenIndex == nil {
                guard index + keyCount < call.count else { throw .syntax }
                tokenIndex = index + 1
                return index + 1 + keyCount
            } else {
                guard index + 1 < call.count else { throw .syntax }
                try takePair(call, index)
                return index + 2
            }
            return index + 1
        }

        private var isKeep: Bool {
            if case .keep = lifetime { true } else { false }
        }

        private mutating func takePair(_ call: Call, _ index: Int) throws(CommandError) {
            if !isForMany, ValueCondition.isOne(call, index), !isForAbsent, !isForPresent, valueConditionIndex == nil {
                valueConditionIndex = index
            } else if call.isWord(index, "CODEC"), codecIndex == nil {
                codecIndex = index + 1
            } else if call.isWord(index, "GRACE"), graceIndex == nil {
                graceIndex = index + 1
            } else if call.isWord(index, "JITTER"), jitterIndex == nil {
                jitterIndex = index + 1
            } else if call.isWord(index, "POLICY"), lifetime == nil {
                lifetime = .policy(index + 1)
            } else if let form = ExpiryForm(call, index), mayFollow(form) {
                lifetime = .expiry(form, index + 1)
            } else {
                throw .syntax
            }
        }

        /// As in Redis, the same option, such as EX, may be repeated; the last one is used.
        private func mayFollow(_ form: ExpiryForm) -> Bool {
            switch lifetime {
            case nil: true
            case .expiry(let before, _): before == form
            case .keep, .policy: false
            }
        }
    }
}
