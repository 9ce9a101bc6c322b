/// XXH3, the hash of 64 bits that DIGEST tells, without a seed: as the xxHash project specifies it.
///
/// There are five ways, by the input's length. All read little-endian numbers, mix them with a fixed secret, and multiply.
enum XXH3 {
    private static let prime32 = (one: 0x9E37_79B1 as UInt64, two: 0x85EB_CA77 as UInt64, three: 0xC2B2_AE3D as UInt64)
    private static let prime64: [UInt64] = [
        0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63,
        0x27D4_EB2F_1656_67C5,
    ]
    private static let mixPrimes = (one: 0x1656_6791_9E37_79F9 as UInt64, two: 0x9FB2_1C65_1E98_DF25 as UInt64)

    private static let secretBytes = 192
    private static let secretNumbers: [UInt64] = [
        0xBE4B_A423_396C_FEB8, 0x1CAD_21F7_2C81_017C, 0xDB97_9083_E96D_D4DE, 0x1F67_B3B7_A4A4_4072,
        0x78E5_C0CC_4EE6_79CB, 0x2172_FFCC_7DD0_5A82, 0x8E24_43F7_7446_08B8, 0x4C26_3A81_E690_35E0,
        0xCB00_C391_BB52_283C, 0xA32E_531B_8B65_D088, 0x4EF9_0DA2_9748_6471, 0xD8AC_DEA9_46EF_1938,
        0x3F34_9CE3_3F76_FAA8, 0x1D4F_0BC7_C7BB_DCF9, 0x3159_B4CD_4BE0_518A, 0x6473_78D9_C97E_9FC8,
        0xC3EB_D334_83AC_C5EA, 0xEB63_13FA_FFA0_81C5, 0x49DA_F0B7_51DD_0D17, 0x9E68_D429_2655_16D3,
        0xFCA1_477D_58BE_162B, 0xCE31_D07A_D1B8_F88F, 0x2804_1695_8F3A_CB45, 0x7E40_4BBB_CAFB_D7AF,
    ]
    /// As bytes in their one order, whatever the machine's.
    private static let secret = secretNumbers.map { $0.littleEndian }

    static func hash(_ input: UnsafeRawBufferPointer) -> UInt64 {
        secret.withUnsafeBytes { secret in
            let hasher = Hasher(input: input, secret: secret)
            switch input.count {
            case 0: return finish64(hasher.secret64(56) ^ hasher.secret64(64))
            case 1...3: return hasher.upTo3()
            case 4...8: return hasher.upTo8()
            case 9...16: return hasher.upTo16()
            case 17...128: return hasher.upTo128()
            case 129...240: return hasher.upTo240()
            default: return hasher.long()
            }
        }
    }

    // MARK: Mixing

    /// The end of XXH64, which the shortest inputs have too.
    private static func finish64(_ value: UInt64) -> UInt64 {
        var hash = value
        hash = (hash ^ hash >> 33) &* prime64[1]
        hash = (hash ^ hash >> 29) &* prime64[2]
        return hash ^ hash >> 32
    }

    private static func finish(_ value: UInt64) -> UInt64 {
        let hash = (value ^ value >> 37) &* mixPrimes.one
        return hash ^ hash >> 32
    }

    /// Both halves of the product, one over the other.
    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.low ^ product.high
    }

    private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 { value << count | value >> (64 - count) }

    // MARK: The five ways

    /// Every offset below is inside of the input for the lengths of its way, and inside of the secret.
    private struct Hasher {
        let input: UnsafeRawBufferPointer
        let secret: UnsafeRawBufferPointer

        func input64(_ offset: Int) -> UInt64 {
            input.loadUnaligned(fromByteOffset: offset, as: UInt64.self).littleEndian
        }
        func input32(_ offset: Int) -> UInt64 {
            UInt64(input.loadUnaligned(fromByteOffset: offset, as: UInt32.self).littleEndian)
        }
        func secret64(_ offset: Int) -> UInt64 {
            secret.loadUnaligned(fromByteOffset: offset, as: UInt64.self).littleEndian
        }
        func secret32(_ offset: Int) -> UInt64 {
            UInt64(secret.loadUnaligned(fromByteOffset: offset, as: UInt32.self).littleEndian)
        }
        var length: UInt64 { UInt64(input.count) }

        func upTo3() -> UInt64 {
            let (first, middle, last) = (input[0], input[input.count >> 1], input[input.count - 1])
            let all = UInt64(first) << 16 | UInt64(middle) << 24 | UInt64(last) | length << 8
            return XXH3.finish64(all ^ secret32(0) ^ secret32(4))
        }

        func upTo8() -> UInt64 {
            let all = input32(input.count - 4) | input32(0) << 32
            var hash = all ^ secret64(8) ^ secret64(16)
            hash ^= XXH3.rotate(hash, 49) ^ XXH3.rotate(hash, 24)
            hash = hash &* XXH3.mixPrimes.two
            hash ^= hash >> 35 &+ length
            hash = hash &* XXH3.mixPrimes.two
            return hash ^ hash >> 28
        }

        func upTo16() -> UInt64 {
            let low = input64(0) ^ secret64(24) ^ secret64(32)
            let high = input64(input.count - 8) ^ secret64(40) ^ secret64(48)
            return XXH3.finish(length &+ low.byteSwapped &+ high &+ XXH3.fold(low, high))
        }

        private func mix16(_ place: Int, _ key: Int) -> UInt64 {
            XXH3.fold(input64(place) ^ secret64(key), input64(place + 8) ^ secret64(key + 8))
        }

        func upTo128() -> UInt64 {
            var sum = length &* XXH3.prime64[0]
            // Pairs from both ends inwards, as many as there is room for.
            for pair in 0...(input.count - 1) / 32 {
                sum = sum &+ mix16(16 * pair, 32 * pair) &+ mix16(input.count - 16 * (pair + 1), 32 * pair + 16)
            }
            return XXH3.finish(sum)
        }

        func upTo240() -> UInt64 {
            var sum = length &* XXH3.prime64[0]
            for round in 0..<8 { sum = sum &+ mix16(16 * round, 16 * round) }
            sum = XXH3.finish(sum)
            for round in 8..<input.count / 16 { sum = sum &+ mix16(16 * round, 16 * (round - 8) + 3) }
            return XXH3.finish(sum &+ mix16(input.count - 16, 136 - 17))
        }

        // MARK: Long inputs: eight sums over stripes of 64 bytes, stirred after every 16 stripes

        private typealias Sums = SIMD8<UInt64>

        func long() -> UInt64 {
            let primes = XXH3.prime64
            var sums = Sums(
                XXH3.prime32.three, primes[0], primes[1], primes[2], primes[3], XXH3.prime32.two, primes[4],
                XXH3.prime32.one)
            let last = input.count - 1
            // The last stripe is added by itself, from the input's end.
            for stripe in 0..<last / 64 {
                add(64 * stripe, 8 * (stripe & 15), to: &sums)
                if stripe & 15 == 15 { stir(&sums) }
            }
            add(input.count - 64, XXH3.secretBytes - 64 - 7, to: &sums)
            var hash = length &* primes[0]
            for index in 0..<4 {
                hash =
                    hash
                    &+ XXH3.fold(
                        sums[2 * index] ^ secret64(11 + 16 * index), sums[2 * index + 1] ^ secret64(19 + 16 * index))
            }
            return XXH3.finish(hash)
        }

        private func eight(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Sums {
            var values = bytes.loadUnaligned(fromByteOffset: offset, as: Sums.self)
            // On the other kind of machine the numbers stand the other way round.
            if 1.littleEndian != 1 { for index in 0..<8 { values[index] = values[index].byteSwapped } }
            return values
        }

        private func add(_ place: Int, _ key: Int, to sums: inout Sums) {
            let values = eight(input, place)
            let keyed = values ^ eight(secret, key)
            let swapped = Sums(
                values[1], values[0], values[3], values[2], values[5], values[4], values[7], values[6])
            sums = sums &+ swapped &+ (keyed & 0xFFFF_FFFF) &* (keyed &>> 32)
        }

        private func stir(_ sums: inout Sums) {
            sums = (sums ^ sums &>> 47 ^ eight(secret, XXH3.secretBytes - 64)) &* XXH3.prime32.one
        }
    }
}
