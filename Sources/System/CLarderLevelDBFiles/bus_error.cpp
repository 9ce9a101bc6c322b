#include "cleveldbfiles.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace {

/// Writes a text to standard error. Async-signal-safe, like all functions in this file.
void Write(const char *text, size_t length) {
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text += written;
    length -= static_cast<size_t>(written);
  }
}

void Write(const char *text) { Write(text, std::strlen(text)); }

/// Writes the path of the file that is mapped at an address; "a file" if it is unknown.
///
/// Each line of /proc/self/maps has the first address and the end of a mapping in hexadecimal, `start-end`, four more words, and
/// the path.
void WritePath(uintptr_t address) {
  char buffer[4096];
  char path[4096];
  size_t length = 0;
  uintptr_t bounds[2] = {0, 0};
  int bound = 0;
  bool is_path = false;
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  ssize_t count = 0;
  while (file >= 0 && ((count = read(file, buffer, sizeof buffer)) > 0 || (count < 0 && errno == EINTR))) {
    for (ssize_t at = 0; at < count; at++) {
      const char letter = buffer[at];
      if (letter == '\n') {
        if (length > 0 && bounds[0] <= address && address < bounds[1]) {
          Write(path, length);
          close(file);
          return;
        }
        length = 0;
        bounds[0] = bounds[1] = 0;
        bound = 0;
        is_path = false;
      } else if (is_path || letter == '/') {
        is_path = true;
        if (length < sizeof path) path[length++] = letter;
      } else if (letter == '-' && bound == 0) {
        bound = 1;
      } else if (letter == ' ') {
        bound = 2;
      } else if (bound < 2) {
        bounds[bound] = bounds[bound] * 16 + static_cast<uintptr_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
      }
    }
  }
  if (file >= 0) close(file);
  Write("a file");
}

void OnBusError(int, siginfo_t *info, void *) {
  // Any other reason is a defect of the program: say nothing.
  if (info->si_code == BUS_ADRERR) {
    Write("larderd: ");
    WritePath(reinterpret_cast<uintptr_t>(info->si_addr));
    Write(" is shorter than it was when it was opened, or the disk cannot read it. Terminating: the next start salvages the "
          "database.\n");
  }
  // The handler is not installed any more (SA_RESETHAND), so the same access now ends the process.
}

} // namespace

void larder_leveldb_explain_bus_errors(void) {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}
