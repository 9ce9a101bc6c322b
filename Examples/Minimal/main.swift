import Larder

struct Book: Codable {
    var name: String
    var price: Double
}

struct Reader: Codable {
    var book: Book
    var userName: String
}

// A database on disk, whose entries are fresh for 24 hours.
let cache = try Cache(named: "userdb", policy: .low)
try cache.set(Reader(book: Book(name: "一本书", price: 18.5), userName: "王五"), forKey: "reader")

// The model again, and nil from 24 hours on.
let reader = try cache.value(Reader.self, forKey: "reader")
print(reader?.book.name ?? "nothing")

// All of it happens or nothing. What is written after the snapshot does not show in it.
let before = try cache.snapshot()
try cache.batch {
    try $0.set(Reader(book: Book(name: "Middlemarch", price: 9), userName: "Ana"), forKey: "new")
    $0.remove("reader")
}
print("now:", try cache.keys(), "before:", try before.keys())

// This entry has a rule of its own: 10 seconds.
try cache.set("a short note", forKey: "note", policy: .highest)
print("fresh:", try cache.contains("note"))

try Cache.delete(named: "userdb")
