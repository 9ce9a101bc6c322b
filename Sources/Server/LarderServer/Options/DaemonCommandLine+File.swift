import LarderEngine
import LarderServices

/// Reads options from the configuration file. Options on the command line take precedence.
extension DaemonCommandLine {
    /// Reads the file named by `--config`, if that option was given.
    mutating func readFile(_ mistakes: inout Mistakes) {
        guard let (path, isOptional) = file else { return }
        let content: ConfigurationFile?
        do throws(UsageError) { content = try ConfigurationFile(path: path) } catch {
            return mistakes.note(unreadable: error.message)
        }
        guard var content else {
            if !isOptional { mistakes.note(unreadable: "\(path): there is no such file (--config)") }
            return
        }
        let wrong = take(&content)
        mistakes.note(inFile: content.problems, about: wrong)
        hasReadFile = true
    }

    private mutating func take(_ option: DaemonOption, inFile line: ConfigurationFile.Line) throws(UsageError) {
        guard option.form == .flag else {
            guard let text = line.value else { throw UsageError("\(option.key) needs a value") }
            return try apply(option, joined(option, OptionValue(option: option.key, text: text)))
        }
        switch line.value?.lowercased() {
        case nil, "yes", "true", "on": try apply(option, OptionValue(option: option.key, text: ""))
        case "no", "false", "off": return
        default: throw UsageError("\(option.key) \(line.value ?? ""): must be yes or no")
        }
    }

    /// Applies the lines of a file, and adds errors to the file's list.
    /// - Returns: the names of options whose lines have errors.
    @discardableResult
    mutating func take(_ file: inout ConfigurationFile) -> Set<String> {
        var first: [String: Int] = [:]
        var wrong: Set<String> = []
        for entry in file.lines {
            guard let option = DaemonOption.serving.first(where: { $0.key == entry.name }) else {
                file.note(entry.number, Self.unknown(entry.name))
                continue
            }
            if !option.isRepeatable, let earlier = first.updateValue(entry.number, forKey: entry.name) {
                file.note(entry.number, "\(entry.name) is already set in line \(earlier)")
                continue
            }
            do throws(UsageError) {
                try take(option, inFile: entry)
            } catch {
                file.note(entry.number, error.message)
                wrong.insert(option.name)
            }
        }
        return wrong
    }

    private static func unknown(_ name: String) -> String {
        // Help users who write the name of a Redis setting instead of the option's name.
        if let option = DaemonOption.serving.first(where: { $0.settings.contains { $0.name == name.lowercased() } }) {
            return "there is no option '\(printableKey(name.utf8))': it is called \(option.key)"
        }
        if DaemonOption.all.contains(where: { $0.key == name }) { return "\(name) is allowed only on the command line" }
        if let advice = DaemonOption.removed["--" + name] { return "\(name) was removed: \(advice)" }
        let near = Suggestion.text(for: name, among: DaemonOption.serving.map(\.key))
        return "there is no option '\(printableKey(name.utf8))'\(near)"
    }
}
