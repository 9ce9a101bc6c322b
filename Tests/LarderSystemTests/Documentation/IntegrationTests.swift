import LarderTestSupport
import Testing

/// Tests of the packages in Examples/Integrations, compiled against stand-ins for the packages that they depend on.
@Suite(.serialized) struct IntegrationTests {
    @Test("the integrations compile, and work with a daemon", .timeLimit(.minutes(20)))
    func integrationsWork() async throws {
        try await ExampleProcess.shell("Tests/Integrations/build.sh .build/integrations 2>&1")
        let daemon = try DaemonProcess()
        let result = try await ExampleProcess.run(
            "LARDER_SOCKET='\(daemon.socketPath)' .build/integrations/build/debug/exercise")
        #expect(result.exitCode == 0, "\(result.errors)")
        #expect(result.output == "Logging\nMetrics\nHummingbird\nVapor\nServiceLifecycle\n")
        #expect(try daemon.stop() == .exited(0))
    }
}
