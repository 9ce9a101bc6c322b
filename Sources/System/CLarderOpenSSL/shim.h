// OpenSSL as the system installs it. Inline wrappers only for macros, which Swift cannot call.
#ifndef LARDER_COPENSSL_SHIM_H
#define LARDER_COPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static inline void larder_tls_at_least_1_2(SSL_CTX *context) { SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION); }

static inline void larder_tls_set_name(SSL *session, const char *name) { SSL_set_tlsext_host_name(session, name); }

static inline size_t larder_bio_pending(BIO *bio) { return BIO_ctrl_pending(bio); }

#endif
