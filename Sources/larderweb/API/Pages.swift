import CLarderWebPages
import LarderPlatform

/// The web pages, which are embedded in the program.
enum Pages {
    private static let all: [String: (type: String, bytes: [UInt8], tag: String)] = {
        var pages: [String: (type: String, bytes: [UInt8], tag: String)] = [:]
        while let page = larder_web_page_at(pages.count)?.pointee {
            let bytes = Array(UnsafeRawBufferPointer(start: page.bytes, count: page.length))
            // FNV-1a: good enough to distinguish versions of one file.
            let hash = bytes.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            pages[String(cString: page.path)] = (String(cString: page.type), bytes, "\"\(String(hash, radix: 16))\"")
        }
        return pages
    }()

    /// Returns the response to a request for a page; nil if there is no such page.
    static func respond(_ request: HTTPRequest) -> HTTPResponse? {
        guard let page = all[request.path] else { return nil }
        // Browsers revalidate the page with each request, so that a new version is shown at once.
        let isKnown = request.header("if-none-match") == page.tag
        return HTTPResponse(
            status: isKnown ? 304 : 200, type: page.type, isKnown ? [] : page.bytes, cache: "no-cache",
            headers: [("ETag", page.tag)])
    }
}
