import LarderServer

/// The table of options in docs/Operating.md, and the configuration file that `make install` installs.
enum ConfigurationPage {
    static var table: String {
        let rows = DaemonOption.serving.map { option in
            let others = option.settingNames.map(\.name).filter { $0 != option.key }.map { "`\($0)`" }
            let canBeSet = option.settingNames.contains(where: \.isChangeable)
            let changes = [option.isLive ? "reload" : nil, canBeSet ? "CONFIG" : nil].compactMap(\.self)
            return "| `\(option.fileUsage)` | \(option.help.joined(separator: " ")) | "
                + "\(changes.joined(separator: ", ")) | \(others.joined(separator: ", ")) |\n"
        }
        return "| option | what it is | live | other names in CONFIG |\n|---|---|---|---|\n" + rows.joined()
    }

    /// A file with all options as comments.
    static var sampleFile: String {
        let options = DaemonOption.serving.map { option in
            option.help.map { "# \($0)\n" }.joined() + "#\(option.fileUsage)\n\n"
        }
        return """
            # The configuration of larderd: see larderd(8). To set an option, remove the # in front of it, and change
            # its value. Then run `larderd --config FILE --check-config` and `systemctl reload larderd`. The log names
            # the options that need `systemctl restart larderd`.
            #
            # BYTES: a number, optionally with K, M, G or T (powers of 1024). TIME: a number, optionally with us, ms, s, m, h or d.


            """ + options.joined().dropLast()
    }
}
