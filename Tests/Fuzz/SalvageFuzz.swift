// Fuzzing of the readers of damaged LevelDB files with libFuzzer. Not a part of the package: `make fuzz` builds and
// runs it.
//
// The first byte of an input selects its kind: a log, a manifest, a table, a block, a batch with a missing part. With
// any input, nothing may be read beyond its end, nothing may trap, and keys must be in order.

import CLarderCRC32C
import LarderLevelDBFormat
import LarderPlatform

/// A directory in memory if possible, created once.
private let directory: String = {
    var template = Array("/dev/shm/larder-fuzz-XXXXXX".utf8CString)
    return template.withUnsafeMutableBufferPointer { buffer in
        buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } ?? "."
    }
}()

private func store(_ name: String, _ bytes: UnsafeRawBufferPointer) {
    let file = open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    precondition(file >= 0 && write(file, bytes.baseAddress, bytes.count) == bytes.count)
    close(file)
}

/// Corrects the checksum of every fragment without another defect, so that the code after the checks is reached too.
private func sign(_ bytes: inout [UInt8]) {
    var offset = 0
    while offset + 7 <= bytes.count {
        let count = Int(bytes[offset + 4]) | Int(bytes[offset + 5]) << 8
        guard offset + 7 + count <= bytes.count else { return }
        let checksum = bytes[(offset + 6)..<(offset + 7 + count)].withUnsafeBytes {
            larder_crc32c_extend(0, $0.baseAddress, $0.count)
        }
        let masked = (checksum >> 15 | checksum << 17) &+ 0xA282_EAD8
        withUnsafeBytes(of: masked.littleEndian) { for index in 0..<4 { bytes[offset + index] = $0[index] } }
        offset += 7 + count
    }
}

/// A table of one block and an index, both with the input's bytes under correct checksums.
private func table(_ input: [UInt8]) -> [UInt8] {
    guard let first = input.first else { return [] }
    let middle = 1 + Int(first) * (input.count - 1) / 256
    var table: [UInt8] = []
    var handles: [UInt8] = []
    for (index, block) in [Array(input[1..<middle]), [0, 0, 0, 0, 0, 0, 0, 0], Array(input[middle...])].enumerated() {
        if index > 0 { for number in [table.count, block.count] { handles += varint(number) } }
        let checked = block + [index == 0 ? first & 1 : 0]
        let checksum = checked.withUnsafeBytes { larder_crc32c_extend(0, $0.baseAddress, $0.count) }
        table += checked
        withUnsafeBytes(of: ((checksum >> 15 | checksum << 17) &+ 0xA282_EAD8).littleEndian) { table += Array($0) }
    }
    table += handles + [UInt8](repeating: 0, count: 40 - handles.count)
    withUnsafeBytes(of: UInt64(0xDB47_7524_8B80_FB57).littleEndian) { table += Array($0) }
    return table
}

private func varint(_ number: Int) -> [UInt8] {
    number < 128 ? [UInt8(number)] : [UInt8(number & 127) | 128] + varint(number >> 7)
}

private func readAll(_ sorted: Bool) {
    var options = SalvageOptions()
    options.batchesAreSorted = sorted
    options.ignoredFirstBytes = [2]
    guard let reader = try? SalvageReader(path: directory, options: options) else { return }
    var previous: [UInt8]?
    while (try? reader.next()) == true {
        let key = Array(reader.key)
        if let previous { precondition(previous.lexicographicallyPrecedes(key), "keys do not ascend") }
        if let value = reader.value { precondition(value.reduce(0) { $0 &+ Int($1) } >= 0) }
        previous = key
    }
    let report = reader.report
    for (left, right) in zip(report.lost, report.lost.dropFirst()) { precondition(left.upper ?? [] < right.lower) }
}

private func < (left: [UInt8], right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }

private func scan(_ input: UnsafeRawBufferPointer) {
    guard let memory = try? Memory(count: 0, path: ""), (try? memory.append(input, path: "")) != nil else { return }
    if var cursor = try? BlockCursor(memory, path: "") {
        while case .entry? = try? cursor.next(path: "") {}
    }
    var manifest = ManifestScan(number: 1)
    _ = manifest.apply(input)
    guard input.count > 13, let header = BatchScanner.header(of: input) else { return }
    // A part in the middle of the batch is missing.
    var record = LogRecord(memory: memory, offset: 0, hasHead: true)
    record.hasEnd = true
    let position = 12 + Int(input[12]) % (input.count - 12)
    record.holes = [
        (position, LogHole(offset: 0, byteCount: 9, reason: "", claim: .middle, payloadCount: 9))
    ]
    var part = BatchPart(record, header, ignored: [2])
    guard part.readFront() else { return }
    part.readTail()
    _ = part.lostRange
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSalvage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start, count > 1 else { return 0 }
    let input = UnsafeRawBufferPointer(start: start + 1, count: count - 1)
    var signed = Array(input)
    if start[0] & 0x10 != 0 {
        if start[0] % 4 == 2 { signed = table(signed) } else { sign(&signed) }
    }
    signed.withUnsafeBytes { bytes in
        switch start[0] % 4 {
        case 0:
            store("000003.log", bytes)
            readAll(start[0] & 0x20 != 0)
            unlink("\(directory)/000003.log")
        case 1:
            store("MANIFEST-000002", bytes)
            readAll(false)
            unlink("\(directory)/MANIFEST-000002")
        case 2:
            store("000005.ldb", bytes)
            readAll(false)
            unlink("\(directory)/000005.ldb")
        default: scan(bytes)
        }
    }
    return 0
}
