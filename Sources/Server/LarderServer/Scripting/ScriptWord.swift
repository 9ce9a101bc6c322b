import CLarderLuaBridge
import LarderCommandCatalog

extension larder_script_word {
    init(_ word: UnsafeRawBufferPointer) {
        self.init(bytes: word.baseAddress?.assumingMemoryBound(to: UInt8.self), count: word.count)
    }
}

extension UnsafeRawBufferPointer {
    init(_ word: larder_script_word) { self.init(start: word.bytes, count: word.count) }
}

extension larder_script_host {
    static let knowsCommand: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<UInt8>?, Int) -> Bool = {
        _, name, count in
        CommandMetadata.named(Array(UnsafeRawBufferPointer(start: name, count: count))) != nil
    }

    static let hashesText: @convention(c) (UnsafePointer<UInt8>?, Int, UnsafeMutablePointer<CChar>?) -> Void = {
        bytes, count, digits in
        ScriptDigest(of: UnsafeRawBufferPointer(start: bytes, count: count)).write(to: digits)
    }
}
