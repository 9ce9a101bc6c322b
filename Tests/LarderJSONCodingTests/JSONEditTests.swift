import Foundation
import LarderJSONCoding
import LarderTestSupport
import Testing

/// Tests edits of JSON texts.
@Suite struct JSONEditTests {
    private static func edit(_ path: String, _ action: JSONEdit.Action) throws -> JSONEdit {
        JSONEdit(try #require(EditPath(path)), action)
    }

    private static func json(_ text: String) throws -> JSONText { try #require(JSONText(text)) }

    private static func apply(_ edits: [JSONEdit], to text: String?) throws -> String? {
        guard let text else { return try JSONEdit.apply(edits, to: nil).map { String(decoding: $0, as: UTF8.self) } }
        return try Array(text.utf8).withUnsafeBytes { bytes in
            try JSONEdit.apply(edits, to: bytes).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    @Test func untouchedBytesStay() throws {
        let text = #"{ "n" : 1.50e0 , "s":"\u00e9\/", "list": [ 10 , 20 ], "o":{} }"#
        #expect(
            try Self.apply([Self.edit("list.1", .increment(Self.json("5")))], to: text)
                == #"{ "n" : 1.50e0 , "s":"\u00e9\/", "list": [ 10 , 25 ], "o":{} }"#)
        #expect(
            try Self.apply([Self.edit("s", .append(Self.json(#""\nx""#)))], to: text)
                == #"{ "n" : 1.50e0 , "s":"\u00e9\/\nx", "list": [ 10 , 20 ], "o":{} }"#)
        #expect(
            try Self.apply([Self.edit("o.a.b", .set(Self.json(" [ 1 , 2 ] ")))], to: text)
                == #"{ "n" : 1.50e0 , "s":"\u00e9\/", "list": [ 10 , 20 ], "o":{"a":{"b":[1,2]}} }"#)
        #expect(
            try Self.apply([Self.edit("list", .push([Self.json("30")]))], to: text)
                == #"{ "n" : 1.50e0 , "s":"\u00e9\/", "list": [ 10 , 20,30 ], "o":{} }"#)
        #expect(
            try Self.apply([Self.edit("s", .delete)], to: text)
                == #"{ "n" : 1.50e0, "list": [ 10 , 20 ], "o":{} }"#)
    }

    @Test func missingPlacesAreCreated() throws {
        #expect(try Self.apply([Self.edit("a.b", .increment(Self.json("2")))], to: "{}") == #"{"a":{"b":2}}"#)
        #expect(try Self.apply([Self.edit("a", .append(Self.json("\"x\"")))], to: "{}") == #"{"a":"x"}"#)
        #expect(
            try Self.apply([Self.edit("a", .addUnique([Self.json("1"), Self.json("1.0")]))], to: "{}") == #"{"a":[1]}"#)
        #expect(try Self.apply([Self.edit("a.b", .delete)], to: "{}") == nil)
        #expect(try Self.apply([Self.edit("a", .remove([Self.json("1")]))], to: "{}") == nil)
        #expect(
            try Self.apply([Self.edit("$", .set(Self.json("{}"))), Self.edit("0", .set(Self.json("1")))], to: nil)
                == #"{"0":1}"#)
    }

    @Test func equalElementsAreFoundWhateverTheirText() throws {
        let text = #"[{"a":1,"b":[true]},"é",1.0,10]"#
        let given = [#"{ "b":[true] , "a":1e0 }"#, #""\u00e9""#, "1", "1e1"]
        let values = try given.map { try Self.json($0) }
        #expect(try Self.apply([Self.edit("$", .addUnique(values))], to: text) == nil)
        #expect(try Self.apply([Self.edit("$", .remove(values))], to: text) == "[]")
        #expect(
            try Self.apply([Self.edit("$", .remove([Self.json("9007199254740993")]))], to: "[9007199254740992]") == nil)
    }

    @Test(arguments: [
        ("a.x", "a is a number and has no member 'x'"),
        ("list.9", "list is an array of 1 elements and has no element '9'"),
        ("list.x", "list is an array of 1 elements and has no element 'x'"),
    ])
    func impossiblePlacesAreErrors(path: String, reason: String) throws {
        let edits = [try Self.edit("new", .set(try Self.json("1"))), try Self.edit(path, .set(try Self.json("1")))]
        #expect {
            _ = try Self.apply(edits, to: #"{"a":1,"list":[0]}"#)
        } throws: {
            guard case JSONEdit.Failure.step(2, let text) = $0 else { return false }
            return text.hasPrefix(reason)
        }
    }

    @Test func sumsThatDoNotFitAreErrors() throws {
        let most = "{\"n\":9223372036854775807}"
        #expect(throws: JSONEdit.Failure.self) {
            try Self.apply([Self.edit("n", .increment(Self.json("1")))], to: most)
        }
        #expect(throws: JSONEdit.Failure.self) {
            try Self.apply([Self.edit("n", .increment(Self.json("1e308")))], to: "{\"n\":1e308}")
        }
        #expect(try Self.apply([Self.edit("n", .increment(Self.json("0.5")))], to: "{\"n\":1}") == "{\"n\":1.5}")
        #expect(
            try Self.apply([Self.edit("n", .increment(Self.json("-1")))], to: most) == "{\"n\":9223372036854775806}")
    }

    @Test func depthAndWorkAreLimited() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(JSONText(nested(511)) != nil && JSONText(nested(512)) == nil)
        #expect(throws: JSONEdit.Failure.self) {
            try Self.apply([Self.edit("a.b", .set(try Self.json(nested(511))))], to: "{}")
        }
        let long = "{\"s\":\"" + String(repeating: "x", count: 3 << 20) + "\",\"n\":0}"
        let steps = Array(repeating: try Self.edit("n", .increment(Self.json("1"))), count: 100)
        #expect(throws: JSONEdit.Failure.self) { try Self.apply(steps, to: long) }
    }

    @Test(arguments: ["", ".", "a.", ".a", "a..b", "$.a", "a[0]", "a.$['b']", "$[\"a.b\"]"])
    func pathsWithEmptyStepsAndOfRedisJSONAreRejected(path: String) {
        #expect(EditPath(path) == nil)
    }

    @Test func pathsHaveAtMost512Names() throws {
        func path(_ count: Int) -> String { Array(repeating: "a", count: count).joined(separator: ".") }
        #expect(EditPath(path(513)) == nil)
        #expect(
            try Self.apply([Self.edit(path(512), .set(Self.json("1")))], to: "{}")
                == String(repeating: "{\"a\":", count: 512) + "1" + String(repeating: "}", count: 512))
    }

    // MARK: Random edits

    /// Applies random edits to random documents, and to a tree in parallel.
    @Test func randomEditsAgreeWithAModel() throws {
        var random = SeededGenerator(seed: testSeed("JSONEditTests"))
        for _ in 0..<4000 {
            var tree = Tree.random(depth: 3, &random, isRoot: true)
            var text = tree.text(&random)
            for _ in 0..<4 {
                let path = tree.randomPath(&random)
                let (edit, expected) = try tree.randomEdit(path, &random)
                do {
                    let changed = try Self.apply([edit], to: text)
                    let model = try #require(expected, "\(edit) of \(text) should fail")
                    text = changed ?? text
                    #expect(try Tree(json: text) == model, "\(edit)")
                    tree = model
                } catch is JSONEdit.Failure {
                    #expect(expected == nil, "\(edit) of \(text)")
                }
            }
        }
    }

    /// A JSON value.
    private indirect enum Tree: Equatable, Decodable {
        case number(Int)
        case string(String)
        case flag(Bool)
        case null
        case array([Tree])
        case object([String: Tree])

        init(json text: String) throws { self = try JSONDecoder().decode(Tree.self, from: Data(text.utf8)) }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let flag = try? container.decode(Bool.self) {
                self = .flag(flag)
            } else if let number = try? container.decode(Int.self) {
                self = .number(number)
            } else if let text = try? container.decode(String.self) {
                self = .string(text)
            } else if let elements = try? container.decode([Tree].self) {
                self = .array(elements)
            } else {
                self = .object(try container.decode([String: Tree].self))
            }
        }

        private static let names = ["a", "b", "né", "x y", "0"]

        static func random(depth: Int, _ random: inout SeededGenerator, isRoot: Bool = false) -> Tree {
            switch isRoot
                ? Int.random(in: 4...5, using: &random) : Int.random(in: 0...(depth > 0 ? 5 : 3), using: &random)
            {
            case 0: return .number(Int.random(in: -3...3, using: &random))
            case 1: return .string(["", "é\"\\", "x", "\n"].randomElement(using: &random)!)
            case 2: return .flag(Bool.random(using: &random))
            case 3: return .null
            case 4:
                return .array(
                    (0..<Int.random(in: 0...3, using: &random)).map { _ in Tree.random(depth: depth - 1, &random) })
            default:
                var members: [String: Tree] = [:]
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    members[names.randomElement(using: &random)!] = Tree.random(depth: depth - 1, &random)
                }
                return .object(members)
            }
        }

        /// The value as a text with random white space, order and escapes.
        func text(_ random: inout SeededGenerator) -> String {
            func space() -> String { ["", "", " ", "\n\t"].randomElement(using: &random)! }
            func quoted(_ text: String) -> String {
                "\""
                    + text.unicodeScalars.map { scalar -> String in
                        let isSpecial = scalar == "\"" || scalar == "\\" || scalar.value < 0x20
                        guard isSpecial || Bool.random(using: &random) else { return String(scalar) }
                        return "\\u" + String(repeating: "0", count: 4 - String(scalar.value, radix: 16).count)
                            + String(scalar.value, radix: 16)
                    }.joined() + "\""
            }
            let text: String
            switch self {
            case .number(let number):
                text = Bool.random(using: &random) ? "\(number)" : "\(number).0"
            case .string(let value): text = quoted(value)
            case .flag(let value): text = "\(value)"
            case .null: text = "null"
            case .array(let elements):
                var parts: [String] = []
                for element in elements { parts.append(element.text(&random)) }
                text = "[" + space() + parts.joined(separator: ",") + space() + "]"
            case .object(let members):
                var parts: [String] = []
                for (name, value) in members.shuffled(using: &random) {
                    parts.append(space() + quoted(name) + space() + ":" + value.text(&random))
                }
                text = "{" + parts.joined(separator: ",") + space() + "}"
            }
            return space() + text + space()
        }

        /// A path that mostly leads to a value.
        func randomPath(_ random: inout SeededGenerator) -> [String] {
            var path: [String] = []
            var value = self
            while Int.random(in: 0..<4, using: &random) > 0 || path.isEmpty {
                switch value {
                case .object(let members):
                    let name = (Array(members.keys).sorted() + ["new"]).randomElement(using: &random)!
                    path.append(name)
                    guard let next = members[name] else { return path }
                    value = next
                case .array(let elements):
                    let index = Int.random(in: 0...elements.count, using: &random)
                    path.append("\(index)")
                    guard index < elements.count else { return path }
                    value = elements[index]
                default: return path.isEmpty ? ["a"] : path
                }
            }
            return path
        }

        /// Returns a random edit of the value at a path, and the document afterwards; nil if the edit is an error.
        func randomEdit(_ path: [String], _ random: inout SeededGenerator) throws -> (JSONEdit, Tree?) {
            let place = EditPath(steps: path)
            func literal(_ tree: Tree) throws -> JSONText { try #require(JSONText(tree.text(&random))) }
            var values: [Tree] = []
            for _ in 0..<Int.random(in: 1...3, using: &random) { values.append(Tree.random(depth: 1, &random)) }
            var texts: [JSONText] = []
            for value in values { texts.append(try literal(value)) }
            switch Int.random(in: 0..<7, using: &random) {
            case 0: return (JSONEdit(place, .set(texts[0])), changing(path) { _ in values[0] })
            case 1: return (JSONEdit(place, .delete), removing(path))
            case 2:
                let amount = Int.random(in: -3...3, using: &random)
                let changed = changing(path) {
                    guard let value = $0 else { return .number(amount) }
                    guard case .number(let number) = value else { return nil }
                    return .number(number + amount)
                }
                return (JSONEdit(place, .increment(try literal(.number(amount)))), changed)
            case 3:
                let changed = changing(path) {
                    guard let value = $0 else { return .string("ü\"") }
                    guard case .string(let text) = value else { return nil }
                    return .string(text + "ü\"")
                }
                return (JSONEdit(place, .append(try literal(.string("ü\"")))), changed)
            case 4:
                let changed = changing(path) {
                    guard let value = $0 else { return .array(values) }
                    guard case .array(let elements) = value else { return nil }
                    return .array(elements + values)
                }
                return (JSONEdit(place, .push(texts)), changed)
            case 5:
                let changed = changing(path) {
                    guard case .array(var elements) = $0 ?? .array([]) else { return nil }
                    for value in values where !elements.contains(value) { elements.append(value) }
                    return .array(elements)
                }
                return (JSONEdit(place, .addUnique(texts)), changed)
            default:
                guard value(at: path) != nil else { return (JSONEdit(place, .remove(texts)), self) }
                let changed = changing(path) {
                    guard case .array(let elements)? = $0 else { return nil }
                    return .array(elements.filter { !values.contains($0) })
                }
                return (JSONEdit(place, .remove(texts)), changed)
            }
        }

        private func value(at path: [String]) -> Tree? {
            guard let step = path.first else { return self }
            switch self {
            case .object(let members): return members[step]?.value(at: Array(path.dropFirst()))
            case .array(let elements):
                guard let index = Int(step), elements.indices.contains(index) else { return nil }
                return elements[index].value(at: Array(path.dropFirst()))
            default: return nil
            }
        }

        /// - Parameter change: gets nil if there is no value; returns nil for an error.
        private func changing(_ path: [String], _ change: (Tree?) -> Tree?) -> Tree? {
            guard let step = path.first else { return change(self) }
            let rest = Array(path.dropFirst())
            switch self {
            case .object(var members):
                if let member = members[step] {
                    guard let changed = member.changing(rest, change) else { return nil }
                    members[step] = changed
                } else {
                    guard let created = rest.isEmpty ? change(nil) : Tree.object([:]).changing(rest, change) else {
                        return nil
                    }
                    members[step] = created
                }
                return .object(members)
            case .array(var elements):
                guard let index = Int(step), elements.indices.contains(index),
                    let changed = elements[index].changing(rest, change)
                else { return nil }
                elements[index] = changed
                return .array(elements)
            default: return nil
            }
        }

        private func removing(_ path: [String]) -> Tree {
            guard let step = path.first else { return self }
            let rest = Array(path.dropFirst())
            switch self {
            case .object(var members):
                members[step] = rest.isEmpty ? nil : members[step]?.removing(rest)
                return .object(members)
            case .array(var elements):
                guard let index = Int(step), elements.indices.contains(index) else { return self }
                if rest.isEmpty { elements.remove(at: index) } else { elements[index] = elements[index].removing(rest) }
                return .array(elements)
            default: return self
            }
        }
    }
}
