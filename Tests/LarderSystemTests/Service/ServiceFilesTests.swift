import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the service files of larderd, as `make install-files` installs them.
@Suite struct ServiceFilesTests {
    private let place: TemporaryDirectory
    private var system: String { place.path + "/usr/lib/systemd/system" }
    private var user: String { place.path + "/usr/lib/systemd/user" }

    init() throws {
        place = try TemporaryDirectory()
        let (end, _, errors) = try install()
        #expect(end == .exited(0), "\(errors)")
    }

    private func install() throws -> (end: ProcessEnd, output: String, errors: String) {
        try ChildProcess.run(
            "make", ["-s", "install-files", "DESTDIR=" + place.path, "PREFIX=/usr"], directory: PackageRoot.path)
    }

    private func text(_ path: String) throws -> String { String(decoding: try Files.read(path), as: UTF8.self) }

    @Test func makeInstallInstallsAllFiles() throws {
        for path in [
            "/usr/lib/systemd/system/larderd.service", "/usr/lib/systemd/system/larderd.socket",
            "/usr/lib/systemd/user/larderd.service", "/usr/lib/systemd/user/larderd.socket",
            "/usr/lib/sysusers.d/larder.conf", "/usr/share/man/man8/larderd.8", "/usr/share/man/man1/larderctl.1",
            "/usr/share/man/man7/larder-protocol.7", "/usr/share/bash-completion/completions/larderd",
            "/usr/share/bash-completion/completions/larderctl", "/usr/share/zsh/vendor-completions/_larderctl",
            "/usr/share/fish/vendor_completions.d/larderctl.fish",
            "/usr/share/man/man8/larderweb.8", "/usr/share/bash-completion/completions/larderweb",
            "/usr/share/zsh/vendor-completions/_larderweb", "/usr/share/fish/vendor_completions.d/larderweb.fish",
            "/usr/lib/systemd/system/larderweb.service", "/usr/lib/systemd/user/larderweb.service",
            "/usr/share/doc/larder/larder.larderd.plist",
            "/usr/share/doc/larder/larderd.service.d/origins.conf", "/etc/larder/larderd.conf",
        ] { #expect(FileSystem.exists(place.path + path), "\(path)") }
        // A file that an administrator has edited is kept.
        try Files.write(place.path + "/etc/larder/larderd.conf", Array("memory = 5M\n".utf8))
        #expect(try install().end == .exited(0))
        #expect(try text(place.path + "/etc/larder/larderd.conf") == "memory = 5M\n")
        // With another PREFIX, the units contain the paths of its programs.
        let (end, _, _) = try ChildProcess.run(
            "make", ["-s", "install-files", "DESTDIR=" + place.path, "PREFIX=/opt/larder"], directory: PackageRoot.path)
        #expect(end == .exited(0))
        #expect(
            try text(place.path + "/opt/larder/lib/systemd/system/larderd.service")
                .contains("\nExecStart=/opt/larder/bin/larderd --config=-%E/larder/larderd.conf "))
    }

    /// The command lines in the units contain valid options of larderd.
    @Test func theCommandLinesOfTheUnitsAreValid() throws {
        let file = place.path + "/larderd.conf"
        for path in [system + "/larderd.service", user + "/larderd.service"] {
            let line = try #require(try text(path).split(separator: "\n").first { $0.hasPrefix("ExecStart=") })
            let words = line.split(separator: " ").dropFirst().map { word in
                word.replacing("%E/larder/larderd.conf", with: file).replacing("%C", with: place.path)
                    .replacing("%t", with: place.path)
            }
            #expect(words.count == 3)
            let (end, output, errors) = try DaemonProcess.run(words.map { String($0) } + ["--check-config"])
            #expect(end == .exited(0) && output.contains("it is optional"), "\(errors)")
        }
    }

    /// The services have few permissions beyond those that they need.
    @Test(.enabled(if: hasSystemd), arguments: ["larderd", "larderweb"])
    func theServiceHasFewPermissions(_ service: String) throws {
        let (end, output, errors) = try ChildProcess.run(
            "systemd-analyze",
            ["security", "--offline=true", "--no-pager", "--threshold=20", system + "/\(service).service"])
        #expect(end == .exited(0), "\(output.suffix(200)) \(errors)")
        let level = try #require(
            output.firstMatch(of: /Overall exposure level for larder[a-z]+.service: ([0-9.]+)/)?.output.1)
        #expect(try #require(Double(level)) <= 2.0)
    }

    /// systemd accepts each line of the units, with the programs of this build.
    @Test(.enabled(if: hasSystemd), arguments: [false, true]) func systemdAcceptsTheUnits(_ isForUsers: Bool) throws {
        let directory = isForUsers ? user : system
        let units = ["larderd.service", "larderd.socket", "larderweb.service"].map { directory + "/" + $0 }
        for unit in units {
            let program = try DaemonProcess.program()
            try Files.write(
                unit, Array(try text(unit).replacing("/usr/bin/larder", with: program.dropLast()).utf8))
        }
        var environment = ProcessInfo.processInfo.environment.map { "\($0.key)=\($0.value)" }
        environment.append("XDG_RUNTIME_DIR=" + place.path)
        let (end, output, errors) = try ChildProcess.run(
            "systemd-analyze", [isForUsers ? "--user" : "--system", "verify", "--man=no"] + units,
            environment: environment)
        #expect(end == .exited(0) && output.isEmpty, "\(output)")
        let said = errors.split(separator: "\n").filter { $0.contains("larder") }
        #expect(said == [], "\(errors)")
    }

    @Test("the group of the service is declared", .enabled(if: hasSystemd)) func theGroupIsDeclared() throws {
        let (end, output, errors) = try ChildProcess.run(
            "systemd-sysusers", ["--dry-run", "--root=" + place.path, place.path + "/usr/lib/sysusers.d/larder.conf"])
        #expect(end == .exited(0), "\(errors)")
        #expect((output + errors).contains("larder"))
    }

    @Test("the file for launchd starts larderd with valid options")
    func theLaunchdFileStartsLarderdWithValidOptions() throws {
        let bytes = try Files.read(place.path + "/usr/share/doc/larder/larder.larderd.plist")
        let list = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil) as? [String: Any]
        #expect(list?["Label"] as? String == "larder.larderd")
        let words = try #require(list?["ProgramArguments"] as? [String])
        #expect(words.first == "/usr/bin/larderd")
        // The options are valid whether the configuration file exists or not.
        let options = words.dropFirst().map { $0.replacing("/etc/larder", with: place.path + "/missing") }
        let (end, _, errors) = try DaemonProcess.run(options + ["--check-config"])
        #expect(end == .exited(0), "\(errors)")
    }

    private static let hasSystemd = FileSystem.exists("/usr/bin/systemd-analyze")
}
