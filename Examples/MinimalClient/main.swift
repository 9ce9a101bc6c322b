import LarderClient

struct Visit: Codable, Sendable {
    var page: String
    var seconds: Double
}

// Any number of tasks share this client and its connection, which is replaced when it is lost.
let client = try await LarderClient.connect()
let visits = client.cache("visits", of: Visit.self)
try await visits.set(Visit(page: "index", seconds: 1.5), forKey: "ana", policy: .middle)
print(try await visits.value(forKey: "ana")?.page ?? "nothing")

// All of it happens or nothing.
try await visits.batch {
    try $0.set(Visit(page: "books", seconds: 3), forKey: "eve")
    $0.remove("ana")
}
print(try await visits.keys())

// Reads, decides and writes as if it were alone; runs again if somebody else has changed the key.
let stock = client.cache("stock", of: Int.self)
try await stock.set(10, forKey: "apples")
let left = try await stock.transaction(watching: ["apples"]) { transaction in
    let apples = try await transaction.value(forKey: "apples") ?? 0
    try transaction.set(apples - 1, forKey: "apples")
    return apples - 1
}
print("apples left:", left)

// Messages, as they come.
let news = try await client.subscribe(to: "news")
try await client.publish("fresh apples", to: "news")
for try await message in news {
    print(message.text ?? "")
    break
}
