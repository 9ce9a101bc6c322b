import LarderClient

extension Verb {
    static let policy = Verb(
        name: "policy", synopsis: "[POLICY]",
        summary: "show or change the database's policy: how long entries stay fresh",
        details: """
            A policy is highest (10 seconds), high (1 minute), middle (1 hour), low (24 hours), lowest (7 days), never,
            or a number of seconds.
            A change also applies to present entries; expired ones stay expired.
            Prints the policy and its interval, or OK after a change.
            With --json: {"policy":…,"interval":…}, in milliseconds, null for never.
            """,
        argumentCount: 0...1
    ) { arguments, context in
        guard let word = arguments.words.first else {
            let info = try context.connect().policyInfo()
            if context.options.json {
                context.output.json(
                    .object([("policy", .text(info.policy)), ("interval", .optional(info.intervalMilliseconds))]))
            } else {
                let interval = info.intervalMilliseconds.map { ", " + TimeText.span($0) } ?? ""
                context.output.line(info.policy + interval)
            }
            return .done
        }
        let text = String(decoding: word, as: UTF8.self)
        guard let policy = UpdatePolicy(text) else {
            throw UsageError("'\(printableKey(word))' is not a policy: it is \(UpdatePolicy.syntax)", verb: "policy")
        }
        try context.connect().setPolicy(policy)
        if context.options.json {
            context.output.json(
                .object([
                    ("policy", .text(policy.description)), ("interval", .optional(policy.intervalMilliseconds)),
                ]))
        } else {
            context.output.line("OK")
        }
        return .done
    }
}
