import Foundation

struct Book: Codable, Equatable {
    var name: String
    var price: Double
}

struct Reader: Codable, Equatable {
    var book: Book
    var userName: String
}

extension Reader {
    init(_ userName: String, price: Double = 1) {
        self.init(book: Book(name: "book of \(userName)", price: price), userName: userName)
    }
}

enum Shelf: String, Codable, Equatable { case upper, lower }

/// A model with one property of every kind that models may have.
struct Everything: Codable, Equatable {
    struct Part: Codable, Equatable {
        var children: [Part] = []
        var label: String?
    }

    enum Form: Codable, Equatable {
        case circle(radius: Double)
        case named(String, sides: Int)
    }

    var text = "plain, “quoted”, \u{0}\n\t, 一本书, مرحبا, 👩‍👩‍👧, e\u{301}"
    var numbers: [Int64] = [.min, -1, 0, 1, .max]
    var unsigned: UInt64 = .max
    var fractions = [0.1, -1.5e300, .leastNonzeroMagnitude]
    var isTrue = true
    var nothing: Int?
    var something: Int? = 5
    var date = Date(timeIntervalSinceReferenceDate: 123_456_789.123_456)
    var data = Data([0, 1, 254, 255])
    var shelf = Shelf.lower
    var forms = [Form.circle(radius: 2), .named("x", sides: 3)]
    var table = ["": 0, "键": 1]
    var optionals: [String?] = ["a", nil]
    var part = Part(children: [Part(label: "inner"), Part(children: [Part()])], label: "outer")
    var url = URL(string: "https://example.org/a/b?c=%20")
    var uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
}
