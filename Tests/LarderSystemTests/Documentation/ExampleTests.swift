import Foundation
import LarderTestSupport
import Testing

/// Tests that the examples build and work as described. They are separate packages, each built in its directory below
/// `.build/examples`.
@Suite(.serialized) struct ExampleTests {
    private func build(_ package: String, _ product: String) async throws -> String {
        let scratch = ".build/examples/" + package
        // Remove the build plan: an old one does not include files that were added to Larder later.
        try await ExampleProcess.shell(
            "rm -f \(scratch)/debug.yaml; "
                + "swift build --package-path Examples/\(package) --scratch-path \(scratch) --product \(product)")
        return "\(ExampleProcess.root)/\(scratch)/debug/\(product)"
    }

    @Test(.timeLimit(.minutes(20))) func theMinimalExampleRuns() async throws {
        let program = try await build("Minimal", "minimal")
        let home = try TemporaryDirectory()
        let result = try await ExampleProcess.run("XDG_CACHE_HOME='\(home.path)' '\(program)'")
        #expect(result.exitCode == 0 && result.errors.isEmpty)
        #expect(
            result.output == """
                一本书
                now: ["book:2"] before: ["book:1"]
                fresh: true

                """)
    }

    @Test(.timeLimit(.minutes(20))) func theMinimalClientExampleRuns() async throws {
        let program = try await build("MinimalClient", "minimal-client")
        let daemon = try DaemonProcess()
        let result = try await ExampleProcess.run("LARDER_SOCKET='\(daemon.socketPath)' '\(program)'")
        #expect(result.exitCode == 0 && result.errors.isEmpty, "\(result.errors)")
        #expect(result.output == "apples left: 9\nindex\n[\"eve\"]\npears left: 4\nfresh apples\n")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test(.timeLimit(.minutes(20))) func thePackageCatalogPassesItsOwnTests() async throws {
        let output = try await ExampleProcess.shell(
            "swift test --disable-xctest --package-path Examples/PackageCatalog "
                + "--scratch-path .build/examples/PackageCatalog 2>&1")
        // A run that finds no tests succeeds too, so check the output.
        #expect(output.contains("Suite PackageRecordTests passed"))
    }

    @Test("the package catalog loads, finds and keeps its records", .timeLimit(.minutes(20)))
    func thePackageCatalogKeepsRecords() async throws {
        let program = try await build("PackageCatalog", "package-catalog")
        let place = try TemporaryDirectory()
        let fixtures = ExampleProcess.root + "/Examples/PackageCatalog/Tests/PackageRecordsTests/Fixtures"
        func catalog(_ line: String) async throws -> ExampleProcess.Result {
            try await ExampleProcess.run(
                "FIXTURES='\(fixtures)'; '\(program)' \(line)", directory: place.path)
        }
        let load = "load --directory larder --policy 3600 --translations $FIXTURES/translations.txt"
        let loaded = try await catalog(
            load + " --installed $FIXTURES/records.txt --available - < $FIXTURES/records.txt")
        #expect(loaded.exitCode == 0 && loaded.errors.isEmpty)
        #expect(loaded.output.contains("installed: 10 records"))
        #expect(loaded.output.contains("7 skipped\n    line 34: there is no Version\n"))
        #expect(loaded.output.contains("    3 entries, "))
        #expect(loaded.output.contains("policy middle"))

        let shown = try await catalog("show --directory larder --language ja gruss")
        #expect(shown.output.hasPrefix("gruss:amd64  version 1.0-3+b1\n  section text, "))
        #expect(shown.output.contains("  ja: 挨拶をする\n  uk: вітається\n"))
        #expect(shown.output.hasSuffix("    これは最初の段落です。\n    \n    これは二番目です。\n"))
        #expect(shown.output.contains("Depends: default-mta | mail-transport-agent, python3:any (>= 3.11~), "))
        #expect(shown.output.contains("fresh for another 59 min"))
        let available = try await catalog("show --directory larder --database available sparse:riscv64=0")
        #expect(available.output.hasPrefix("sparse:riscv64=0  version 0\n"))

        let found = try await catalog("search --directory larder hello")
        #expect(found.output.hasPrefix("  gruss:amd64="), "\(found.output)")
        #expect(found.output.contains("says hello – and 再见\n1 of 3 packages say 'hello': counted in "))
        #expect(try await catalog("search --directory larder nonsense").exitCode == 1)
        #expect(try await catalog("needs --directory larder mail-transport-agent").output.contains("gruss:amd64"))
        #expect(try await catalog("sections --directory larder").output.contains("  text: 1 packages, 1.3 MB\n"))
        #expect(try await catalog("snapshot --directory larder gruss").exitCode == 0)
        #expect(try await catalog("show --directory larder larder-example").exitCode == 1)

        #expect(try await catalog("load --directory larder").exitCode == 2)
        #expect(try await catalog("load --directory larder --policy sometimes --installed -").exitCode == 2)
        #expect(try await catalog("load --directory larder --installed nowhere").exitCode == 3)
        #expect(try await catalog("show --directory nowhere gruss").exitCode == 1)
        #expect(try await catalog("frobnicate").errors.contains("there is no verb 'frobnicate'"))
    }

    @Test("the example clients without a Redis library work", .timeLimit(.minutes(10)))
    func exampleClientsWithoutALibraryWork() async throws {
        let place = try TemporaryDirectory()
        let daemon = try DaemonProcess(in: place)
        let clients = ExampleProcess.root + "/Examples/clients"
        try await ExampleProcess.shell(
            "cc -std=c11 -O2 -Wall -Wextra -Werror -o client '\(clients)/c/larder.c'", directory: place.path)
        for client in ["./client", "sh '\(clients)/shell/larder.sh'", "python3 -B '\(clients)/python/larder.py'"] {
            func ask(_ words: String, socket: String = "socket") async throws -> ExampleProcess.Result {
                try await ExampleProcess.run("\(client) \(socket) \(words)", directory: place.path)
            }
            let text = "two\nlines, \"quotes\", 'more', $5, ünïcödé, 一本书 "
            let quoted = "'" + text.replacing("'", with: "'\\''") + "'"
            #expect(try await ask("SET key \(quoted) EX 60").output == "OK\n", "\(client)")
            #expect(try await ask("GET key").output == text + "\n", "\(client)")
            #expect(try await ask("STRLEN key").output == "\(text.utf8.count)\n", "\(client)")
            #expect(try await ask("SET empty ''").output == "OK\n", "\(client)")
            #expect(try await ask("GET empty").output == "\n", "\(client)")
            let nothing = client.contains("python") ? "None" : ""
            #expect(try await ask("MGET empty none key").output == "\n\(nothing)\n\(text)\n", "\(client)")
            let absent = try await ask("GET none")
            #expect(absent.exitCode == 1 && absent.output.isEmpty, "\(client)")
            let refused = try await ask("FROB")
            #expect(refused.exitCode == 1 && refused.errors.contains("unknown command"), "\(client)")
            #expect(try await ask("PING", socket: "no.sock").exitCode == 3, "\(client)")
            #expect(try await ask("").exitCode == 2, "\(client)")
            let databases = try await ask("DATABASES")
            #expect(databases.exitCode == 0 && databases.output.contains("lowest"), "\(client)")
        }
        let snapshot = try await ExampleProcess.shell(
            "python3 -B '\(clients)/python/snapshot.py' socket", directory: place.path)
        #expect(snapshot.contains("in the snapshot:   bread 3.20, milk 1.15, salt nothing\n"))
        #expect(try daemon.stop() == .exited(0))
    }

    /// Programs in four languages share an entry: only the first one requests it from the origin.
    @Test(
        "of programs in four languages, only the first one requests an entry from the origin", .timeLimit(.minutes(10)))
    func onlyOneOfTheExampleClientsFetches() async throws {
        try ClientProgram.require("node", package: "nodejs")
        try ClientProgram.require("php", package: "php-cli")
        let place = try TemporaryDirectory()
        let daemon = try DaemonProcess(in: place)
        let connection = try daemon.connect()
        let clients = ExampleProcess.root + "/Examples/clients"
        let programs = try DaemonProcess.program("larderctl").split(separator: "/").dropLast().joined(separator: "/")
        let lines = [
            "python": "'\(try ClientProgram.python())' -B '\(clients)/python/cached.py' '\(daemon.socketPath)'",
            "node": "NODE_PATH=/usr/share/nodejs node '\(clients)/node/cached.js' '\(daemon.socketPath)'",
            "php": "php '\(clients)/php/cached.php' '\(daemon.socketPath)'",
            "shell": "PATH='/\(programs)':\"$PATH\" LARDER_SOCKET='\(daemon.socketPath)' '\(clients)/shell/cached.sh'",
        ]
        func ask(_ name: String, _ city: String) async throws -> ExampleProcess.Result {
            try await ExampleProcess.run("\(lines[name] ?? "") \(city)", directory: place.path)
        }
        for first in lines.keys {
            _ = try connection.call("DEL weather:oslo weather:atlantis weather:hell")
            for name in [first] + lines.keys.filter({ $0 != first }) {
                let asks = name == first ? "\(name) asks the origin\n" : ""
                let oslo = try await ask(name, "oslo")
                #expect(oslo.exitCode == 0 && oslo.errors == asks, "\(name): \(oslo)")
                #expect(oslo.output.contains("oslo") && oslo.output.contains("rain"), "\(name): \(oslo)")
                if name != "shell" { #expect(oslo.output == "oslo: rain\n", "\(name)") }
                let atlantis = try await ask(name, "atlantis")
                #expect(
                    atlantis.exitCode == 1 && atlantis.errors == asks && atlantis.output.isEmpty, "\(name): \(atlantis)"
                )
                let hell = try await ask(name, "hell")
                #expect(hell.exitCode == (name == "shell" ? 6 : 3) && hell.output.isEmpty, "\(name): \(hell)")
            }
        }
        // The origin is not available, so stale entries are served.
        for name in lines.keys {
            _ = try connection.call("DEL weather:hell")
            _ = try connection.call(["SET", "weather:hell", #"{"city":"hell","sky":"fire"}"#, "PX", "1", "GRACE", "60"])
            while try connection.call("GET weather:hell") != "$-1\r\n" { nap() }
            let stale = try await ask(name, "hell")
            #expect(stale.exitCode == 0 && stale.output.contains("fire"), "\(name): \(stale)")
            #expect(stale.errors.contains("\(name) asks the origin"))
            let again = try await ask(name, "hell")
            #expect(again.exitCode == 0 && again.errors.isEmpty && again.output.contains("fire"), "\(name): \(again)")
        }
        #expect(try daemon.stop() == .exited(0))
    }

    // MARK: The tour

    /// Copies the programs of this build to a directory for the tour.
    private func programs(in place: String) async throws -> String {
        let catalog = try await build("PackageCatalog", "package-catalog")
        try await ExampleProcess.shell(
            """
            mkdir bin && ln -s '\(try DaemonProcess.program())' '\(try DaemonProcess.program("larderctl"))' \
            '\(catalog)' bin/ && cc -o bin/larder-c '\(ExampleProcess.root)/Examples/clients/c/larder.c'
            """, directory: place)
        return place + "/bin"
    }

    /// Runs the tour with the packages that dpkg has installed. Only `make run` uses the sixty thousand available
    /// records.
    private func tour(_ programs: String, _ place: String) async throws -> ExampleProcess.Result {
        try await ExampleProcess.run(
            "TOUR_BIN='\(programs)' TOUR_AVAILABLE=no TMPDIR='\(place)' Examples/tour.sh")
    }

    @Test(.timeLimit(.minutes(20))) func theTourDemonstratesItsClaims() async throws {
        let place = try TemporaryDirectory()
        let result = try await tour(try await programs(in: place.path), place.path)
        #expect(result.exitCode == 0, "\(result.output)\(result.errors)")
        #expect(result.output.contains("every acknowledged write is there, and no batch was stored only in part"))
        #expect(result.output.contains("The tour showed 20 claims"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["bin"])
    }

    @Test(.timeLimit(.minutes(20))) func theTourFailsIfAClaimIsNotMet() async throws {
        let place = try TemporaryDirectory()
        let programs = try await programs(in: place.path)
        // A client that receives a value other than the stored one must be reported.
        try await ExampleProcess.shell(
            "rm larder-c && printf '#!/bin/sh\\necho something else\\n' > larder-c && chmod +x larder-c",
            directory: programs)
        let result = try await tour(programs, place.path)
        #expect(result.exitCode == 1)
        #expect(result.output.contains("✗ expected 'hello from a shell"))
        #expect(result.output.hasSuffix("The tour ends here: that was not as it should be.\n"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["bin"])
    }
}
