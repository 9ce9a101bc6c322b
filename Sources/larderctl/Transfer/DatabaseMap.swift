import LarderVocabulary

/// Maps the databases of a larder to those of a Redis: to the same number, or as given by `--map`.
struct DatabaseMap {
    private var names: [Int: String] = [:]
    private var numbers: [String: Int] = [:]

    /// The highest number of a Larder database.
    private static let numbersMax = 15

    /// - Parameters:
    ///   - options: the values of `--map`: each is `NAME=NUMBER` or `NUMBER=NAME`.
    ///   - isNumberFirst: whether the values are `NUMBER=NAME`.
    init(_ options: [String], isNumberFirst: Bool) throws(UsageError) {
        let form = isNumberFirst ? "NUMBER=NAME" : "NAME=NUMBER"
        for option in options {
            let parts = option.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int(isNumberFirst ? parts[0] : parts[1]), number >= 0,
                case let name = String(isNumberFirst ? parts[1] : parts[0]), !name.isEmpty
            else {
                throw UsageError(
                    "--map must be \(form), with a Redis database number, not '\(option)'")
            }
            guard names.updateValue(name, forKey: number) == nil, numbers.updateValue(number, forKey: name) == nil
            else {
                throw UsageError("--map \(option): the number or the name is mapped already")
            }
        }
    }

    /// The numbers in `--map`, in ascending order.
    var mappedNumbers: [Int] { names.keys.sorted() }

    /// Returns the database of the larder for a database number of the Redis.
    func name(_ number: Int) throws(UsageError) -> String {
        if let name = names[number] { return name }
        guard number <= Self.numbersMax else {
            throw UsageError(
                "the Redis has a database \(number), but numbers here end at \(Self.numbersMax): map it to a name with --map "
                    + "\(number)=NAME")
        }
        return "\(number)"
    }

    /// Returns the database number of the Redis for a database of the larder.
    func number(_ name: String) throws(UsageError) -> Int {
        if let number = numbers[name] ?? Int(name) { return number }
        throw UsageError(
            "Redis databases have numbers: map '\(printableKey(name.utf8))' to one with --map \(name)=NUMBER")
    }
}
