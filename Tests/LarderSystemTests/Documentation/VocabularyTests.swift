import Testing

/// Tests that the three APIs of a database have the same vocabulary: see the article "Library and client" of
/// LarderClient. Reads their declarations in the sources.
@Suite struct VocabularyTests {
    /// The calls that only some of the APIs have, by name. The article "Library and client" of LarderClient gives the
    /// reason for each.
    static let exceptions: Set<String> = [
        // Enumeration: with bounds in the library, with patterns in the clients.
        "keys", "entries", "dictionary", "allKeys", "forEachKey",
        // In the clients, a snapshot belongs to a connection.
        "snapshot", "withSnapshot", "transaction",
        // Only a process that has the larder open can work on its files.
        "sweep", "statistics", "delete", "deleteAll", "databases", "setAsideDamaged", "salvage", "inMemory", "close",
        "init", "defaultDirectory",
        // The daemon knows no schemas.
        "upgradeAll",
        // Returns two values, the second one later, so it is only for tasks.
        "cachedThenFetched",
        // Sequences for tasks.
        "changes", "decodedChanges",
        // Only for the daemon: within a process, a closure serves the same purpose.
        "script",
        // The blocking client is also a connection.
        "select", "ping", "command", "pipeline", "serverInfo", "socketPath",
    ]
    /// Parameters that only the library has: for clients, the daemon decides.
    static let parametersOfTheLibrary: Set<String> = ["durability", "fillCache", "counting"]

    static let cache = Door("Cache", module: "Larder", also: ["CacheReading"])
    static let remote = Door("RemoteCache", module: "LarderClient")
    static let blocking = Door("BlockingLarderClient", module: "LarderClient")

    @Test func theCacheAndBothClientsHaveTheSameCalls() throws {
        let doors = try [Self.cache, Self.remote, Self.blocking].map { try $0.calls() }
        let names = Set(doors.flatMap { $0.map(\.name) }).subtracting(Self.exceptions)
        #expect(names.count >= 25, "\(names.sorted())")
        for name in names.sorted() {
            let forms = doors.map { Set($0.filter { $0.name == name }.map(\.signature)) }
            #expect(forms[0] == forms[1], "\(name): Cache has \(forms[0].sorted()), RemoteCache \(forms[1].sorted())")
            #expect(
                forms[0] == forms[2],
                "\(name): Cache has \(forms[0].sorted()), BlockingLarderClient \(forms[2].sorted())")
        }
    }

    /// Tests that every exception is still needed.
    @Test("each name in the list of exceptions still differs between the APIs")
    func everyExceptionStillDiffers() throws {
        let doors = try [Self.cache, Self.remote, Self.blocking].map { try $0.calls() }
        for name in Self.exceptions where name != "init" {
            let forms = Set(doors.map { Set($0.filter { $0.name == name }.map(\.signature)) })
            #expect(forms.count > 1, "\(name) is the same everywhere, or nowhere")
        }
    }

    @Test func batchesHaveTheSameCalls() throws {
        let doors = try [
            Door("CacheBatch", module: "Larder"), Door("RemoteBatch", module: "LarderClient"),
            Door("BlockingBatch", module: "LarderClient"),
        ].map { try $0.calls() }
        for name in ["set", "setBytes", "remove", "count", "isEmpty"] {
            let forms = doors.map { Set($0.filter { $0.name == name }.map(\.signature)) }
            #expect(forms[0] == forms[1] && forms[0] == forms[2] && forms[0].count == 1, "\(name): \(forms)")
        }
    }

    /// Each call of the library that may block has an asynchronous form, with the same parameters and result.
    @Test func everyBlockingCallHasAnAsynchronousForm() throws {
        // These calls only use memory, or their documentation says that they are not for asynchronous code.
        let immediate: Set<String> = [
            "name", "policy", "makeBatch", "entries", "cachedThenFetched", "changes", "decodedChanges", "query",
        ]
        for door in [Self.cache, Door("CacheSnapshot", module: "Larder")] {
            let calls = try door.calls().filter { !immediate.contains($0.name) && !$0.isProperty }
            let (asynchronous, synchronous) = (calls.filter(\.isAsync), calls.filter { !$0.isAsync })
            let forms = Set(asynchronous.map(\.fullSignature))
            for call in synchronous {
                #expect(forms.contains(call.fullSignature), "\(call.fullSignature) has no asynchronous form")
            }
            // Calls with an asynchronous fetch closure need no synchronous form.
            let alone = forms.subtracting(synchronous.map(\.fullSignature)).filter { !$0.contains("fetch: closure") }
            #expect(alone == [], "asynchronous only")
        }
    }

    /// Old names that were replaced by standard terms.
    static let oldNames: Set<Substring> = [
        "writeAhead", "JournalAhead", "LongValue", "Graveyard", "takeBack", "ReadsUnderWay", "MemoryRun", "RecordScan",
        "Places", "FIFO", "isOfStranger", "isOfBrowser", "lastWords", "SnapshotSeat", "OtherTypes", "CommandFacts",
        "refuseFromNowOn", "closeForGood", "Told", "Reach", "hotRecords",
        "FewEntries", "MarkTable", "OriginTrust", "PathQuestions", "CircleCheck", "OutboxRests", "LockEntrance",
        "LockGrip",
        "SpareDescriptors", "PatientWriting", "FewEnd", "former", "Former", "goOn", "goesOn", "mend", "mended",
    ]

    @Test("no old name is used in the sources") func noOldNameIsUsed() throws {
        for file in try SourceModule.allFiles() {
            for (index, line) in file.lines.enumerated() {
                let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
                for word in words where Self.oldNames.contains(word) {
                    Issue.record("\(file.path):\(index + 1): \(word) is an old name")
                }
            }
        }
    }

    /// Every call declares the type of its errors, except for calls that run a closure of the caller.
    @Test func everyCallDeclaresItsErrorType() throws {
        var count = 0
        for door in [Self.cache, Self.remote, Self.blocking, Door("EntrySequence", module: "Larder")] {
            for call in try door.calls() where call.throwsSomething && !call.takesClosure {
                count += 1
                #expect(call.throwsTyped, "\(door.type).\(call.signature) throws anything")
            }
        }
        #expect(count > 100)
    }
}

/// One of the three APIs: a type, and its public calls.
struct Door {
    let type: String
    let module: String
    /// Protocols whose extensions contain calls of the type too.
    let protocols: Set<String>

    init(_ type: String, module: String, also protocols: Set<String> = []) {
        self.type = type
        self.module = module
        self.protocols = protocols
    }

    func calls() throws -> [DoorCall] {
        let owners = protocols.union([type])
        return try SourceModule(module).files.flatMap { file -> [DoorCall] in
            var owner = ""
            var calls: [DoorCall] = []
            for index in file.lines.indices {
                let line = file.lines[index]
                if let match = line.prefixMatch(of: Self.ownerPattern) { owner = String(match.output.1) }
                guard owners.contains(owner), line.hasPrefix("    "), !line.hasPrefix("     "),
                    line.firstMatch(of: Self.memberPattern) != nil
                else { continue }
                if let call = DoorCall(file.lines[index...].prefix(16).joined(separator: " ")) { calls.append(call) }
            }
            return calls
        }
    }

    // Immutable, but a Regex is not Sendable.
    private nonisolated(unsafe) static let ownerPattern =
        /(?:@\w+(?:\([^)]*\))? )*(?:package |public |final )*(?:class|struct|enum|protocol|extension) (\w+)/
    private nonisolated(unsafe) static let memberPattern =
        /^ *(?:@\w+(?:\([^)]*\))? )*public (?:static |convenience |mutating )*(?:func|var|init)\b/
}

/// One public function or property, by its declaration.
struct DoorCall {
    let name: String
    let parameters: [(label: String, type: String)]
    let result: String
    let isProperty: Bool
    let isAsync: Bool
    let throwsSomething: Bool
    let throwsTyped: Bool

    /// - Parameter text: the declaration, followed by more text.
    init?(_ text: String) {
        guard let match = text.firstMatch(of: /(?:func (\w+)|(init)|var (\w+))/) else { return nil }
        name = String(match.output.1 ?? match.output.2 ?? match.output.3 ?? "")
        isProperty = match.output.3 != nil
        var rest = Substring(text[match.range.upperBound...])
        if isProperty {
            parameters = []
            result = Self.normal(rest.drop { $0 == ":" || $0 == " " }.prefix { $0 != "{" && $0 != "=" })
            (isAsync, throwsSomething, throwsTyped) = (false, false, true)
            return
        }
        if rest.first == "<" { rest = Self.behind(rest, "<", ">") }
        guard rest.first == "(" else { return nil }
        let behind = Self.behind(rest, "(", ")")
        parameters = Self.parameters(rest[rest.index(after: rest.startIndex)..<rest.index(before: behind.startIndex)])
        let head = behind.prefix { $0 != "{" }
        isAsync = head.contains(/\basync\b/)
        throwsSomething = head.contains(/\bthrows\b/)
        throwsTyped = head.contains(/\bthrows\(/)
        result = head.firstMatch(of: /->(.*)/).map { Self.normal($0.output.1) } ?? ""
    }

    /// The signature for the comparison with other APIs. It lacks parameters that a typed cache omits, and parameters
    /// that only the library has.
    var signature: String {
        let common = parameters.filter {
            !VocabularyTests.parametersOfTheLibrary.contains($0.label) && $0.type != "Value.Type"
        }
        return describe(common)
    }

    var fullSignature: String { describe(parameters) }

    var takesClosure: Bool { parameters.contains { $0.type == "closure" } }

    private func describe(_ parameters: [(label: String, type: String)]) -> String {
        name + "(" + parameters.map { "\($0.label): \($0.type)" }.joined(separator: ", ") + ")"
            + (result.isEmpty ? "" : " -> " + result)
    }

    /// Returns the text after the bracket that closes the bracket at the start.
    private static func behind(_ text: Substring, _ open: Character, _ close: Character) -> Substring {
        var depth = 0
        var last: Character = " "
        for index in text.indices {
            if text[index] == open { depth += 1 }
            // Skip the arrow of a closure type.
            if text[index] == close, !(close == ">" && last == "-") { depth -= 1 }
            last = text[index]
            if depth == 0 { return text[text.index(after: index)...] }
        }
        return ""
    }

    private static func parameters(_ text: Substring) -> [(label: String, type: String)] {
        var parts: [String] = [""]
        var depth = 0
        var last: Character = " "
        for character in text {
            if "([<".contains(character) { depth += 1 }
            if ")]".contains(character) || character == ">" && last != "-" { depth -= 1 }
            last = character
            if character == ",", depth == 0 { parts.append("") } else { parts[parts.count - 1].append(character) }
        }
        return parts.compactMap { part in
            guard let match = part.wholeMatch(of: /\s*(\w+)(?: \w+)?:(.*)/) else { return nil }
            let type = match.output.2.prefix { $0 != "=" }
            return (String(match.output.1), type.contains("->") ? "closure" : normal(type))
        }
    }

    /// A type without spaces, in which the names of models, batches and queried databases of the three APIs are
    /// replaced by common ones.
    private static func normal(_ text: Substring) -> String {
        text.replacing("some Encodable", with: "Value")
            .replacing(/CacheBatch|RemoteBatch<Value>|BlockingBatch/, with: "Batch")
            .replacing(/RemoteCache<Value>|BlockingLarderClient/, with: "Self").filter { !$0.isWhitespace }
    }
}
