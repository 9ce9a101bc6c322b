import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Variants of SET and GET that imply a condition, a lifetime, or the previous value as the reply: SETNX, SETEX,
/// GETSET.
extension CommandTable {
    static let storingCommands: Handlers = [
        .setnx: StoringCommands.setnx,
        .setex: { call throws(CommandError) in try StoringCommands.set(&call, .seconds) },
        .psetex: { call throws(CommandError) in try StoringCommands.set(&call, .milliseconds) },
        .getset: StoringCommands.getset,
        .getex: StoringCommands.getex,
        .msetnx: StoringCommands.msetnx,
    ]
}

enum StoringCommands {
    @Sendable static func setnx(_ call: inout Call) throws(CommandError) -> Outcome {
        let key = try call.key(1)
        let isStored = try StringCommands.store(&call, [key], [call.bytes(2)], SetOptions(if: .absent)).isStored
        return call.reply(isStored ? 1 : 0)
    }

    static func set(_ call: inout Call, _ form: ExpiryForm) throws(CommandError) -> Outcome {
        let deadline = try form.deadline(try call.integer(2), call, positive: true)
        let key = try call.key(1)
        _ = try StringCommands.store(&call, [key], [call.bytes(3)], SetOptions(lifetime: .until(deadline)))
        return call.ok()
    }

    @Sendable static func getset(_ call: inout Call) throws(CommandError) -> Outcome {
        let key = try call.key(1)
        call.session.reply(
            try StringCommands.store(&call, [key], [call.bytes(2)], SetOptions(returnsPrevious: true)).previous)
        return .done
    }

    @Sendable static func msetnx(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count % 2 == 1 else { throw .arity("msetnx") }
        let keys = try call.keys(from: 1, step: 2)
        let values = (0..<keys.count).map { call.bytes(2 * $0 + 2) }
        let isStored = try StringCommands.store(&call, keys, values, SetOptions(if: .absent)).isStored
        return call.reply(isStored ? 1 : 0)
    }

    // MARK: GETEX

    private enum NewLifetime {
        case unchanged
        case never
        case expiry(ExpiryForm, Int)
    }

    @Sendable static func getex(_ call: inout Call) throws(CommandError) -> Outcome {
        let words = try newLifetime(call)
        if case .unchanged = words {
            try call.replyWithValue(1)
            return .done
        }
        // As in Redis, the number is parsed only if there is an entry: otherwise a wrong number is no error.
        let rule = Result { () throws(CommandError) -> DeadlineRule in
            guard case .expiry(let form, let index) = words else { return .ownNever }
            let value = try call.integer(index)
            return .own(try form.deadline(value, call, positive: true))
        }
        let found = try call.update([try call.key(1)], loading: true) { update -> Result<Record?, CommandError> in
            guard let record = update.readRecord(0) else { return .success(nil) }
            return rule.map { rule in
                if case .own(let deadline) = rule, deadline <= update.now {
                    update.remove(0)
                } else if rule == .ownNever {
                    _ = update.persist(0)
                } else {
                    update.set(0, rule)
                }
                return record
            }
        }
        call.session.reply(try found.get())
        return .done
    }

    private static func newLifetime(_ call: Call) throws(CommandError) -> NewLifetime {
        var lifetime = NewLifetime.unchanged
        var index = 2
        while index < call.count {
            if call.isWord(index, "PERSIST") {
                if case .expiry = lifetime { throw .syntax }
                lifetime = .never
                index += 1
                continue
            }
            guard let form = ExpiryForm(call, index), index + 1 < call.count else { throw .syntax }
            switch lifetime {
            case .unchanged: break
            // As in Redis, an option such as EX may be given several times. The last one applies.
            case .expiry(let before, _): guard before == form else { throw .syntax }
            case .never: throw .syntax
            }
            lifetime = .expiry(form, index + 1)
            index += 2
        }
        return lifetime
    }
}
