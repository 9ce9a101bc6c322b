import Testing

@testable import LarderServer

/// Tests that compare the hash that DIGEST returns with results of the library of the xxHash project.
@Suite struct DigestTests {
    /// The bytes with which the xxHash project tests the hash.
    private static let bytes: [UInt8] = {
        var number: UInt64 = 0x9E37_79B1
        return (0..<4161).map { _ in
            defer { number = number &* 0x9E37_79B1_85EB_CA8D }
            return UInt8(number >> 56)
        }
    }()

    private func hash(_ bytes: some Sequence<UInt8>) -> UInt64 { Array(bytes).withUnsafeBytes { Digest.of($0) } }

    /// Hashes of prefixes of these bytes: for each branch of the algorithm, and for the lengths at which the branch
    /// changes.
    @Test(
        "hashes equal the xxHash project's own test values",
        arguments: [
            (0, 0x2D06_8005_38D3_94C2), (1, 0xC44B_DFF4_074E_ECDB), (2, 0x7A99_7804_4CB8_A8BB),
            (3, 0x5424_7382_A8D6_B94D), (4, 0xE5DC_74BC_5184_8A51), (6, 0x27B5_6A84_CD2D_7325),
            (8, 0x24CC_C9AC_AA9F_65E4), (9, 0x14D5_001C_15DD_3F2B), (12, 0xA713_DAF0_DFBB_77E7),
            (16, 0x981B_17D3_6C74_98C9), (17, 0x796F_5ACD_3A60_F862), (24, 0xA3FE_70BF_9D35_10EB),
            (32, 0x9FEA_DDBD_BF57_EED3), (33, 0xABFB_2D08_1B40_0A10), (48, 0x397D_A259_ECBA_1F11),
            (64, 0x9CB4_8487_720E_C49D), (65, 0xFD81_AAC4_BEBC_3883), (80, 0xBCDE_FBBB_2C47_C90A),
            (96, 0x935A_769A_7F94_776F), (97, 0xCA4C_A268_FD3C_3A6C), (112, 0xD13D_8F57_931E_EF19),
            (128, 0xFCFF_2412_6754_D861), (129, 0x98F1_B0A6_79A2_CA29), (195, 0xCD94_217E_E362_EC3A),
            (240, 0x81C3_C2B6_7F56_8CCF), (241, 0xC5A6_39EC_D203_0E5E), (255, 0xE98F_979F_4ED8_A197),
            (256, 0x55DE_574A_D89D_0AC5), (403, 0xCDEB_804D_65C6_DEA4), (512, 0x617E_4959_9013_CB6B),
            (1023, 0x87A8_F7B2_F2E2_2496), (1024, 0xDD85_C9B5_C110_9C5C), (1025, 0xD870_C0FA_1321_1C6A),
            (2048, 0xDD59_E2C3_A5F0_38E0), (2099, 0xC6B9_D9B3_FC9A_C765), (2240, 0x6E73_A905_39CF_2948),
            (2367, 0xCB37_AEB9_E5D3_61ED), (4096, 0xE912_0642_9D1F_48F9), (4160, 0x4F32_3B15_321E_94E1),
        ] as [(Int, UInt64)])
    func hashesEqualThePublishedTestValues(_ count: Int, _ expected: UInt64) {
        #expect(hash(Self.bytes.prefix(count)) == expected)
    }

    /// Combines the hashes of many lengths into one number.
    @Test("values of all lengths have the expected hashes") func hashesOfAllLengthsAreAsExpected() {
        let lengths = Array(0...300) + stride(from: 301, through: 4160, by: 61)
        let all = lengths.reduce(0 as UInt64) { $0 &* 31 &+ hash(Self.bytes.prefix($1)) }
        #expect(all == 0xE3C4_C6E1_E8F9_FC9D)
    }

    /// The example of Redis' documentation, and a digest with leading zeros.
    @Test("digests are 16 hexadecimal digits") func digests() {
        let long = "v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd"
        #expect(Array("Hello world".utf8).withUnsafeBytes { Digest.text($0) } == "b6acb9d84a38ff74")
        #expect(Array(long.utf8).withUnsafeBytes { Digest.text($0) } == "00006c38adf31777")
    }

    @Test(
        "only 16 hexadecimal digits are parsed as a digest",
        arguments: [
            ("b6acb9d84a38ff74", 0xB6AC_B9D8_4A38_FF74), ("00006C38ADF31777", 0x6C38_ADF3_1777), ("6c38adf31777", nil),
            ("", nil), ("g6acb9d84a38ff74", nil), ("b6acb9d84a38ff740", nil), ("ffffffffffffffff", UInt64.max),
        ] as [(String, UInt64?)])
    func parsing(_ text: String, _ expected: UInt64?) {
        #expect(Array(text.utf8).withUnsafeBytes { Digest.parse($0) } == expected)
    }
}
