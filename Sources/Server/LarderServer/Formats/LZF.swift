/// LZF, the compression that Redis uses in payloads.
///
/// Compressed data is a sequence of two kinds of items:
/// - A run of literals: a byte n less than 32, followed by n + 1 bytes that are copied.
/// - A back reference, which repeats bytes that were decompressed before. It has a length, stored minus 2, and a
///   distance, stored minus 1. The first byte contains three bits of the length and the high five bits of the distance.
///   If all three bits are set, the next byte is added to the length. The last byte contains the low eight bits of the
///   distance.
enum LZF {
    private static let literalsMax = 32
    private static let distanceMax = 1 << 13
    private static let referenceMax = (1 << 8) + (1 << 3)
    private static let hashBits = 16
    /// The largest possible compression ratio: a back reference of 3 bytes can represent 264 bytes.
    static let growthMax = 88

    /// Compresses bytes. Makes the same choices as Redis, so that the result is identical.
    /// - Parameter bytesMax: the maximum length of the result, in bytes.
    /// - Returns: nil if the result would be longer.
    static func compress(_ input: UnsafeRawBufferPointer, bytesMax: Int) -> [UInt8]? {
        guard !input.isEmpty, bytesMax > 0 else { return nil }
        var compressor = Compressor(input, bytesMax)
        defer { compressor.places.deallocate() }
        return compressor.run() ? compressor.output : nil
    }

    private struct Compressor {
        let input: UnsafeRawBufferPointer
        let bytesMax: Int
        /// For each hash, the last position of three bytes that have this hash; -1 if there is none.
        let places: UnsafeMutableBufferPointer<Int>
        var output: [UInt8] = []
        /// The number of literals in the run that is being written.
        var literals = 0

        init(_ input: UnsafeRawBufferPointer, _ bytesMax: Int) {
            self.input = input
            self.bytesMax = bytesMax
            places = .allocate(capacity: 1 << hashBits)
            places.initialize(repeating: -1)
            output.reserveCapacity(min(bytesMax, input.count))
        }

        /// Returns the hash of the three bytes that begin at `index`. These bytes must exist.
        func hash(_ index: Int) -> Int {
            let bytes = Int(input[index]) << 16 | Int(input[index + 1]) << 8 | Int(input[index + 2])
            return (bytes >> (24 - hashBits) &- bytes &* 5) & (1 << hashBits - 1)
        }

        mutating func run() -> Bool {
            // The first byte of a run is reserved for its length.
            output.append(0)
            var index = 0
            while index < input.count - 2 {
                let slot = hash(index)
                let place = places[slot]
                places[slot] = index
                if place > 0, index - place - 1 < distanceMax, isSame(place, index) {
                    guard output.count - (literals == 0 ? 1 : 0) + 4 < bytesMax else { return false }
                    index = refer(to: place, from: index)
                    if index >= input.count - 2 { break }
                } else {
                    guard output.count < bytesMax else { return false }
                    take(index)
                    index += 1
                }
            }
            guard output.count + 3 <= bytesMax else { return false }
            while index < input.count {
                take(index)
                index += 1
            }
            closeRun()
            return true
        }

        private func isSame(_ place: Int, _ index: Int) -> Bool {
            input[place] == input[index] && input[place + 1] == input[index + 1] && input[place + 2] == input[index + 2]
        }

        private mutating func take(_ index: Int) {
            literals += 1
            output.append(input[index])
            if literals == literalsMax {
                closeRun()
                output.append(0)
            }
        }

        /// Ends the run of literals: sets its length byte, or removes this byte if the run is empty.
        private mutating func closeRun() {
            if literals == 0 {
                output.removeLast()
            } else {
                output[output.count - literals - 1] = UInt8(literals - 1)
            }
            literals = 0
        }

        /// Writes a back reference, and begins the next run of literals.
        /// - Returns: the index of the first byte after the repeated ones.
        private mutating func refer(to place: Int, from index: Int) -> Int {
            let length = length(place, index)
            closeRun()
            let distance = index - place - 1
            let short = length - 2
            if short < 7 {
                output.append(UInt8(distance >> 8 + short << 5))
            } else {
                output.append(UInt8(distance >> 8 + 7 << 5))
                output.append(UInt8(short - 7))
            }
            output.append(UInt8(truncatingIfNeeded: distance))
            output.append(0)
            let end = index + length
            guard end < input.count - 2 else { return end }
            // As in Redis, only the last two positions of the repeated bytes are recorded.
            places[hash(end - 2)] = end - 2
            places[hash(end - 1)] = end - 1
            return end
        }

        /// Returns how many bytes are equal at both positions. As in Redis, the first 16 comparisons do not check
        /// `most`.
        private func length(_ place: Int, _ index: Int) -> Int {
            let most = min(input.count - index - 2, referenceMax)
            var length = 2
            if most > 16 {
                while length < 18 {
                    length += 1
                    if input[place + length] != input[index + length] { return length }
                }
            }
            repeat { length += 1 } while length < most && input[place + length] == input[index + length]
            return length
        }
    }

    /// Decompresses bytes. Never traps, whatever the bytes are.
    /// - Parameter count: the length of the result.
    /// - Returns: nil if the bytes are not valid LZF, or the result has another length.
    static func decompress(_ input: UnsafeRawBufferPointer, count: Int) -> [UInt8]? {
        var output: [UInt8] = []
        // Do not trust `count` alone: limit the reserved memory to the size to which the input can expand.
        output.reserveCapacity(min(count, input.count * growthMax + 1))
        var index = 0
        while index < input.count {
            let control = Int(input[index])
            index += 1
            if control < literalsMax {
                let end = index + control + 1
                guard end <= input.count, output.count + control + 1 <= count else { return nil }
                output.append(contentsOf: input[index..<end])
                index = end
                continue
            }
            var length = control >> 5
            if length == 7 {
                guard index < input.count else { return nil }
                length += Int(input[index])
                index += 1
            }
            length += 2
            guard index < input.count else { return nil }
            let distance = (control & 0x1F) << 8 + Int(input[index]) + 1
            index += 1
            guard distance <= output.count, output.count + length <= count else { return nil }
            // Copy one byte after the other: a back reference may include bytes that it has just appended.
            for _ in 0..<length { output.append(output[output.count - distance]) }
        }
        return output.count == count ? output : nil
    }
}
