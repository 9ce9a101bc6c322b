import LarderJSONCoding
import LarderPlatform

/// A place on the earth, in degrees: `[lon, lat]`, or an object with `lon`, `lng` or `longitude`, and `lat` or
/// `latitude`.
package struct QueryPlace: Hashable, Sendable {
    package let longitude: Double
    package let latitude: Double

    /// Returns nil if the degrees are not on the earth.
    package init?(longitude: Double, latitude: Double) {
        guard (-180...180).contains(longitude), (-90...90).contains(latitude) else { return nil }
        (self.longitude, self.latitude) = (longitude, latitude)
    }

    /// Between places, so it is on the earth.
    fileprivate init(between longitudes: ClosedRange<Double>, _ latitudes: ClosedRange<Double>) {
        longitude = (longitudes.lowerBound + longitudes.upperBound) / 2
        latitude = (latitudes.lowerBound + latitudes.upperBound) / 2
    }

    private static let longitudes = ["lon", "lng", "longitude"].map { Array($0.utf8) }
    private static let latitudes = ["lat", "latitude"].map { Array($0.utf8) }

    /// Returns nil if the value is not a place.
    package init?(_ document: borrowing JSONDocument, _ node: Int) {
        var parts: [Int] = []
        switch document.kind(node) {
        case .array: parts = document.count(node) == 2 ? document.children(node) : []
        case .object:
            for names in [Self.longitudes, Self.latitudes] {
                var member = node + 1
                while member < document.next(node) {
                    if names.contains(where: { document.isNamed(member, $0) }) {
                        parts.append(member + 1)
                        break
                    }
                    member = document.next(member + 1)
                }
            }
        default: return nil
        }
        guard parts.count == 2, let longitude = document.number(parts[0]), let latitude = document.number(parts[1])
        else { return nil }
        self.init(longitude: longitude, latitude: latitude)
    }

    /// Passes each place of a value to `body`: the value itself, or the elements of an array that are places.
    static func forEach(of document: borrowing JSONDocument, _ node: Int, _ body: (QueryPlace) -> Void) {
        if let place = QueryPlace(document, node) { return body(place) }
        guard document.kind(node) == .array else { return }
        document.forEachElement(node) { element in
            if let place = QueryPlace(document, element) { body(place) }
            return true
        }
    }

    /// The mean radius of the earth in meters, as in Redis.
    fileprivate static let earthRadius = 6_372_797.560856

    /// The great-circle distance in meters, by the haversine formula.
    package func distance(to other: QueryPlace) -> Double {
        let high = sin((other.latitude - latitude).radians / 2)
        let wide = sin((other.longitude - longitude).radians / 2)
        let part = high * high + cos(latitude.radians) * cos(other.latitude.radians) * wide * wide
        let distance = 2 * Self.earthRadius * asin(min(1, part.squareRoot()))
        // Less than a micrometer is a rounding error: the 180th meridian has two longitudes, and the poles have all.
        return distance < 1e-6 ? 0 : distance
    }

    /// The distance to the nearest place of a value; nil if it has none.
    func distance(toNearestOf document: borrowing JSONDocument, _ node: Int) -> Double? {
        var nearest: Double?
        Self.forEach(of: document, node) { nearest = min(nearest ?? .infinity, distance(to: $0)) }
        return nearest
    }

    /// The place's cell: bits of the longitude and of the latitude in turns, so that near places often have the same
    /// beginning. In each direction, cells have the order of the degrees, and are smaller than a centimeter.
    var cell: UInt64 { PlaceCells.cell(PlaceCells.column(longitude), PlaceCells.row(latitude)) }
}

/// A box between two meridians and two parallels. If `west` is greater than `east`, it crosses the 180th meridian.
package struct QueryBox: Hashable, Sendable {
    package let (west, south, east, north): (Double, Double, Double, Double)

    /// Between two opposite corners, from the first one eastwards.
    package init(_ corner: QueryPlace, _ other: QueryPlace) {
        (west, east) = (corner.longitude, other.longitude)
        (south, north) = (min(corner.latitude, other.latitude), max(corner.latitude, other.latitude))
    }

    /// Contains all places up to a distance from a center.
    init(around center: QueryPlace, meters: Double) {
        // A meter is more than the errors of computed distances, also of those between opposite places.
        let angle = (meters + 1) / QueryPlace.earthRadius
        let (low, high) = (center.latitude - angle.degrees, center.latitude + angle.degrees)
        (south, north) = (max(-90, low), min(90, high))
        let wide = low > -90 && high < 90 ? asin(min(1, sin(angle) / cos(center.latitude.radians))).degrees : 180
        let (left, right) = (center.longitude - wide, center.longitude + wide)
        if wide >= 180 {
            (west, east) = (-180, 180)
        } else {
            (west, east) = (left < -180 ? left + 360 : left, right > 180 ? right - 360 : right)
        }
    }

    package func contains(_ place: QueryPlace) -> Bool {
        guard (south...north).contains(place.latitude) else { return false }
        let isBetween =
            west <= east
            ? (west...east).contains(place.longitude) : place.longitude >= west || place.longitude <= east
        return isBetween || abs(place.longitude) == 180 && touches180
    }

    /// Both 180 and -180 degrees are the 180th meridian.
    private var touches180: Bool { west == -180 || east == 180 || west > east }

    fileprivate var longitudes: [ClosedRange<Double>] {
        let inner = west <= east ? [west...east] : [west...180, -180...east]
        return touches180 ? inner + [180...180, -180 ... -180] : inner
    }
}

extension QueryTest {
    /// Contains all places that pass; nil for conditions that are not on places.
    var box: QueryBox? {
        switch self {
        case .near(let center, let meters): QueryBox(around: center, meters: meters)
        case .within(let box): box
        default: nil
        }
    }
}

/// A rectangle of cells whose beginnings are equal: all cells between the first and the last one.
package struct PlaceCells: Hashable, Sendable {
    let first: UInt64
    /// The number of bits that are not equal.
    let freeBits: Int
    var last: UInt64 { freeBits == 64 ? .max : first | (1 << UInt64(freeBits) - 1) }

    /// The maximum number of ranges of cells that cover a box. More ranges have fewer cells outside the box.
    static let rangesMax = 32

    /// The part of the 2³² columns, or rows, in which degrees are.
    private static func part(_ degrees: Double, of all: Double) -> UInt32 {
        UInt32(min(max(0, (degrees / all + 0.5) * 0x1p32), 0x1p32 - 1))
    }

    static func column(_ longitude: Double) -> UInt32 { part(longitude, of: 360) }
    static func row(_ latitude: Double) -> UInt32 { part(latitude, of: 180) }

    static func cell(_ column: UInt32, _ row: UInt32) -> UInt64 { spread(column) << 1 | spread(row) }

    /// Inserts a 0 before each bit.
    private static func spread(_ bits: UInt32) -> UInt64 {
        var spread = UInt64(bits)
        for (shift, mask) in [
            (16, 0x0000_FFFF_0000_FFFF), (8, 0x00FF_00FF_00FF_00FF), (4, 0x0F0F_0F0F_0F0F_0F0F),
            (2, 0x3333_3333_3333_3333), (1, 0x5555_5555_5555_5555),
        ] as [(UInt64, UInt64)] {
            spread = (spread | spread << shift) & mask
        }
        return spread
    }

    private static func compact(_ spread: UInt64) -> UInt32 {
        var bits = spread & 0x5555_5555_5555_5555
        for (shift, mask) in [
            (1, 0x3333_3333_3333_3333), (2, 0x0F0F_0F0F_0F0F_0F0F), (4, 0x00FF_00FF_00FF_00FF),
            (8, 0x0000_FFFF_0000_FFFF), (16, 0x0000_0000_FFFF_FFFF),
        ] as [(UInt64, UInt64)] {
            bits = (bits | bits >> shift) & mask
        }
        return UInt32(bits)
    }

    private var columns: ClosedRange<UInt32> { Self.compact(first >> 1)...Self.compact(last >> 1) }
    private var rows: ClosedRange<UInt32> { Self.compact(first)...Self.compact(last) }

    /// The halves, in the order of their cells.
    fileprivate var halves: [PlaceCells] {
        [
            PlaceCells(first: first, freeBits: freeBits - 1),
            PlaceCells(first: first | 1 << UInt64(freeBits - 1), freeBits: freeBits - 1),
        ]
    }

    /// The distances that a place may have to the places of the cells, in meters, rounded to the outside.
    fileprivate func distances(to place: QueryPlace) -> ClosedRange<Double> {
        // In larger cells, the corners need not be the farthest places from the middle.
        guard freeBits <= 62 else { return 0...(.infinity) }
        func degrees(_ part: ClosedRange<UInt32>, of all: Double) -> ClosedRange<Double> {
            ((Double(part.lowerBound) / 0x1p32 - 0.5) * all)...((Double(part.upperBound) + 1) / 0x1p32 - 0.5) * all
        }
        let (longitudes, latitudes) = (degrees(columns, of: 360), degrees(rows, of: 180))
        let middle = QueryPlace(between: longitudes, latitudes)
        var radius = 2.0
        if freeBits > 0 {
            let corners = [latitudes.lowerBound, latitudes.upperBound].map {
                QueryPlace(between: longitudes.lowerBound...longitudes.lowerBound, $0...$0)
            }
            radius += corners.reduce(0) { max($0, middle.distance(to: $1)) }
        }
        let distance = middle.distance(to: place)
        return max(0, distance - radius)...(distance + radius)
    }

    /// At most ``rangesMax`` ranges that contain the cells of all places in a box, in their order.
    static func ranges(covering box: QueryBox) -> [ClosedRange<UInt64>] {
        cover(of: box).reduce(into: []) { ranges, cells in
            if let last = ranges.last, last.upperBound &+ 1 == cells.first {
                ranges[ranges.count - 1] = last.lowerBound...cells.last
            } else {
                ranges.append(cells.first...cells.last)
            }
        }
    }

    /// At most ``rangesMax`` rectangles that contain all places in a box, in their order.
    fileprivate static func cover(of box: QueryBox) -> [PlaceCells] {
        let rows = row(box.south)...row(box.north)
        let columns = box.longitudes.map { column($0.lowerBound)...column($0.upperBound) }
        func isOutside(_ cells: PlaceCells) -> Bool {
            !cells.rows.overlaps(rows) || !columns.contains { $0.overlaps(cells.columns) }
        }
        func isInside(_ cells: PlaceCells) -> Bool {
            rows.contains(cells.rows) && columns.contains { $0.contains(cells.columns) }
        }
        var cover = [PlaceCells(first: 0, freeBits: 64)]
        while true {
            var finer: [PlaceCells] = []
            for cells in cover {
                finer += isInside(cells) ? [cells] : cells.halves.filter { !isOutside($0) }
            }
            if finer.count > rangesMax || finer.allSatisfy(isInside) && cover.count == finer.count { break }
            cover = finer
        }
        return cover
    }
}

/// The cells in which the rows of NEAR are searched, from the nearest one to the farthest.
package struct NearestCells: Hashable, Sendable {
    private struct Item: Hashable {
        let cells: PlaceCells
        let distances: ClosedRange<Double>
    }

    private let center: QueryPlace
    /// The distances of the rows that are searched, in meters.
    private var distances: ClosedRange<Double>
    /// The nearest one is the last.
    private var items: [Item] = []

    /// - Parameter nearest: the distance of the row after which rows are searched, in meters.
    init(around center: QueryPlace, meters: Double, after nearest: Double) {
        self.center = center
        distances = min(nearest, meters)...meters
        for cells in PlaceCells.cover(of: QueryBox(around: center, meters: meters)) { insert(cells) }
    }

    private mutating func insert(_ cells: PlaceCells) {
        let found = cells.distances(to: center)
        guard found.overlaps(distances) else { return }
        let place = items.lastIndex { $0.distances.lowerBound >= found.lowerBound } ?? -1
        items.insert(Item(cells: cells, distances: found), at: place + 1)
    }

    /// Removes the nearest cells.
    /// - Parameter farthest: the greatest distance of a row that is still searched, in meters; nil if not known.
    /// - Returns: nil if there are no cells up to this distance.
    package mutating func next(upTo farthest: Double?) -> (cells: PlaceCells, terms: TermRange)? {
        if let farthest { distances = distances.lowerBound...max(distances.lowerBound, farthest) }
        guard let nearest = items.popLast(), nearest.distances.overlaps(distances) else { return nil }
        let (first, last) = (IndexTerms.term(of: nearest.cells.first), IndexTerms.term(of: nearest.cells.last))
        return (nearest.cells, TermRange(lower: first, upper: last))
    }

    /// Adds the halves of cells that ``next(upTo:)`` returned.
    /// - Returns: false if they are smaller than a meter.
    package mutating func divide(_ cells: PlaceCells) -> Bool {
        guard cells.freeBits > 14 else { return false }
        for half in cells.halves { insert(half) }
        return true
    }

    /// Whether the place of a term may have one of the distances that are searched.
    package func contains(_ term: UnsafeRawBufferPointer) -> Bool {
        guard term.count == 9 else { return true }
        let cell = UInt64(bigEndian: term.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        return PlaceCells(first: cell, freeBits: 0).distances(to: center).overlaps(distances)
    }
}

extension Double {
    fileprivate var radians: Double { self * .pi / 180 }
    fileprivate var degrees: Double { self * 180 / .pi }
}

extension JSONDocument {
    fileprivate func number(_ node: Int) -> Double? { kind(node) == .number ? QueryNumber(self, node).double : nil }
}
