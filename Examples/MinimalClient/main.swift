import LarderClient

let client = try await LarderClient.connect()
let stock = client.cache("stock", of: Int.self)
try await stock.set(10, forKey: "apples", policy: .hours(1))
try await stock.increment("apples", by: -1)
let apples = try await stock.value(forKey: "apples")
print("apples left:", apples ?? 0)

struct Visit: Codable, Sendable {
    var page: String
    var seconds: Double
}

// Any number of tasks can share this client and its connection. A lost connection is replaced.
let visits = client.cache("visits", of: Visit.self)
try await visits.set(Visit(page: "index", seconds: 1.5), forKey: "ana", policy: .middle)
print(try await visits.value(forKey: "ana")?.page ?? "nothing")

// A batch is stored as a whole or not at all.
try await visits.batch {
    try $0.set(Visit(page: "books", seconds: 3), forKey: "eve")
    $0.remove("ana")
}
print(try await visits.keys())

// The closure runs again if another client has changed the watched key.
try await stock.set(5, forKey: "pears")
let left = try await stock.transaction(watching: ["pears"]) { transaction in
    let pears = try await transaction.value(forKey: "pears") ?? 0
    try transaction.set(pears - 1, forKey: "pears")
    return pears - 1
}
print("pears left:", left)

// Messages are received as an async sequence.
let news = try await client.subscribe(to: "news")
try await client.publish("fresh apples", to: "news")
for try await message in news {
    print(message.text ?? "")
    break
}
