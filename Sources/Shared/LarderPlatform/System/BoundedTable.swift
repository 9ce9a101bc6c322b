/// A dictionary with a maximum number of keys. Each new key beyond it replaces the key that was added first.
/// A value type.
@usableFromInline package struct BoundedTable<Key: Hashable, Value> {
    @usableFromInline let most: Int
    @usableFromInline var items: [Key: (value: Value, place: Int)] = [:]
    /// A ring buffer of the keys, in the order in which they were added. When it is full, the oldest key is at `next`.
    @usableFromInline var order: [Key] = []
    @usableFromInline var next = 0

    /// - Parameter most: the maximum number of keys; at least 1.
    @inlinable package init(most: Int) { self.most = max(1, most) }

    @inlinable package var count: Int { items.count }
    @inlinable package var values: some Sequence<Value> { items.values.lazy.map(\.value) }

    /// The value of a key. A key keeps its place in the order when its value is replaced.
    @inlinable package subscript(key: Key) -> Value? {
        get { items[key]?.value }
        set {
            guard let newValue else {
                items[key] = nil
                return
            }
            let place = items[key]?.place
            items[key] = (newValue, place ?? addPlace(of: key))
        }
    }

    /// Adds a key to the order, and removes the oldest key if the table is full.
    @inlinable mutating func addPlace(of key: Key) -> Int {
        guard order.count == most else {
            order.append(key)
            return order.count - 1
        }
        let place = next
        let oldest = order[place]
        // The key at this place may have been removed, and added again at another place.
        if items[oldest]?.place == place { items[oldest] = nil }
        order[place] = key
        next = (place + 1) % most
        return place
    }

    @inlinable package mutating func removeAll() { self = BoundedTable(most: most) }
}

extension BoundedTable: Sendable where Key: Sendable, Value: Sendable {}
