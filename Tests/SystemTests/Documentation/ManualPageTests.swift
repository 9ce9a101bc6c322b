import LarderServer
import ProtocolReference
import TestSupport
import Testing

/// The manual page is as its formatter wants it.
@Suite struct ManualPageTests {
    @Test func thePageIsFormattedWithoutAWarning() throws {
        let page = Array(ManualPage.text.utf8)
        let (end, output, errors) = try ChildProcess.run("groff", ["-man", "-ww", "-Tutf8"], input: page)
        #expect(end == .exited(0) && errors == "", "\(errors)")
        // Without the overstrikes of bold letters and underlines.
        let text = output.replacing(/.\u{8}/, with: "")
        for option in DaemonOption.all { #expect(text.contains(option.usage), "\(option.usage)") }
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "CONFIGURATION FILE", "SIGNALS", "EXIT STATUS", "FILES"] {
            #expect(text.contains("\n\(section)\n"), "\(section)")
        }
    }
}
