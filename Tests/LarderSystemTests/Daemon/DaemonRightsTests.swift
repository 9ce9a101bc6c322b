import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the rights of users and groups, which the system identifies.
@Suite struct DaemonRightsTests {
    private let place: TemporaryDirectory
    private let file: String

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        file = place.path + "/larderd.conf"
    }

    private func write(_ text: String) throws {
        try Files.write(file, Array(text.utf8))
        chmod(file, 0o644)
    }

    // MARK: The configuration

    @Test("errors in access rules are reported with their line numbers")
    func errorsInAccessRulesHaveTheirLines() throws {
        try write(
            "allow-uid = root=read\nallow-uid = rot=read\nrights = root=read\nallow-gid = root=reed@shop\n"
                + "rights = user:root=write@SHOP\nalow-uid = root=read\n")
        let (end, _, errors) = try DaemonProcess.run(["--config", file, "--check-config"])
        #expect(end == .exited(2))
        let lines = errors.split(separator: "\n")
        #expect(lines.count == 5, "\(errors)")
        for (line, text) in zip(
            lines,
            [
                ":2: allow-uid: rot=read: there is no user 'rot'; did you mean root?",
                ":3: rights: root=read: it must start with user: or group:",
                ":4: allow-gid: root=reed@shop: LEVEL is read, write or administer, not 'reed'; did you mean read?",
                ":5: rights: user:root=write@SHOP: 'SHOP' is not a database name",
                ":6: there is no option 'alow-uid'; did you mean allow-uid?",
            ])
        { #expect(line.hasPrefix("larderd: \(file)\(text)"), "\(line)") }
    }

    /// Lines of the file are combined. An option on the command line replaces all of them.
    @Test("access rules of a file are combined, and the command line replaces them")
    func accessRulesOfAFileAreCombined() throws {
        try write("rights = user:7=read\nrights = group:8=write@shop # more\nallow-uid = 9=read, 10=read\n")
        let daemon = try DaemonProcess(
            ["--config", file, "--allow-uid", "11=read", "--allow-uid=12=write@a"], in: place)
        let client = try daemon.connect()
        let answer = try client.call("CONFIG GET rights allow-*")
        for text in ["user:7=read,group:8=write@shop", "11=read,12=write@a"] {
            #expect(answer.contains("\r\n\(text)\r\n"), "\(answer)")
        }
        #expect(!answer.contains("9=read"))
        // The user of the tests is the daemon's user.
        #expect(try client.call("SET k v") == "+OK\r\n")
        #expect(try client.call("ACL LIST").contains("user 12 on nopass ~* &* -@all +@connection (a: "))
        #expect(daemon.process.errors.contains("so they cannot connect (--socket-mode, --socket-group)"))
    }

    @Test func sighupAppliesNewAccessRulesUnlessInvalid() throws {
        try write("rights = user:7=read\n")
        let daemon = try DaemonProcess(["--config=-" + file], in: place)
        let client = try daemon.connect()
        func rights() throws -> Bool { try client.call("ACL LIST").contains("\r\nuser 7 on ") }
        #expect(try rights())
        try write("rights = user:7=reed\n")
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "did you mean read?")
        #expect(try rights())
        // If the file is missing, the existing restrictions stay.
        try Files.remove(file)
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "the file is missing; the current rules stay")
        #expect(try rights())
        try write("rights = user:8=write\n")
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "rights = user:8=write was applied")
        #expect(try !rights() && client.call("ACL LIST").contains("\r\nuser 8 on "))
        try write("memory = 5M\n")
        daemon.process.send(signal: SIGHUP)
        _ = try daemon.process.waitForErrorLine(containing: "rights (its default) was applied")
        #expect(try client.call("ACL WHOAMI") == "$7\r\ndefault\r\n")
    }

    // MARK: Users

    #if os(Linux)
        /// Uses clients of other users, which only root can start.
        @Test(.enabled(if: geteuid() == 0, "needs the rights of root"))
        func clientsHaveTheRightsOfTheirUserAndGroups() throws {
            chmod(place.path, 0o755)
            let tool = place.path + "/larderctl"
            #expect(try ChildProcess.run("cp", [try DaemonProcess.program("larderctl"), tool]).end == .exited(0))
            let daemon = try DaemonProcess(
                [
                    "--socket-mode", "666", "--allow-uid", "4321=read", "--allow-gid", "4400=write@shop",
                    "--rights", "group:4401=administer",
                ], in: place)
            func run(_ user: Int, _ groups: String, _ words: String) throws -> (
                end: ProcessEnd, output: String, errors: String
            ) {
                let group = groups.isEmpty ? ["--clear-groups"] : ["--groups", groups]
                return try ChildProcess.run(
                    "setpriv",
                    ["--reuid=\(user)", "--regid=\(user)"] + group + [tool, "--socket", daemon.socketPath]
                        + words.split(separator: " ").map(String.init))
            }
            #expect(try daemon.connect().call("SET k v") == "+OK\r\n")
            #expect(try run(4321, "", "get k").output == "v")
            let refused = try run(4321, "", "set k w")
            #expect(refused.end != .exited(0))
            #expect(
                refused.errors
                    == "larderctl: NOPERM User 4321 has no permissions to run the 'set' command (needs write) (rights "
                    + "are set by larderd's options --allow-uid, --allow-gid and --rights; larderctl acl whoami shows your user)\n"
            )
            #expect(try run(4322, "", "get k").errors.contains("NOPERM User 4322"))
            #expect(try run(4322, "", "acl whoami").output == "4322\n")
            #expect(try run(4322, "", "ping").output == "PONG\n")
            // The right comes from one of many supplementary groups.
            let many = (5000..<5100).map(String.init).joined(separator: ",")
            #expect(try run(4323, many + ",4400", "--database shop set k w").end == .exited(0))
            #expect(try run(4323, many, "--database shop set k w").errors.contains("NOPERM"))
            #expect(try run(4323, "4400", "get k").errors.contains("NOPERM"))
            #expect(try run(4400, "", "--database shop get k").output == "w", "the user's own group has the right")
            #expect(try run(4324, "4401", "config get threads").end == .exited(0))
            // An incomplete export is not marked as complete.
            let (own, all) = (try run(4400, "", "export"), try run(4321, "", "export"))
            #expect(own.output.contains(#""databases":["shop"],"all":false"#), "\(own)")
            #expect(own.errors == "larderctl: this user may read 1 of 2 databases; the others are not exported\n")
            #expect(all.output.contains(#""all":true"#) && all.errors.isEmpty, "\(all)")
            // The exit code depends on whether doctor finds anything else on this machine.
            let looked = try run(4400, "", "doctor")
            #expect(looked.end == .exited(8) || looked.end == .exited(10), "\(looked)")
            #expect(looked.output.contains("\ndatabase-unusable: not checked: this user may read 1 of 2 databases\n"))
            _ = try daemon.process.waitForErrorLine(
                containing: "warning user 4321 has no right to run 'set' (--rights)")
            #expect(try daemon.connect().call("ACL LOG").contains("4321"))
        }

        private static let canCreateUserNamespaces: Bool = {
            let command = ["--user", "--map-root-user", "true"]
            return geteuid() == 0 && (try? ChildProcess.run("unshare", command).end) == .exited(0)
        }()

        /// As in a container with its own user namespace: that namespace does not map the client's user, so larderd
        /// sees the overflow user, 65534.
        @Test(
            "users of another user namespace have the rights of user 65534", .enabled(if: canCreateUserNamespaces))
        func usersOfAnotherUserNamespaceHaveTheRightsOfTheOverflowUser() throws {
            chmod(place.path, 0o755)
            let daemon = try DaemonProcess(
                ["--socket-mode", "666", "--allow-uid", "65534=read", "--allow-uid", "4321=administer"], in: place,
                wrapper: ["unshare", "--user", "--map-root-user"])
            func ask(_ words: String...) throws -> String {
                let client = ["redis-cli", "-s", daemon.socketPath] + words
                return try ChildProcess.run("setpriv", ["--reuid=4321", "--regid=4321", "--clear-groups"] + client)
                    .output
            }
            #expect(try daemon.connect().call("SET k v") == "+OK\r\n", "root is mapped")
            #expect(["65534\n", "nobody\n"].contains(try ask("ACL", "WHOAMI")))
            #expect(try ask("GET", "k") == "v\n")
            #expect(try ask("SET", "k", "w").hasPrefix("NOPERM"))
        }
    #endif
}
