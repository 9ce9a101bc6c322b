// Tests a C program that uses hiredis synchronously. Argument: the socket.
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext *client;

// Terminates the program if a condition is false, and prints the last reply of the server.
#define expect(condition, reply)                                                                         \
    do {                                                                                                 \
        if (!(condition)) {                                                                              \
            fprintf(stderr, "hiredis.c:%d: %s: type %d, integer %lld, text %s, error %s\n", __LINE__,    \
                    #condition, (reply) ? (reply)->type : -1, (reply) ? (reply)->integer : 0,            \
                    (reply) && (reply)->str ? (reply)->str : "(none)", client ? client->errstr : "");    \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

static void expect_status(redisReply *reply, const char *text) {
    expect(reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, text) == 0, reply);
    freeReplyObject(reply);
}

static void expect_integer(redisReply *reply, long long wanted) {
    expect(reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == wanted, reply);
    freeReplyObject(reply);
}

static void expect_bytes(redisReply *reply, const char *bytes, size_t count) {
    expect(reply && reply->type == REDIS_REPLY_STRING && reply->len == count, reply);
    expect(memcmp(reply->str, bytes, count) == 0, reply);
    freeReplyObject(reply);
}

static void expect_error(redisReply *reply, const char *text) {
    expect(reply && reply->type == REDIS_REPLY_ERROR && strcmp(reply->str, text) == 0, reply);
    freeReplyObject(reply);
}

static void expect_nil(redisReply *reply) {
    expect(reply && reply->type == REDIS_REPLY_NIL, reply);
    freeReplyObject(reply);
}

static void values(void) {
    expect_status(redisCommand(client, "PING"), "PONG");
    expect_status(redisCommand(client, "SET %s %b", "k", "\0\xff\r\n", (size_t)4), "OK");
    expect_bytes(redisCommand(client, "GET k"), "\0\xff\r\n", 4);
    expect_nil(redisCommand(client, "GET nothing"));
    expect_integer(redisCommand(client, "INCRBY n 42"), 42);
    expect_integer(redisCommand(client, "EXPIRE n 100"), 1);
    expect_integer(redisCommand(client, "PERSIST n"), 1);
    expect_integer(redisCommand(client, "TTL n"), -1);
    expect_error(redisCommand(client, "INCR k"), "ERR value is not an integer or out of range");
    expect_error(redisCommand(client, "GET"), "ERR wrong number of arguments for 'get' command");
    redisReply *reply = redisCommand(client, "MGET n nothing k");
    expect(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3, reply);
    expect(strcmp(reply->element[0]->str, "42") == 0, reply->element[0]);
    expect(reply->element[1]->type == REDIS_REPLY_NIL, reply->element[1]);
    expect(reply->element[2]->len == 4, reply->element[2]);
    freeReplyObject(reply);
}

// Queues requests, sends them together, and then reads the replies in order.
static void pipeline(void) {
    enum { COUNT = 20000 };
    for (int index = 0; index < COUNT; index++) {
        expect(redisAppendCommand(client, "SET p%d %d", index % 100, index) == REDIS_OK, (redisReply *)NULL);
        expect(redisAppendCommand(client, "GET p%d", index % 100) == REDIS_OK, (redisReply *)NULL);
    }
    for (int index = 0; index < COUNT; index++) {
        void *reply = NULL;
        char text[16];
        int count = snprintf(text, sizeof text, "%d", index);
        expect(redisGetReply(client, &reply) == REDIS_OK, (redisReply *)NULL);
        expect_status(reply, "OK");
        expect(redisGetReply(client, &reply) == REDIS_OK, (redisReply *)NULL);
        expect_bytes(reply, text, (size_t)count);
    }
}

static void large_value(void) {
    enum { COUNT = 64 << 20 };
    char *value = malloc(COUNT);
    for (size_t index = 0; index < COUNT; index++) value[index] = (char)(index * 2654435761u >> 13);
    expect_status(redisCommand(client, "SET large %b", value, (size_t)COUNT), "OK");
    expect_bytes(redisCommand(client, "GET large"), value, COUNT);
    expect_integer(redisCommand(client, "DEL large"), 1);
    free(value);
}

static void transaction(void) {
    expect_status(redisCommand(client, "WATCH k"), "OK");
    expect_status(redisCommand(client, "MULTI"), "OK");
    expect_status(redisCommand(client, "SET k v"), "QUEUED");
    expect_status(redisCommand(client, "INCR k"), "QUEUED");
    expect_status(redisCommand(client, "GET k"), "QUEUED");
    redisReply *reply = redisCommand(client, "EXEC");
    expect(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3, reply);
    expect(reply->element[0]->type == REDIS_REPLY_STATUS, reply->element[0]);
    expect(reply->element[1]->type == REDIS_REPLY_ERROR, reply->element[1]);
    expect(strcmp(reply->element[2]->str, "v") == 0, reply->element[2]);
    freeReplyObject(reply);
    expect_status(redisCommand(client, "MULTI"), "OK");
    expect_status(redisCommand(client, "DISCARD"), "OK");
    expect_error(redisCommand(client, "EXEC"), "ERR EXEC without MULTI");
}

static void expect_message(redisReply *reply, const char *kind, const char *channel) {
    expect(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3, reply);
    expect(strcmp(reply->element[0]->str, kind) == 0, reply->element[0]);
    expect(strcmp(reply->element[1]->str, channel) == 0, reply->element[1]);
}

static void messages(const char *path) {
    redisContext *publisher = client;
    client = redisConnectUnix(path);
    redisReply *reply = redisCommand(client, "SUBSCRIBE news");
    expect_message(reply, "subscribe", "news");
    expect(reply->element[2]->integer == 1, reply->element[2]);
    freeReplyObject(reply);
    expect_integer(redisCommand(publisher, "PUBLISH news %s", "hello world"), 1);
    void *message = NULL;
    expect(redisGetReply(client, &message) == REDIS_OK, (redisReply *)NULL);
    expect_message(message, "message", "news");
    expect(strcmp(((redisReply *)message)->element[2]->str, "hello world") == 0, (redisReply *)message);
    freeReplyObject(message);
    redisFree(client);
    client = publisher;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    client = redisConnectUnix(arguments[1]);
    expect(client && client->err == 0, (redisReply *)NULL);
    values();
    pipeline();
    large_value();
    transaction();
    messages(arguments[1]);
    expect_status(redisCommand(client, "FLUSHALL"), "OK");
    expect_integer(redisCommand(client, "DBSIZE"), 0);
    redisFree(client);
    puts("all is well");
    return 0;
}
