import CLarderOpenSSL
import LarderPlatform
import LarderWire

/// The trusted certificates and the client certificate for an origin's connections. Used on the origin's thread only.
final class TLSContext {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let context: OpaquePointer

    /// - Parameters:
    ///   - certificatesPath: the file with the trusted certificates; nil for those of the system.
    ///   - certificatePath: the file with the client certificate and its chain; nil for none.
    ///   - keyPath: the file with the private key of the client certificate; nil if it is in the same file.
    init(certificatesPath: String?, certificatePath: String?, keyPath: String?) throws(Failure) {
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw Failure(description: TLSError.text()) }
        self.context = context
        larder_tls_at_least_1_2(context)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        if let certificatesPath {
            try Self.check(
                SSL_CTX_load_verify_file(context, certificatesPath), "the trusted certificates", certificatesPath)
        } else {
            SSL_CTX_set_default_verify_paths(context)
        }
        if let certificatePath {
            try Self.check(
                SSL_CTX_use_certificate_chain_file(context, certificatePath), "the certificate", certificatePath)
            let keyPath = keyPath ?? certificatePath
            guard SSL_CTX_use_PrivateKey_file(context, keyPath, SSL_FILETYPE_PEM) == 1 else {
                let reason = TLSError.text()
                throw Failure(
                    description: reason.contains("mismatch")
                        ? "the key in \(keyPath) does not match the certificate in \(certificatePath)"
                        : "no key can be read from \(keyPath) (\(reason)): specify the file of the key with ?key=/path")
            }
        }
    }

    deinit { SSL_CTX_free(context) }

    private static func check(_ status: Int32, _ what: String, _ path: String) throws(Failure) {
        guard status != 1 else { return }
        throw Failure(description: "\(what) in \(path) cannot be read: \(TLSError.text())")
    }

    /// Creates a session, which verifies that the server's certificate is valid for the host. Returns nil for a
    /// Unix-domain socket.
    func session(to endpoint: OriginEndpoint) -> TLSSession? {
        guard case .tcp(let host, _) = endpoint, let session = SSL_new(context) else { return nil }
        // Certificates contain names and IP addresses in separate fields, so OpenSSL must know which kind the host is.
        let isAddress = TCPSocket.numericAddresses(host: host, port: 1) != nil
        if isAddress {
            guard X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host) == 1 else {
                SSL_free(session)
                return nil
            }
        } else {
            larder_tls_set_name(session, host)
            SSL_set1_host(session, host)
        }
        return TLSSession(session)
    }
}

/// The TLS state of one connection. Encrypts and decrypts bytes, but does no I/O. Used on the origin's thread only.
final class TLSSession: SocketLayer {
    private let session: OpaquePointer
    /// The OpenSSL buffers for received bytes and for bytes to send. The session owns and frees them.
    private let incoming: OpaquePointer
    private let outgoing: OpaquePointer
    private(set) var isEstablished = false

    fileprivate init?(_ session: OpaquePointer) {
        guard let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem()) else {
            SSL_free(session)
            return nil
        }
        self.session = session
        self.incoming = incoming
        self.outgoing = outgoing
        SSL_set_bio(session, incoming, outgoing)
        SSL_set_connect_state(session)
    }

    deinit { SSL_free(session) }

    func shakeHands() -> String? {
        guard !isEstablished else { return nil }
        ERR_clear_error()
        let status = SSL_do_handshake(session)
        if status == 1 {
            isEstablished = true
            return nil
        }
        if SSL_get_error(session, status) == SSL_ERROR_WANT_READ { return nil }
        let verified = SSL_get_verify_result(session)
        if verified != Int(X509_V_OK) {
            return "its certificate is not trusted: " + String(cString: X509_verify_cert_error_string(verified))
        }
        return "TLS: \(TLSError.text())"
    }

    func receive(_ bytes: UnsafeRawBufferPointer) { BIO_write(incoming, bytes.baseAddress, Int32(bytes.count)) }

    func read(_ room: UnsafeMutableRawBufferPointer) -> SocketLayerRead {
        ERR_clear_error()
        let count = SSL_read(session, room.baseAddress, Int32(clamping: room.count))
        if count > 0 { return .bytes(Int(count)) }
        switch SSL_get_error(session, count) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .nothingNow
        case SSL_ERROR_ZERO_RETURN: return .ended(nil)
        default: return .ended("TLS: \(TLSError.text())")
        }
    }

    func write(_ bytes: [UInt8]) -> Bool {
        var start = 0
        while start < bytes.count {
            ERR_clear_error()
            let count = bytes.withUnsafeBytes {
                SSL_write(session, $0.baseAddress.map { $0 + start }, Int32(clamping: bytes.count - start))
            }
            guard count > 0 else { return false }
            start += Int(count)
        }
        return true
    }

    func takeOutput() -> [UInt8] {
        let count = larder_bio_pending(outgoing)
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            used = Int(max(0, BIO_read(outgoing, buffer.baseAddress, Int32(clamping: count))))
        }
    }
}

private enum TLSError {
    /// Returns the description of the first error that OpenSSL has recorded for this thread.
    static func text() -> String {
        let number = ERR_get_error()
        guard number != 0 else { return "the connection ended" }
        // If this bit is set, the other bits are the `errno` of a system call.
        if number & 0x8000_0000 != 0 { return String(cString: strerror(Int32(number & 0x7FFF_FFFF))) }
        return ERR_reason_error_string(number).map { String(cString: $0) } ?? "error \(number)"
    }
}
