import Foundation
import LarderJSONCoding
import LarderTestSupport
import Testing

/// Tests of models that call their decoders directly, in every way that decoders allow.
@Suite struct ReadingTests {
    typealias Name = ContainerTests.Name

    /// Runs the current script on a decoder and records its results.
    struct Script: Decodable, CustomStringConvertible {
        @TaskLocal static var body: @Sendable (any Decoder) throws -> String = { _ in "" }
        var description: String
        init(from decoder: any Decoder) throws { description = try Self.body(decoder) }
    }

    private func expectSame(
        _ texts: String..., sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (any Decoder) throws -> String
    ) {
        Script.$body.withValue(body) {
            for text in texts {
                expectSameReading(Script.self, text, sourceLocation: sourceLocation)
                expectSameReading([Script].self, "[\(text),\(text)]", sourceLocation: sourceLocation)
                expectSameReading([String: [Script?]].self, "{\"key\":[null,\(text)]}", sourceLocation: sourceLocation)
            }
        }
    }

    private static func path(_ path: [any CodingKey]) -> String {
        path.map { "\($0.stringValue)/\($0.intValue.map(String.init) ?? "-")" }.joined(separator: ".")
    }

    @Test func keyedContainersAreDecodedLikeFoundation() {
        expectSame(
            #"{"a":1,"b":null,"c":[1,2],"d":{"e":"f"}}"#, #"{"d":{"e":"f"},"c":[1,2],"b":null,"a":1}"#, "{}", "[]",
            "null", "1",
            #"{"a":1,"b":2,"a":3,"c":[],"d":{}}"#
        ) { decoder in
            let fields = try decoder.container(keyedBy: Name.self)
            var said = [
                Self.path(fields.codingPath), fields.allKeys.map(\.stringValue).sorted().joined(separator: ","),
            ]
            for key in ["a", "b", "c", "d", "e", "a"] as [Name] {
                said.append("\(fields.contains(key))")
                said.append(outcome { try fields.decodeNil(forKey: key) })
                said.append(outcome { try fields.decode(Int.self, forKey: key) })
                said.append(outcome { try fields.decodeIfPresent(Int.self, forKey: key) })
                said.append(outcome { try fields.decodeIfPresent([Int].self, forKey: key) })
                said.append(outcome { try fields.decode(Int?.self, forKey: key) })
                said.append(outcome { try fields.decode([String: String].self, forKey: key) })
                said.append(
                    outcome {
                        try fields.nestedContainer(keyedBy: Name.self, forKey: key).decode(String.self, forKey: "e")
                    })
                said.append(
                    outcome {
                        try fields.nestedContainer(keyedBy: Name.self, forKey: key).decode(Int.self, forKey: "e")
                    })
                said.append(outcome { Self.path(try fields.nestedUnkeyedContainer(forKey: key).codingPath) })
                said.append(outcome { try fields.superDecoder(forKey: key).singleValueContainer().decode(Int.self) })
            }
            said.append(outcome { try fields.superDecoder().container(keyedBy: Name.self).allKeys.count })
            return said.joined(separator: "\n")
        }
    }

    @Test func unkeyedContainersAreDecodedLikeFoundation() {
        expectSame("[1,null,\"x\",[2,[3]],{\"a\":4},true,1.5]", "[]", "{}", "null", "[300]", "[null]") { decoder in
            var list = try decoder.unkeyedContainer()
            var said = [Self.path(list.codingPath), "\(list.count ?? -1)"]
            func note(_ text: String) { said.append("\(text) \(list.currentIndex) \(list.isAtEnd)") }
            note(outcome { try list.decode(String.self) })
            note(outcome { try list.decode(UInt8.self) })
            note(outcome { try list.decodeNil() })
            note(outcome { try list.decodeNil() })
            // Skip this at the end of the list, where Foundation's index would still advance.
            if !list.isAtEnd { note(outcome { try list.decodeIfPresent(Int.self) }) }
            note(outcome { try list.decode(String.self) })
            note(
                outcome {
                    var inner = try list.nestedUnkeyedContainer()
                    let first = try inner.decode(Int.self)
                    var deep = try inner.nestedUnkeyedContainer()
                    let text = Self.path(deep.codingPath) + " \(first)"
                    return text + outcome { try deep.decode(Bool.self) } + outcome { try deep.decode(Int.self) }
                })
            note(
                outcome {
                    let inner = try list.nestedContainer(keyedBy: Name.self)
                    return Self.path(inner.codingPath) + outcome { try inner.decode([Int].self, forKey: "a") }
                })
            note(outcome { Self.path(try list.superDecoder().codingPath) })
            note(outcome { try list.decode(Int.self) })
            note(outcome { try list.decode(Double.self) })
            note(outcome { try list.decode(Double.self) })
            note(outcome { try list.decodeNil() })
            return said.joined(separator: "\n")
        }
    }

    /// Two nested containers are read in turns, and models are read from them: each has its own coding path.
    @Test func nestedContainersReadInTurnsAreDecodedLikeFoundation() {
        expectSame(#"{"a":{"x":[1],"y":2},"b":{"x":["q"],"y":{"z":[true]}}}"#) { decoder in
            let fields = try decoder.container(keyedBy: Name.self)
            let a = try fields.nestedContainer(keyedBy: Name.self, forKey: "a")
            let b = try fields.nestedContainer(keyedBy: Name.self, forKey: "b")
            let deep = try b.nestedContainer(keyedBy: Name.self, forKey: "y")
            return [
                outcome { try a.decode([String].self, forKey: "x") }, outcome { try b.decode([Int].self, forKey: "x") },
                outcome { try a.decode([Int].self, forKey: "y") }, outcome { try deep.decode([Int].self, forKey: "z") },
                outcome { try b.decode([String: [Int]].self, forKey: "y") },
                outcome { try a.decode(Bool.self, forKey: "none") },
                Self.path(deep.codingPath), Self.path(a.codingPath), Self.path(b.codingPath),
                Self.path(fields.codingPath),
            ].joined(separator: "\n")
        }
    }

    @Test func singleValuesAreDecodedLikeFoundation() {
        expectSame("1", "1.5", "300", "-1", "\"x\"", "true", "null", "[1]", "{\"a\":1}") { decoder in
            let one = try decoder.singleValueContainer()
            return [
                "\(one.decodeNil())", outcome { try one.decode(Bool.self) }, outcome { try one.decode(String.self) },
                outcome { try one.decode(Double.self) }, outcome { try one.decode(Float.self) },
                outcome { try one.decode(Int.self) }, outcome { try one.decode(Int8.self) },
                outcome { try one.decode(Int16.self) }, outcome { try one.decode(Int32.self) },
                outcome { try one.decode(Int64.self) }, outcome { try one.decode(Int128.self) },
                outcome { try one.decode(UInt.self) }, outcome { try one.decode(UInt8.self) },
                outcome { try one.decode(UInt16.self) }, outcome { try one.decode(UInt32.self) },
                outcome { try one.decode(UInt64.self) }, outcome { try one.decode(UInt128.self) },
                outcome { try one.decode([Int].self) }, outcome { try one.decode([String: Int].self) },
                outcome { try one.decode(Int?.self) }, outcome { try one.decode([Int?]?.self) },
                Self.path(one.codingPath), Self.path(decoder.codingPath),
            ].joined(separator: "\n")
        }
    }

    @Test func codingPathsOfErrorsHaveTheKeysOfTheModel() throws {
        struct Model: Decodable {
            enum Keys: Int, CodingKey { case seven = 7 }
            init(from decoder: any Decoder) throws {
                _ = try decoder.container(keyedBy: Keys.self).decode([Bool].self, forKey: .seven)
            }
        }
        do {
            _ = try JSONCoder().decode(Model.self, from: Array("{\"seven\":[true,1]}".utf8))
            Issue.record("nothing was thrown")
        } catch DecodingError.typeMismatch(let type, let context) {
            #expect(type == Bool.self && context.codingPath.count == 2)
            #expect(context.codingPath[0] as? Model.Keys == .seven && context.codingPath[0].intValue == 7)
            #expect(context.codingPath[1].intValue == 1)
            #expect(!context.debugDescription.isEmpty)
        }
    }

    @Test func decodersHaveTheUserInfoOfTheirCoder() throws {
        struct Model: Decodable {
            static let key = CodingUserInfoKey(rawValue: "greeting")!
            var said: String?
            init(from decoder: any Decoder) throws { said = decoder.userInfo[Self.key] as? String }
        }
        let coder = JSONCoder(userInfo: [Model.key: "hello"])
        #expect(try coder.decode([Model].self, from: Array("[{}]".utf8))[0].said == "hello")
        // Foundation decodes this text.
        #expect(try coder.decode([Model].self, from: Array("[{},]".utf8))[0].said == "hello")
    }

    @Test func fieldsOfLargeObjectsAreDecodedLikeFoundation() throws {
        let pairs = (0..<2000).map { "\"key\($0)\":\($0)" }
        struct Few: Decodable { var key1999: Int, key0: Int, key1000: Int, key1: Int?, missing: Int? }
        let forward = "{" + pairs.joined(separator: ",") + "}"
        expectSameReading(Few.self, forward)
        expectSameReading(Few.self, "{" + pairs.reversed().joined(separator: ",") + ",\"key0\":\"twice\"}")
        expectSameReading([String: Int].self, "{\"a\":1}")
    }

    @Test func modelsCodedOnManyThreadsRoundTrip() async {
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var random = SeededGenerator(seed: UInt64(task))
                    for _ in 0..<30 {
                        let model = Everything.random(&random, depth: 1)
                        let copy = (try? JSONCoder().encode(model)).flatMap {
                            try? JSONCoder().decode(Everything.self, from: $0)
                        }
                        #expect(copy == model)
                    }
                }
            }
        }
    }

    /// A model that encodes and decodes others while it is encoded and decoded.
    @Test func modelsThatUseACoderWhileBeingCodedRoundTrip() {
        struct Wrapped: Codable, Equatable {
            var form: Everything.Form
            init(_ form: Everything.Form) { self.form = form }
            init(from decoder: any Decoder) throws {
                let text = try decoder.singleValueContainer().decode(String.self)
                form = try JSONCoder().decode(Everything.Form.self, from: Array(text.utf8))
            }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(String(decoding: try JSONCoder().encode(form), as: UTF8.self))
            }
        }
        expectSameRoundTrip([
            Wrapped(.circle(radius: 1.5)), Wrapped(.nested([.none])), Wrapped(.named("\"x\"", sides: 3)),
        ])
    }
}
