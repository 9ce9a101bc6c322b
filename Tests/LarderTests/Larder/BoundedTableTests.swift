import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct BoundedTableTests {
    /// Compares the table with a dictionary. Without removals, the newest keys are in the table.
    @Test(arguments: [1, 2, 7, 100]) func aBoundedTableKeepsTheNewestKeys(most: Int) {
        var random = SeededGenerator(seed: testSeed())
        for removes in [false, true] {
            var table = BoundedTable<Int, Int>(most: most)
            var model: [Int: Int] = [:]
            var order: [Int] = []
            for step in 0..<2_000 {
                let key = random.below(3 * most)
                if removes, random.oneIn(4) {
                    table[key] = nil
                    model[key] = nil
                    #expect(table[key] == nil)
                } else {
                    if table[key] == nil { order.append(key) }
                    table[key] = step
                    model[key] = step
                    #expect(table[key] == step)
                }
                for key in 0..<(3 * most) { #expect(table[key] == nil || table[key] == model[key]) }
                #expect(table.count <= most && table.values.allSatisfy { $0 <= step })
                if !removes { for key in order.suffix(most) { #expect(table[key] == model[key]) } }
            }
            table.removeAll()
            #expect(table.count == 0)
        }
    }
}
