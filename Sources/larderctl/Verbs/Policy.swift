import LarderClient

extension Verb {
    static let policy: Verb = Verb(
        name: "policy", synopsis: "[POLICY [--grace SECONDS] [--jitter PERCENT]]",
        summary: "show or change the database's policy: how long entries stay fresh",
        details: """
            A policy is highest (10 seconds), high (1 minute), middle (1 hour), low (24 hours), lowest (7 days), never,
            or a number of seconds, optionally with a fraction, or a time such as 250ms, 90s, 15m or 1h.
            A change also applies to existing entries; expired ones stay expired. Without --grace and --jitter, these
            settings are kept.
            Prints the policy, its interval, and the grace and the jitter if there are any; or OK after a change.
            With --json: {"policy":…,"interval":…,"grace":…,"jitter":…}, in milliseconds and percent, the interval null
            for never; after a change only the given values.
            """,
        options: [
            OptionSpec("--grace", "SECONDS", "how long clients that fetch may get a stale value"),
            OptionSpec("--jitter", "PERCENT", "maximum random reduction of lifetimes"),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        let grace = try arguments.grace()
        let jitter = try arguments.jitter()
        guard let word = arguments.words.first else {
            guard grace == nil, jitter == nil else {
                throw UsageError("--grace and --jitter need a policy: larderctl policy low --grace 60")
            }
            let info = try context.options.connect().policyInfo()
            context.show([
                "policy": info.policy, "interval": info.intervalMilliseconds, "grace": info.graceMilliseconds,
                "jitter": info.jitterPercent,
            ]) { output in
                let interval = info.intervalMilliseconds.map { ", " + TimeText.span($0) } ?? ""
                let grace = info.graceMilliseconds > 0 ? ", grace " + TimeText.span(info.graceMilliseconds) : ""
                let jitter = info.jitterPercent > 0 ? ", jitter \(info.jitterPercent) %" : ""
                output.line(info.policy + interval + grace + jitter)
            }
            return .done
        }
        let policy = try VerbArguments.policy(String(decoding: word, as: UTF8.self))
        try context.options.connect().setPolicy(policy, grace: grace.map { .milliseconds($0) }, jitter: jitter)
        context.show(
            .present([
                "policy": policy.description, "interval": policy.intervalMilliseconds?.json ?? .null, "grace": grace,
                "jitter": jitter,
            ]), text: "OK")
        return .done
    }
}
