// The control block that a test and the preloaded library (preload.c) share: a file that both have mapped.
//
// The test writes rules, clocks and switches; the library obeys them at each call on a file below `root`, and counts.
// A rule's fields are written before `armed`, and read after it.
#ifndef LARDER_FAULTS_H
#define LARDER_FAULTS_H

#include <stdint.h>
#include <string.h>

// The environment variable that names the control block's file.
#define LF_VARIABLE "LARDER_FAULTS"
#define LF_MAGIC 0x4C41524446415531ULL
#define LF_RULES 8
// The signal that ends a process that is recorded as SIGKILL does, and between two records: SIGPWR, for which no program
// has a use of its own.
#define LF_DEATH 30
#define LF_PATH_BYTES 512

// What is called. The number is the bit in a rule's mask.
enum {
  LF_OPEN = 0,      // open of a file that is there, without O_CREAT
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
  LF_FAIL = 1,        // the call is not made, and answers `error`
  LF_SHORTEN = 2,     // a read or write of half as many bytes, of one at least
  LF_KILL_BEFORE = 3, // SIGKILL instead of the call
  LF_KILL_AFTER = 4,  // the call, then SIGKILL
  LF_DELAY = 5,       // the call, later by `nanoseconds`
  LF_PAUSE = 6,       // the call, once `released` has grown past the rule's count of hits
  LF_EMPTY = 7        // a write of nothing
};

typedef struct {
  uint32_t armed;
  uint32_t action;
  uint64_t calls;         // a mask of calls
  char path[128];         // only paths below the root that contain this; empty: all
  char except[128];       // and do not contain this; empty: all
  uint64_t first;         // the first call that is hit, counted from 1 among those that match
  uint64_t count;         // how many are hit from there on; UINT64_MAX: all
  uint64_t chances;       // 0, or of those one in so many, by `seed` and the number of the call
  uint64_t seed;
  uint64_t nanoseconds;
  int32_t error;
  uint32_t reserved;
  uint64_t matched;       // calls that matched since the rule was armed
  uint64_t hits;          // calls that were hit
  uint64_t released;      // of LF_PAUSE: how many hits may go on
} lf_rule;

typedef struct {
  uint64_t magic;
  uint64_t attached;      // pid of the process that has the library
  char root[LF_PATH_BYTES];
  int64_t wall_offset;      // nanoseconds that are added to the wall clock
  int64_t monotonic_offset; // nanoseconds that are added to the monotonic clock where it is read
  lf_rule rules[LF_RULES];
  uint64_t calls[LF_CALLS]; // all calls so far, by kind
  uint64_t hits;            // what rules made of them, so far
  char last_hit[LF_PATH_BYTES]; // the call and the path of the last hit
  // Recording.
  char trace_path[LF_PATH_BYTES]; // empty: nothing is recorded
  uint64_t trace_capacity;
  uint64_t trace_length;
  uint64_t trace_failed;    // 1: full; 2: something that cannot be recorded was done, such as copy_file_range
} lf_control;

// Records of the trace. Each is a head, then `name_bytes`, `other_bytes` and `data_bytes` of bytes, and zeros up to a
// multiple of eight. Names are relative to the root, which itself is the empty name.
enum {
  LF_TRACE_ATTACH = 1,   // a process begins; `file`: the root's number, 0 if there is none yet
  LF_TRACE_CREATE = 2,   // `name` is the new file `file`
  LF_TRACE_WRITE = 3,    // data at `offset` of `file`
  LF_TRACE_TRUNCATE = 4, // `file` is `offset` bytes long
  LF_TRACE_SYNC = 5,     // an fsync of `file`, a directory perhaps, begins
  LF_TRACE_SYNCED = 6,   // and has succeeded; `offset`: where the record of its beginning is
  LF_TRACE_UNSYNCED = 7, // and has failed; the same
  LF_TRACE_RENAME = 8,   // `name` to `other`
  LF_TRACE_LINK = 9,     // `name` is also `other`
  LF_TRACE_UNLINK = 10,
  LF_TRACE_MKDIR = 11,   // `name` is the new directory `file`
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

// What Swift cannot say of shared memory.
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

// Takes a rule out of use, and puts another in its place that is not in use yet.
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
