import LarderVocabulary

/// Which database of a larder belongs to which number of a Redis: the same number, or what `--map` says.
struct DatabaseMap {
    private var names: [Int: String] = [:]
    private var numbers: [String: Int] = [:]

    /// Larder's databases whose names are numbers have these.
    private static let numbersMax = 15

    /// - Parameters:
    ///   - options: each as `NAME=NUMBER`, or turned round.
    ///   - isNumberFirst: whether the number comes before the name.
    init(_ options: [String], isNumberFirst: Bool, verb: String) throws(UsageError) {
        let form = isNumberFirst ? "NUMBER=NAME" : "NAME=NUMBER"
        for option in options {
            let parts = option.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int(isNumberFirst ? parts[0] : parts[1]), number >= 0,
                case let name = String(isNumberFirst ? parts[1] : parts[0]), !name.isEmpty
            else {
                throw UsageError(
                    "--map takes \(form), a Redis' number and a larder's name, not '\(option)'", verb: verb)
            }
            guard names.updateValue(name, forKey: number) == nil, numbers.updateValue(number, forKey: name) == nil
            else {
                throw UsageError("--map \(option): the number or the name is mapped already", verb: verb)
            }
        }
    }

    /// The numbers that were mapped, ascending.
    var mappedNumbers: [Int] { names.keys.sorted() }

    /// The larder's database for a number.
    func name(_ number: Int) throws(UsageError) -> String {
        if let name = names[number] { return name }
        guard number <= Self.numbersMax else {
            throw UsageError(
                "the Redis has a database \(number), and numbers end at \(Self.numbersMax) here: give it a name with --map "
                    + "\(number)=NAME", verb: "import")
        }
        return "\(number)"
    }

    /// The number for a larder's database.
    func number(_ name: String) throws(UsageError) -> Int {
        if let number = numbers[name] ?? Int(name) { return number }
        throw UsageError(
            "the databases of a Redis have numbers: give '\(printableKey(name.utf8))' one with --map \(name)=NUMBER",
            verb: "export")
    }
}
