/* Sends a command to larderd, using only a socket.
 *
 *   cc -O2 -o larder larder.c
 *   ./larder SOCKET COMMAND [ARGUMENT...]
 *
 * Prints the daemon's reply: a string unchanged, the elements of an array one per line. Exit codes: 0 success,
 * 1 the reply is an error or null, 2 wrong usage, 3 no daemon, or the connection was lost. */

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWERED = 0, REFUSED = 1, USAGE = 2, NO_DAEMON = 3 };

/* Limits of nesting and of one string, so that a malformed reply does not use up the stack or the memory. */
enum { DEPTH_MAX = 16 };
static const long TEXT_MAX = 512L * 1024 * 1024;

static FILE *connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (descriptor < 0) return NULL;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) {
        FILE *stream = fdopen(descriptor, "r+");
        if (stream) return stream;
    }
    int error = errno;
    close(descriptor);
    errno = error;
    return NULL;
}

/* Sends a command: the number of its words, then each word with its length in bytes. */
static int send_words(FILE *stream, char **words, int count) {
    fprintf(stream, "*%d\r\n", count);
    for (int index = 0; index < count; index++) {
        size_t length = strlen(words[index]);
        fprintf(stream, "$%zu\r\n", length);
        fwrite(words[index], 1, length, stream);
        fputs("\r\n", stream);
    }
    return fflush(stream);
}

static int went_away(void) {
    fputs("larder: the daemon closed the connection\n", stderr);
    return NO_DAEMON;
}

/* Prints `length` bytes, and skips the line end after them. */
static int print_text(FILE *stream, long length) {
    for (long index = 0; index < length; index++) {
        int byte = getc(stream);
        if (byte == EOF) return went_away();
        putchar(byte);
    }
    putchar('\n');
    return getc(stream) == '\r' && getc(stream) == '\n' ? ANSWERED : went_away();
}

/* Prints null. As an element it is an empty line, so that the line numbers of the other elements do not change. */
static int print_nothing(int depth) {
    if (depth > 0) putchar('\n');
    return REFUSED;
}

static int print_reply(FILE *stream, int depth) {
    char line[4096];
    if (!fgets(line, sizeof line, stream)) return went_away();
    line[strcspn(line, "\r\n")] = '\0';
    char *rest = line + 1;
    long number = strtol(rest, NULL, 10);
    switch (line[0]) {
    case '+':
    case ':':
        puts(rest);
        return ANSWERED;
    case '-':
        fprintf(stderr, "%s\n", rest);
        return REFUSED;
    case '$':
        if (number < 0) return print_nothing(depth);
        if (number <= TEXT_MAX) return print_text(stream, number);
        break;
    case '*':
        if (number < 0) return print_nothing(depth);
        if (depth >= DEPTH_MAX) break;
        for (long index = 0; index < number; index++) {
            int result = print_reply(stream, depth + 1);
            if (result == NO_DAEMON) return result;
        }
        return ANSWERED;
    }
    fputs("larder: the daemon's answer was not understood\n", stderr);
    return NO_DAEMON;
}

int main(int count, char **words) {
    if (count < 3) {
        fputs("usage: larder SOCKET COMMAND [ARGUMENT...]\n", stderr);
        return USAGE;
    }
    /* If the daemon closes the connection, `write` must fail instead of terminating this program. */
    signal(SIGPIPE, SIG_IGN);
    FILE *stream = connect_to(words[1]);
    if (!stream) {
        fprintf(stderr, "larder: %s: %s\n", words[1], strerror(errno));
        return NO_DAEMON;
    }
    if (send_words(stream, words + 2, count - 2) != 0) return went_away();
    int result = print_reply(stream, 0);
    fclose(stream);
    return result;
}
