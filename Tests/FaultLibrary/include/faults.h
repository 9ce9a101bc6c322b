// The control block that a test and the preloaded library (preload.c) share: a file that both map into memory.
//
// The test writes rules and clock offsets. The library applies them to each call on a file below `root`, and counts the
// calls. The fields of a rule are written before `armed`, and read after it.
#ifndef LARDER_FAULTS_H
#define LARDER_FAULTS_H

#include <stdint.h>
#include <string.h>

// The environment variable that names the control block's file.
#define LF_VARIABLE "LARDER_FAULTS"
#define LF_MAGIC 0x4C41524446415531ULL
#define LF_RULES 8
// The signal that makes a recorded process kill itself with SIGKILL between two records: SIGPWR, which the programs
// under test do not use.
#define LF_DEATH 30
#define LF_PATH_BYTES 512

// The kinds of calls. The number is the bit in a rule's mask.
enum {
  LF_OPEN = 0,      // open of an existing file, without O_CREAT
  LF_CREATE = 1,    // open with O_CREAT
  LF_READ = 2,      // read, pread, readv
  LF_WRITE = 3,     // write, pwrite, writev, pwritev
  LF_SYNC = 4,      // fsync, fdatasync of a file
  LF_SYNCDIR = 5,   // fsync of a directory
  LF_TRUNCATE = 6,  // ftruncate, truncate
  LF_ALLOCATE = 7,  // fallocate, posix_fallocate
  LF_RENAME = 8,
  LF_LINK = 9,
  LF_UNLINK = 10,
  LF_MKDIR = 11,
  LF_RMDIR = 12,
  LF_LIST = 13,     // opendir
  LF_LISTNEXT = 14, // readdir
  LF_STAT = 15,     // stat, lstat, fstat
  LF_ACCESS = 16,
  LF_CLOSE = 17,
  LF_MMAP = 18,
  LF_LOCK = 19,     // flock, fcntl locks
  LF_STATFS = 20,   // statvfs
  LF_CALLS = 21
};

// What a rule does to the calls that it hits.
enum {
  LF_FAIL = 1,        // the call is not made, and fails with `error`
  LF_SHORTEN = 2,     // reads or writes half as many bytes, at least one
  LF_KILL_BEFORE = 3, // sends SIGKILL instead of making the call
  LF_KILL_AFTER = 4,  // makes the call, then sends SIGKILL
  LF_DELAY = 5,       // makes the call after `nanoseconds`
  LF_PAUSE = 6,       // makes the call when `released` reaches the number of this hit
  LF_EMPTY = 7        // a write that writes nothing and returns 0
};

typedef struct {
  uint32_t armed;
  uint32_t action;
  uint64_t calls;         // a mask of calls
  char path[128];         // hits only paths below the root that contain this text; empty: all
  char except[128];       // hits no paths that contain this text; empty: excludes none
  uint64_t first;         // the first matching call to hit, counted from 1
  uint64_t count;         // the number of matching calls to hit, from the first on; UINT64_MAX: all
  uint64_t chances;       // hits only one in this many of these calls, at random by `seed`; 0: all
  uint64_t seed;
  uint64_t nanoseconds;
  int32_t error;
  uint32_t reserved;
  uint64_t matched;       // calls that matched since the rule was armed
  uint64_t hits;          // calls that were hit
  uint64_t released;      // for LF_PAUSE: the number of hits that may continue
} lf_rule;

typedef struct {
  uint64_t magic;
  uint64_t attached;      // pid of the process that started last with the library
  char root[LF_PATH_BYTES];
  int64_t wall_offset;      // nanoseconds to add to the wall clock
  int64_t monotonic_offset; // nanoseconds to add to the monotonic clock when it is read
  lf_rule rules[LF_RULES];
  uint64_t calls[LF_CALLS]; // all calls so far, by kind
  uint64_t hits;            // all calls that a rule has hit so far
  char last_hit[LF_PATH_BYTES]; // the call and the path of the last hit
  // Recording.
  char trace_path[LF_PATH_BYTES]; // empty: no trace is recorded
  uint64_t trace_capacity;
  uint64_t trace_length;
  uint64_t trace_failed;    // 1: the trace is full; 2: a call was made that cannot be recorded, such as copy_file_range
} lf_control;

// The kinds of records in the trace. A record is an lf_record, then the name, the other name and the data, with their
// lengths from the lf_record, then zeros up to a multiple of eight bytes. Names are relative to the root, whose own
// name is empty.
enum {
  LF_TRACE_ATTACH = 1,   // a process starts; `file`: the root's number, 0 if it does not exist yet
  LF_TRACE_CREATE = 2,   // the file `file` is created as `name`
  LF_TRACE_WRITE = 3,    // data is written at `offset` of `file`
  LF_TRACE_TRUNCATE = 4, // the length of `file` becomes `offset`
  LF_TRACE_SYNC = 5,     // an fsync of `file`, which may be a directory, starts
  LF_TRACE_SYNCED = 6,   // the fsync has succeeded; `offset`: the position of the record of its start
  LF_TRACE_UNSYNCED = 7, // the fsync has failed; `offset` as above
  LF_TRACE_RENAME = 8,   // `name` is renamed to `other`
  LF_TRACE_LINK = 9,     // `other` becomes a hard link to `name`
  LF_TRACE_UNLINK = 10,
  LF_TRACE_MKDIR = 11,   // the directory `file` is created as `name`
  LF_TRACE_RMDIR = 12
};

typedef struct {
  uint32_t kind;
  uint32_t name_bytes;
  uint32_t other_bytes;
  uint32_t reserved;
  uint64_t file;       // the file's number: its inode
  uint64_t offset;
  uint64_t data_bytes;
  int64_t wall;        // the wall clock as the process sees it, in nanoseconds
} lf_record;

static inline uint64_t lf_record_bytes(const lf_record *r) {
  return (sizeof(lf_record) + r->name_bytes + r->other_bytes + r->data_bytes + 7) & ~7ULL;
}

// Atomic access to shared memory, which Swift cannot express for pointers.
static inline uint64_t lf_load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void lf_store(uint64_t *p, uint64_t value) { __atomic_store_n(p, value, __ATOMIC_RELEASE); }
static inline int64_t lf_load_signed(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void lf_store_signed(int64_t *p, int64_t value) { __atomic_store_n(p, value, __ATOMIC_RELEASE); }
static inline void lf_add(uint64_t *p, uint64_t value) { __atomic_add_fetch(p, value, __ATOMIC_ACQ_REL); }

static inline void lf_copy(char *to, size_t bytes, const char *from) {
  size_t count = strlen(from);
  if (count > bytes - 1) count = bytes - 1;
  memcpy(to, from, count);
  to[count] = 0;
}

static inline void lf_set_root(lf_control *c, const char *path) { lf_copy(c->root, sizeof c->root, path); }
static inline void lf_set_trace(lf_control *c, const char *path, uint64_t capacity) {
  lf_copy(c->trace_path, sizeof c->trace_path, path);
  c->trace_capacity = capacity;
}
static inline lf_rule *lf_rule_at(lf_control *c, int index) { return &c->rules[index]; }
static inline uint64_t lf_calls(const lf_control *c, int call) { return lf_load(&c->calls[call]); }
static inline const char *lf_last_hit(const lf_control *c) { return c->last_hit; }

// lf_disarm disables a rule. lf_arm replaces a rule by another one, and enables it when it is complete.
static inline void lf_disarm(lf_rule *r) { __atomic_store_n(&r->armed, 0, __ATOMIC_SEQ_CST); }
static inline void lf_arm(lf_rule *to, const lf_rule *from, const char *path, const char *except) {
  lf_disarm(to);
  *to = *from;
  to->armed = 0;
  to->matched = to->hits = to->released = 0;
  lf_copy(to->path, sizeof to->path, path);
  lf_copy(to->except, sizeof to->except, except);
  __atomic_store_n(&to->armed, 1, __ATOMIC_SEQ_CST);
}

#endif
