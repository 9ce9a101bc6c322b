// libmicrohttpd as the system installs it. Inline wrappers only where Swift cannot call C: MHD_start_daemon has a
// variable number of arguments.
#ifndef LARDER_CMICROHTTPD_SHIM_H
#define LARDER_CMICROHTTPD_SHIM_H

#include <microhttpd.h>
#include <stddef.h>

struct larder_http_limits {
  unsigned int connections;
  // The maximum time without a byte in either direction, in seconds.
  unsigned int idle_seconds;
  // For the head of a request, and for the part of its body that is read at a time.
  size_t memory_bytes;
  size_t stack_bytes;
};

// Strict mode is off: in strict mode libmicrohttpd refuses some requests, such as those without Host, with a malformed
// response that has a head within its body. So the caller must check the heads of requests itself.
//
// Serves the connections of a listening socket, each on its own thread, and closes the socket when it is stopped.
// Returns NULL on failure.
static inline struct MHD_Daemon *larder_http_start(int listening, const struct larder_http_limits *limits,
                                                   MHD_AccessHandlerCallback handler,
                                                   void *(*begun)(void *, const char *, struct MHD_Connection *),
                                                   MHD_RequestCompletedCallback completed,
                                                   MHD_NotifyConnectionCallback connection, void *context) {
  return MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL, handler,
      context, MHD_OPTION_LISTEN_SOCKET, listening, MHD_OPTION_CONNECTION_LIMIT, limits->connections,
      MHD_OPTION_CONNECTION_TIMEOUT, limits->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits->memory_bytes,
      MHD_OPTION_THREAD_STACK_SIZE, limits->stack_bytes, MHD_OPTION_STRICT_FOR_CLIENT, 0,
      MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_URI_LOG_CALLBACK, begun, context, MHD_OPTION_NOTIFY_COMPLETED,
      completed, context, MHD_OPTION_NOTIFY_CONNECTION, connection, context, MHD_OPTION_END);
}

// The descriptor of a connection; -1 if it has none.
static inline int larder_http_descriptor(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

#endif
