import Larder

struct Book: Codable, Sendable {
    var title: String
    var price: Double
}

let cache = try Cache(named: "books", policy: .hours(24))
try cache.set(Book(title: "一本书", price: 18.5), forKey: "book:1")
let book = try cache.value(Book.self, forKey: "book:1")  // nil after 24 hours
print(book?.title ?? "nothing")

// A batch is stored as a whole or not at all. A snapshot does not contain writes made after it was taken.
let before = try cache.snapshot()
try cache.batch {
    try $0.set(Book(title: "Middlemarch", price: 9), forKey: "book:2")
    $0.remove("book:1")
}
print("now:", try cache.keys(), "before:", try before.keys())

// This entry has its own policy: 10 seconds.
try cache.set("a short note", forKey: "note", policy: .highest)
print("fresh:", try cache.contains("note"))

try Cache.delete(named: "books")
