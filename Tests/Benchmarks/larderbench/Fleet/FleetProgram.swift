/// `larderbench fleet`: prints the model's results for a fleet.
enum FleetProgram {
    static let name = "fleet"

    static func main(_ words: some Collection<String>) throws(BenchError) {
        guard let inputs = try FleetInputs.parsed(words) else { return print(FleetOption.help, terminator: "") }
        print(FleetReport(inputs: inputs).text)
        print("**Model / simulation**\n\n" + FleetCheck.text, terminator: "")
    }
}
