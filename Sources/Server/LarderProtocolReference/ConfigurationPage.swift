import LarderServer

/// Makes docs/Configuration.md, and the configuration file that `make install` puts into place, from the table of options.
package enum ConfigurationPage {
    package static var text: String {
        let rows = DaemonOption.serving.map { option in
            let others = option.settingNames.map(\.name).filter { $0 != option.key }.map { "`\($0)`" }
            return "| `\(option.fileUsage)` | \(option.help.joined(separator: " ")) | \(option.isLive ? "yes" : "") | "
                + others.joined(separator: ", ") + " |\n"
        }
        return head + rows.joined() + "\n" + units
    }

    private static let head = """
        <!-- Made from the table of options by `make docs`. -->
        # Configuration

        An option of larderd has one name, with which it stands on the command line (`--memory 64M`), in a configuration file
        (`memory = 64M`) and in `CONFIG GET` and `CONFIG SET` (`CONFIG SET memory 64M`). Where Redis has a setting for the same, its
        name does too in CONFIG.

        ```console
        $ larderd --config /etc/larder/larderd.conf --check-config
        larderd: /etc/larder/larderd.conf:3: there is no option 'memori'; did you mean memory?
        $ echo $?
        2
        ```

        - **The file** has one option in a line: `name = value`, or `name value`. Flags are `name = yes`, `name = no`, or the name alone.
          Lines that begin with `#` are comments, and so is what follows a `#` behind a blank. A value may stand in double quotes, in
          which `\\"` and `\\\\` are these characters. The file is UTF-8 and has at most 1 MiB. It must be a regular file, must belong to root
          or to the user of the daemon, and nobody else must be able to write it, a group included.
        - **What is wrong** is said with the file and the line, all of it at once; larderd does not start then (exit code 2). An option that
          stands there twice is wrong too. `--check-config` only says what is wrong.
        - **The command line wins** over the file.
        - **Changing it**: SIGHUP (`systemctl reload larderd`) reads the file again, and the file of the password too. What is marked below
          takes effect at once, and what is gone from the file has its default again; the log names everything else, which takes effect at
          the next start. A file with anything wrong in it changes nothing. What `CONFIG SET` has changed stays so until the file says
          something new about it, or the daemon ends: larderd never writes the file.
        - Paths are best given from the root: others begin where the daemon was started.

        | option | what it is | changes at once | other names in CONFIG |
        |---|---|---|---|

        """

    private static let units = """
        ## Numbers of bytes, and times

        `BYTES` are a number, optionally with a unit, in capitals or not. `TIME` is a number in the unit that the option names, or a number
        with a unit of its own.

        | written | means |
        |---|---|
        | `64K`, `64kb`, `64KiB` | 64 × 1024 bytes |
        | `64M`, `64mb`, `64MiB` | 64 × 1024² bytes |
        | `1G`, `1gb`, `1GiB`; `1T`, `1tb`, `1TiB` | 1024³ bytes; 1024⁴ bytes |
        | `250us`, `250ms`, `90s`, `5m`, `2h`, `1d` | microseconds, milliseconds, seconds, minutes, hours, days |

        All units of bytes are powers of 1024, but for one place: under Redis' own names (`CONFIG SET maxmemory 64m`) a letter alone
        is a power of 1000, as in Redis; with a `b` or `ib` behind it, it is a power of 1024 there too.

        """

    /// A file with all options as comments.
    package static var sampleFile: String {
        let options = DaemonOption.serving.map { option in
            option.help.map { "# \($0)\n" }.joined() + "#\(option.fileUsage)\n\n"
        }
        return """
            # The configuration of larderd: see larderd(8). To change something, remove the # in front of the option, and give it a
            # value; then `larderd --config FILE --check-config`, and `systemctl reload larderd` or, for what the log says
            # needs it, `systemctl restart larderd`.
            #
            # BYTES: a number, optionally with K, M, G or T (powers of 1024). TIME: a number, optionally with us, ms, s, m, h or d.


            """ + options.joined().dropLast()
    }
}
