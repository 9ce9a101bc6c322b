// The options for lifetimes of entries, shared by several verbs.

import LarderClient

extension OptionSpec {
    static var lifetime: [OptionSpec] {
        [
            OptionSpec("--policy", "POLICY", "how long the entry stays fresh: \(UpdatePolicy.syntax), or 90s, 15m, 2h"),
            OptionSpec(
                "--ttl", "SECONDS",
                "how long the entry stays fresh: seconds, or 90s, 5m, 2h; fractions of seconds are allowed"),
            OptionSpec("--grace", "SECONDS", "how long a stale value may be served"),
            OptionSpec("--jitter", "PERCENT", "maximum random reduction of its lifetime"),
        ]
    }
    static var tag: OptionSpec { OptionSpec("--tag", "TAG", "a tag to purge it by; repeatable, at most 16 times") }
}

extension VerbArguments {
    /// The policy given by ``OptionSpec/lifetime``; nil to use the database's.
    func policy() throws(UsageError) -> UpdatePolicy? {
        let word = try self["--policy"]?.checkedText()
        try refuse("--policy", with: "--ttl")
        if let word { return try Self.policy(word) }
        return try self["--ttl"]?.parsed(Self.rule(1...UpdatePolicy.longestMilliseconds)) { text in
            // Accept only a number, with or without a unit. `typed` parses it, but also accepts the name of a policy.
            text.utf8.first.map { $0 < 0x3A } ?? false ? UpdatePolicy.typed(text) : nil
        }
    }

    /// Parses a policy, or the time that entries stay fresh.
    static func policy(_ word: String) throws(UsageError) -> UpdatePolicy {
        guard let policy = UpdatePolicy.typed(word) else {
            throw UsageError("'\(printableKey(word.utf8))' is not a policy: use \(UpdatePolicy.typedSyntax)")
        }
        return policy
    }

    /// The entry policy given by the options in ``OptionSpec/lifetime``, with grace and jitter.
    func entryPolicy() throws(UsageError) -> EntryPolicy {
        var policy = try policy().map { EntryPolicy.policy($0) } ?? .database
        if let grace = try grace() { policy = policy.grace(.milliseconds(grace)) }
        if let jitter = try jitter() { policy = policy.jitter(percent: jitter) }
        return policy
    }

    /// The given grace, in milliseconds.
    func grace() throws(UsageError) -> Int64? { try time("--grace", 0...UpdatePolicy.longestMilliseconds) }

    /// The time span given by an option, in milliseconds; nil if the option is not given.
    /// - Parameter unit: the unit of a number without a unit. Seconds may have a fraction.
    func time(
        _ name: String, _ range: ClosedRange<Int64>, in unit: TimeSpan.Unit = .seconds
    ) throws(UsageError) -> Int64? {
        guard let option = self[name] else { return nil }
        if unit == .milliseconds { return try option.time(unit, range) }
        return try option.parsed(Self.rule(range)) { Self.span($0).flatMap { range.contains($0) ? $0 : nil } }
    }

    /// Returns the description of valid times in seconds.
    private static func rule(_ milliseconds: ClosedRange<Int64>) -> String {
        func seconds(_ milliseconds: Int64) -> String {
            guard milliseconds % 1000 != 0 else { return "\(milliseconds / 1000)" }
            var text = TimeText.seconds(milliseconds)
            while text.hasSuffix("0") { text.removeLast() }
            return text
        }
        return "\(TimeSpan.rule(.seconds, takesFractions: true)), from \(seconds(milliseconds.lowerBound)) to "
            + seconds(milliseconds.upperBound)
    }

    /// Parses a time span in milliseconds: seconds, optionally with a fraction, or `90s`, `5m`.
    /// - Returns: nil if the text is malformed or the time too long.
    static func span(_ text: String) -> Int64? {
        func isNumber(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || byte == UInt8(ascii: ".") }
        guard let first = text.utf8.first, isNumber(first) else { return nil }
        if text.utf8.allSatisfy(isNumber), Double(text) == 0 { return 0 }
        // Zero is a valid time, but no policy, so `typed` would reject it.
        if TimeSpan.parse(text, unit: .milliseconds) == 0 { return 0 }
        return UpdatePolicy.typed(text)?.intervalMilliseconds
    }

    /// The given jitter, in percent.
    func jitter() throws(UsageError) -> Int? { try self["--jitter"]?.number(0...100) }

    /// The values of `--tag`, checked by `check`. They are bytes, because stored tags need not be UTF-8.
    func byteTags(_ check: ([[UInt8]]) throws(TagRules.Impossible) -> [[UInt8]]) throws(UsageError) -> [[UInt8]] {
        do throws(TagRules.Impossible) {
            return try check(all("--tag").map { $0.bytes ?? [] })
        } catch {
            throw UsageError("--tag: \(error.message)")
        }
    }

    /// The given tags of an entry.
    func tags() throws(UsageError) -> [String] {
        let given = all("--tag").map { $0.bytes ?? [] }
        let tags = TagRules.texts(given)
        guard tags.count == given.count else { throw UsageError("a tag must be valid UTF-8") }
        _ = try byteTags(TagRules.checked)
        return tags
    }
}

extension Verb {
    static let ttl = Verb(
        "ttl", "KEY", "show how long an entry stays fresh",
        details: """
            Prints the remaining seconds, with three decimals, or never.
            With --json: {"key":…,"found":true,"ttl":…}, in milliseconds, null for never.
            Exits with 1 and prints nothing if the key has no fresh entry.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let left = try context.options.connect().timeToLive(forKey: key)
        var milliseconds: Int64?
        if case .milliseconds(let number)? = left { milliseconds = number }
        context.show(["key": key, "found": left != nil, "ttl": milliseconds]) { output in
            if left != nil { output.line(milliseconds.map { TimeText.seconds($0) } ?? "never") }
        }
        return left == nil ? .notFound : .done
    }
}
