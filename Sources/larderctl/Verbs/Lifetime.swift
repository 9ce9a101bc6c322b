// How long an entry stays: options that several verbs have.

import LarderClient

extension OptionSpec {
    static let lifetime = [
        OptionSpec(name: "--policy", value: "POLICY", summary: "how long it stays fresh: \(UpdatePolicy.syntax)"),
        OptionSpec(name: "--ttl", value: "SECONDS", summary: "the same in seconds; fractions are allowed"),
    ]
}

extension VerbArguments {
    /// The policy that ``OptionSpec/lifetime`` names; nil for the database's.
    func policy(_ verb: String) throws(UsageError) -> UpdatePolicy? {
        let word = try options["--policy"]?.text()
        let seconds = try options["--ttl"]?.text()
        switch (word, seconds) {
        case (nil, nil): return nil
        case (_?, _?): throw UsageError("--policy and --ttl exclude each other: give one of them", verb: verb)
        case (let word?, nil):
            guard let policy = UpdatePolicy(word) else {
                throw UsageError("'\(word)' is not a policy: it is \(UpdatePolicy.syntax)", verb: verb)
            }
            return policy
        case (nil, let seconds?):
            // Only a number is meant here, and a number is also a policy.
            guard seconds.utf8.first.map({ $0 < 0x3A }) ?? false, let policy = UpdatePolicy(seconds) else {
                throw UsageError("--ttl takes seconds, 0.001 to 9000000000, not '\(seconds)'", verb: verb)
            }
            return policy
        }
    }

    /// The number that an option names; nil where it is not given.
    func number(_ name: String, _ range: ClosedRange<Int64>, _ unit: String, _ verb: String) throws(UsageError)
        -> Int64?
    {
        guard let option = options[name] else { return nil }
        let text = (try? option.text()) ?? ""
        guard let number = Int64(text), range.contains(number) else {
            throw UsageError(
                "\(name) takes \(unit), \(range.lowerBound) to \(range.upperBound), not '\(text)'", verb: verb)
        }
        return number
    }
}
