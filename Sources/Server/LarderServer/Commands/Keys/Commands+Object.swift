import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Redis' commands about the memory use of entries, as far as they are meaningful for Larder.
extension CommandTable {
    static let objectCommands: Handlers = [
        .objectEncoding: ObjectCommands.encoding,
        .objectFreq: ObjectCommands.frequency,
        .objectIdletime: ObjectCommands.idleTime,
        .objectRefcount: ObjectCommands.referenceCount,
        .memoryUsage: ObjectCommands.usage,
        .memoryStats: ObjectCommands.stats,
        .memoryDoctor: ObjectCommands.doctor,
        .memoryPurge: ObjectCommands.purge,
        .memoryMallocStats: ObjectCommands.mallocStats,
    ]
}

/// OBJECT and MEMORY.
enum ObjectCommands {
    @Sendable static func encoding(_ call: inout Call) throws(CommandError) -> Outcome {
        var encoding: String?
        try call.read(2) { _, payload in encoding = Self.encoding(payload) }
        if let encoding { call.session.replies.bulk(encoding) } else { call.session.replies.null() }
        return .done
    }

    @Sendable static func idleTime(_ call: inout Call) throws(CommandError) -> Outcome {
        let seconds = try call.facts(2).map { max(0, call.now - $0.header.storedAt) / 1000 }
        if let seconds { call.session.replies.integer(seconds) } else { call.session.replies.null() }
        return .done
    }

    @Sendable static func referenceCount(_ call: inout Call) throws(CommandError) -> Outcome {
        var count: Int?
        try call.read(2) { _, payload in
            // Report the largest reference count for small integers, as Redis does, which shares their objects.
            count = parseInteger(payload).map { (0..<10_000).contains($0) } ?? false ? Int(Int32.max) : 1
        }
        if let count { call.session.replies.integer(count) } else { call.session.replies.null() }
        return .done
    }

    @Sendable static func frequency(_ call: inout Call) throws(CommandError) -> Outcome {
        guard try call.facts(2) == nil else {
            throw CommandError(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when "
                    + "switching between policies at runtime LRU and LFU data will take some time to adjust.")
        }
        call.session.replies.null()
        return .done
    }

    private static func encoding(_ payload: UnsafeRawBufferPointer) -> String {
        if parseInteger(payload) != nil { return "int" }
        return payload.count <= 44 ? "embstr" : "raw"
    }

    // MARK: MEMORY

    @Sendable static func doctor(_ call: inout Call) throws(CommandError) -> Outcome {
        let engine = call.server.engine
        return .deferred { (reply) throws(CommandError) in
            // Read this in the deferred work: `engine.memory` locks all shards (the parts of the memory), and a
            // transaction already holds some of these locks.
            let memory = engine.memory
            reply.verbatim(
                "Entries use \(memory.usedBytes) of \(memory.limitBytes) bytes of memory (--memory). Further entries are "
                    + "only on the disk.")
            return nil
        }
    }

    @Sendable static func purge(_ call: inout Call) throws(CommandError) -> Outcome {
        .deferred { (reply) throws(CommandError) in
            Allocator.giveBack()
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func mallocStats(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.replies.verbatim("Stats not supported for the current allocator")
        return .done
    }

    @Sendable static func usage(_ call: inout Call) throws(CommandError) -> Outcome {
        var index = 3
        while index < call.count {
            guard call.isWord(index, "SAMPLES"), index + 1 < call.count, try call.integer(index + 1) >= 0 else {
                throw .syntax
            }
            index += 2
        }
        if let facts = try call.uncountedFacts(2) {
            let bytes = call.bytes(2).count + facts.header.byteCount + facts.payloadCount
            call.session.replies.integer(Limits.entryOverheadBytes + (bytes + 15) / 16 * 16)
        } else {
            call.session.replies.null()
        }
        return .done
    }

    @Sendable static func stats(_ call: inout Call) throws(CommandError) -> Outcome {
        let server = call.server
        return .deferred { (reply) throws(CommandError) in
            stats(server, &reply)
            return nil
        }
    }

    private static func stats(_ server: ServerState, _ reply: inout ReplyBuffer) {
        let memory = server.engine.memory
        let fields: [(String, Int)] = [
            ("entries.bytes", memory.usedBytes), ("entries.limit", memory.limitBytes),
            ("clients", server.clients.read()), ("databases", server.engine.databases.count),
        ]
        reply.map(count: fields.count)
        for (name, value) in fields {
            reply.bulk(name)
            reply.integer(value)
        }
    }
}
