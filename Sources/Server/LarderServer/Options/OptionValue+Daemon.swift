import LarderEngine
import LarderPlatform
import LarderServices

/// Conversions of options' values to types of larderd.
extension OptionValue {
    func policy() throws(UsageError) -> UpdatePolicy {
        try parsed(UpdatePolicy.typedSyntax) { UpdatePolicy.typed($0) }
    }

    /// Parses a file mode in octal digits. The mode must let the owner read and write.
    func mode() throws(UsageError) -> mode_t {
        guard let mode = mode_t(text, radix: 8), mode & 0o600 == 0o600, mode <= 0o777, text.first != "+" else {
            throw UsageError("\(option) \(text): must be an octal number such as 660, from 600 to 777")
        }
        return mode
    }

    func events() throws(UsageError) -> String {
        guard Notifier.isValid(text) else { throw UsageError("\(option) \(text): \(Notifier.eventsError)") }
        return text
    }

    func commands() throws(UsageError) -> CommandSet {
        do throws(UsageError) { return try CommandSet(text) } catch {
            throw UsageError("\(option): \(error.description)")
        }
    }

    /// Parses access rules.
    /// - Parameter kind: the kind of all rules; nil if each rule contains its own kind.
    func rules(_ kind: AccessRule.Kind?) throws(UsageError) -> [AccessRule] {
        do throws(UsageError) { return try AccessRule.parse(text, kind) } catch {
            throw UsageError("\(option): \(error.description)")
        }
    }

    /// Returns a database's name.
    /// - Parameter orLedger: whether the name of the larder's internal database `LEDGER` is valid too.
    func databaseName(orLedger: Bool = false) throws(UsageError) -> String {
        guard DatabaseName.isValid(text) || orLedger && text == DatabaseName.ledger else {
            throw UsageError("\(option)=\(text): not a database name: \(DatabaseName.rule)")
        }
        return text
    }
}
