import LarderCommandCatalog
import LarderEngine
import LarderRESP

struct SetOptions {
    /// The condition under which values are stored. A stale entry counts as absent.
    enum Condition {
        case none, absent, present
        /// A condition on the current value. It is stored in ``Rare/value``.
        case value
    }

    /// Options that are seldom used. Without these, the options are a few bytes that are copied at no cost.
    private final class Rare {
        var value: ValueCondition?
        var codec: Codec?
        var grace: Int64?
        var jitter: Int?
        var tokens: [UInt64]?
        var tags: Tags?
        var keepsTags = false
    }

    enum Lifetime {
        case governed
        /// The entry expires at an instant of the engine's clock, in milliseconds since 1970.
        case until(Int64)
        case policy(UpdatePolicy)
        case keep
    }

    private(set) var condition = Condition.none
    private(set) var returnsPrevious = false
    private(set) var lifetime = Lifetime.governed
    /// Whether the lifetime was given as a time span. A span, unlike an instant, does not depend on a machine's clock.
    private(set) var isSpan = false
    private let rare: Rare?

    /// The codec that was given; nil without the option, which means ``Codec/raw``.
    var codec: Codec? { rare?.codec }
    /// The grace period in milliseconds, in which the expired entry may still be served; nil for the database's period.
    var grace: Int64? { rare?.grace }
    /// The maximum random reduction of a lifetime, in percent. If nil, the database's jitter applies, but only to
    /// lifetimes from the database's policy.
    var jitter: Int? { rare?.jitter }
    /// The tokens of the leases under which the client has computed the values, one per key; nil without leases.
    var tokens: [UInt64]? { rare?.tokens }
    private var tags: Tags? { rare?.tags }
    /// Whether the new entry has the tags of the previous one, even if its lifetime is new.
    private var keepsTags: Bool { rare?.keepsTags ?? false }
    var hasTags: Bool { tags != nil || keepsTags }
    /// Whether the new entry has the lifetime or the tags of the previous one.
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

    /// Returns the deadline rule of the new entry. If its deadline has already passed, returns nil: nothing is stored.
    func rule(_ previous: Record?, _ rules: @autoclosure () -> FreshnessRules, now: Int64) -> DeadlineRule? {
        switch lifetime {
        case .governed: jitter == nil ? .governed : rules().settings.rule(nil, jitter: jitter, now: now)
        case .until(let deadline):
            deadline > now ? .own(now + Jitter.shortened(deadline - now, by: jitter ?? 0)) : nil
        case .policy(let policy): rules().settings.rule(policy, jitter: jitter ?? 0, now: now)
        case .keep: previous?.header.rule ?? .governed
        }
    }

    /// Returns the grace period of the new entry. With KEEPTTL but without GRACE, the previous entry's period is kept.
    func grace(_ previous: Record?) -> Int64? { keepsDeadline ? grace ?? previous?.header.grace : grace }

    /// Returns the tags of the new entry. With KEEPTTL or KEEPTAGS but without TAGS, the previous entry's tags are
    /// kept, so that a purge of these tags still affects the entry.
    func tags(_ previous: Record?) -> Tags? { keepsAny ? tags ?? previous?.tags : tags }

    private func allows(_ update: Update, _ index: Int) -> Bool {
        switch condition {
        case .none: true
        case .absent: !update.isFresh(index)
        case .present: update.isFresh(index)
        case .value: rare?.value?.holds(update.payload(index)) ?? true
        }
    }

    /// Whether all leases of the call are still valid; true for a call without leases. Marks valid leases as completed.
    private func holdsLeases(_ update: Update) -> Bool {
        for (index, token) in (tokens ?? []).enumerated() {
            guard update.holdsLease(index, token, tags: tags(kept(update, index))) else { return false }
        }
        return true
    }

    /// Returns the previous entry from which the value at `index` takes its lifetime or tags; nil if it takes neither.
    private func kept(_ update: Update, _ index: Int) -> Record? {
        keepsAny ? update.kept(index, isRefresh: tokens != nil) : nil
    }

    /// Whether storing needs neither the previous entry nor a lease. Clients' locks and rate limits use such options.
    var isSimple: Bool { rare == nil && !returnsPrevious && !keepsDeadline }

    /// Whether the options are simple, and the value is stored whatever the existing entry is.
    var isUnconditional: Bool { isSimple && condition == .none }

    /// Stores one value for each key of an update. Stores nothing if the condition fails for a key, or a lease is not
    /// valid.
    /// - Parameter first: the index of the first value's key among the update's keys.
    /// - Returns: whether the values were stored.
    func store(
        _ values: some Collection<UnsafeRawBufferPointer>, at first: Int = 0, long: LargeValue? = nil, in update: Update
    ) -> Bool {
        let indices = first..<first + values.count
        // Check all keys before storing a value. A key may be given twice: its first value must not affect the check
        // for the second.
        for index in indices where !allows(update, index) { return false }
        guard holdsLeases(update) else { return false }
        if keepsDeadline { update.origin.tag = WriteTag.setKeeping.rawValue }
        let allKept = keepsAny ? indices.map { kept(update, $0) } : []
        for (index, value) in zip(indices, values) {
            let previous = keepsAny ? allKept[index - first] : nil
            guard let rule = rule(previous, update.rules, now: update.now) else {
                update.remove(index)
                continue
            }
            update.put(
                index, payload: value, long: long, rule: rule, grace: grace(previous), codec: codec ?? .raw,
                tags: tags(previous))
        }
        return true
    }

    init(if condition: Condition = .none, lifetime: Lifetime = .governed, returnsPrevious: Bool = false) {
        (self.condition, self.lifetime, self.returnsPrevious, rare) = (condition, lifetime, returnsPrevious, nil)
    }

    /// Parses the options. As in Redis, an invalid combination of options is reported before an invalid value.
    /// - Parameters:
    ///   - first: the position of the first option in the call.
    ///   - isForMany: whether the command is MSETEX. It stores several entries, and does not allow some options.
    ///   - keyCount: the number of entries that the command stores.
    init(
        _ call: some CommandWords, from first: Int = 3, isForMany: Bool = false, keyCount: Int = 1
    ) throws(CommandError) {
        var words = Words(isForMany: isForMany, keyCount: keyCount)
        var index = first
        while index < call.count { index = try words.take(call, index) }
        if words.valueConditionIndex != nil {
            condition = .value
        } else if words.isForAbsent {
            condition = .absent
        } else if words.isForPresent {
            condition = .present
        }
        returnsPrevious = words.returnsPrevious
        rare = words.hasRare ? try words.rare(call) : nil
        switch words.lifetime {
        case nil: break
        case .keep: lifetime = .keep
        case .policy(let index):
            lifetime = .policy(try call.policy(index))
        case .expiry(let form, let index):
            let value = try call.integer(index)
            lifetime = .until(try form.deadline(value, call, positive: true))
            isSpan = !form.isAbsolute
        }
    }

    /// The options of a call, and the positions of their values in the call.
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

        /// Parses the option that begins at `index`. The most frequent options are checked first.
        /// - Returns: the position of the next option.
        mutating func take(_ call: some CommandWords, _ index: Int) throws(CommandError) -> Int {
            let word = call.bytes(index)
            let short = ShortWord(word)
            if short == .nx, !isForPresent, valueConditionIndex == nil {
                isForAbsent = true
            } else if short == .xx, !isForAbsent, valueConditionIndex == nil {
                isForPresent = true
            } else if let form = ExpiryForm(short), index + 1 < call.count, mayFollow(form) {
                lifetime = .expiry(form, index + 1)
                return index + 2
            } else if equalsIgnoringCase(word, "GET"), !isForMany {
                returnsPrevious = true
            } else if equalsIgnoringCase(word, "KEEPTTL"), lifetime == nil || isKeep {
                lifetime = .keep
            } else if equalsIgnoringCase(word, "KEEPTAGS"), tagIndices == nil {
                (keepsTags, hasRare) = (true, true)
            } else if equalsIgnoringCase(word, "TAGS"), tagIndices == nil, !keepsTags {
                let indices = try call.tagIndices(index + 1)
                (tagIndices, hasRare) = (indices, true)
                return indices.upperBound
            } else if equalsIgnoringCase(word, "TOKEN"), tokenIndex == nil {
                guard index + keyCount < call.count else { throw .syntax }
                (tokenIndex, hasRare) = (index + 1, true)
                return index + 1 + keyCount
            } else {
                guard index + 1 < call.count else { throw .syntax }
                try takePair(call, index)
                return index + 2
            }
            return index + 1
        }

        var hasRare = false

        /// Parses the values of the options that are seldom used.
        func rare(_ call: some CommandWords) throws(CommandError) -> Rare {
            let rare = Rare()
            rare.value = try valueConditionIndex.map { (index) throws(CommandError) in try ValueCondition(call, index) }
            if let index = codecIndex {
                guard let named = Codec(name: call.text(index)) else {
                    throw CommandError("ERR the codec must be raw, json, plist or custom")
                }
                rare.codec = named
            }
            rare.grace = try graceIndex.map { (index) throws(CommandError) in try call.grace(index) }
            rare.jitter = try jitterIndex.map { (index) throws(CommandError) in try call.jitter(index) }
            rare.tags = try tagIndices.map { (indices) throws(CommandError) in try call.tags(indices) }
            rare.keepsTags = keepsTags
            rare.tokens = try tokenIndex.map { (first) throws(CommandError) in
                try (first..<first + keyCount).map { (index) throws(CommandError) in try call.token(index) }
            }
            return rare
        }

        private var isKeep: Bool {
            if case .keep = lifetime { true } else { false }
        }

        private mutating func takePair(_ call: some CommandWords, _ index: Int) throws(CommandError) {
            if call.isWord(index, "POLICY"), lifetime == nil {
                lifetime = .policy(index + 1)
                return
            }
            hasRare = true
            if !isForMany, ValueCondition.isOne(call, index), !isForAbsent, !isForPresent, valueConditionIndex == nil {
                valueConditionIndex = index
            } else if call.isWord(index, "CODEC"), codecIndex == nil {
                codecIndex = index + 1
            } else if call.isWord(index, "GRACE"), graceIndex == nil {
                graceIndex = index + 1
            } else if call.isWord(index, "JITTER"), jitterIndex == nil {
                jitterIndex = index + 1
            } else {
                throw .syntax
            }
        }

        /// As in Redis, an option such as EX may be given several times. The last one applies.
        private func mayFollow(_ form: ExpiryForm) -> Bool {
            switch lifetime {
            case nil: true
            case .expiry(let before, _): before == form
            case .keep, .policy: false
            }
        }
    }
}

/// The form of an expiry time in a command: in seconds or milliseconds, and as an instant or as a time span.
struct ExpiryForm: Equatable {
    let isSeconds: Bool
    let isAbsolute: Bool

    static let seconds = ExpiryForm(isSeconds: true, isAbsolute: false)
    static let milliseconds = ExpiryForm(isSeconds: false, isAbsolute: false)
    static let unixSeconds = ExpiryForm(isSeconds: true, isAbsolute: true)
    static let unixMilliseconds = ExpiryForm(isSeconds: false, isAbsolute: true)

    /// Returns the deadline by the engine's clock, in milliseconds since 1970.
    /// - Parameter positive: whether zero and negative numbers are errors, as they are for SET.
    func deadline(_ value: Int64, _ call: some CommandWords, positive: Bool) throws(CommandError) -> Int64 {
        // Creating the error takes longer than computing the deadline, so create the error only when it is thrown.
        func invalid() -> CommandError { CommandError("ERR invalid expire time in '\(call.name)' command") }
        if positive, value <= 0 { throw invalid() }
        let (scaled, overflow) = isSeconds ? value.multipliedReportingOverflow(by: 1000) : (value, false)
        if overflow { throw invalid() }
        // An instant is a time of the wall clock. Convert it to the engine's clock, which may be ahead.
        let (sum, carry) = scaled.addingReportingOverflow(isAbsolute ? call.timeAhead : call.now)
        if carry, !isAbsolute { throw invalid() }
        return carry ? scaled : sum
    }
}

extension ExpiryForm {
    init?(_ word: ShortWord) {
        switch word {
        case .ex: self = .seconds
        case .px: self = .milliseconds
        case .exat: self = .unixSeconds
        case .pxat: self = .unixMilliseconds
        default: return nil
        }
    }
}
