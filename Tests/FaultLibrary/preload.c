// A library that is loaded with LD_PRELOAD into a program under test. It makes calls on files fail, shortens or delays
// them, kills the process at a call, moves the clocks, and records all changes of the files below one directory.
//
// A control block (include/faults.h) controls the library. Without a control block it does nothing. It makes raw system
// calls, so that it neither allocates memory nor calls the functions that it replaces. Linux and glibc only.
#define _GNU_SOURCE
#include "include/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The headers may define these as macros.
#undef open
#undef open64
#undef stat
#undef lstat
#undef fstat

static lf_control *control;
static size_t root_length;
static unsigned char *trace;
static uint64_t trace_end;
static pthread_mutex_t recording = PTHREAD_MUTEX_INITIALIZER;

// The file of a descriptor. Only descriptors of files below the root are recorded.
typedef struct {
  volatile int used;
  int flags;
  int directory;
  uint64_t file;
  char path[LF_PATH_BYTES];
} descriptor;

#define DESCRIPTORS 65536
static descriptor table[DESCRIPTORS];

static DIR *(*next_opendir)(const char *);
static struct dirent *(*next_readdir)(DIR *);
static int (*next_closedir)(DIR *);
static int (*next_clock_gettime)(clockid_t, struct timespec *);

// MARK: Start

static const char *below(const char *path);
static void record(uint32_t, uint64_t, const char *, const char *, uint64_t, const void *, uint64_t);
static uint64_t number_of(const char *path);
static void told_to_die(int signal);

static void *map(const char *path, uint64_t bytes) {
  long file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (file < 0) return NULL;
  void *start = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0L);
  syscall(SYS_close, (int)file);
  return start == MAP_FAILED ? NULL : start;
}

static void refuse(const char *what) {
  syscall(SYS_write, 2, what, strlen(what));
  _exit(127);
}

__attribute__((constructor(101))) static void begin(void) {
  next_opendir = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
  next_readdir = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
  next_closedir = (int (*)(DIR *))dlsym(RTLD_NEXT, "closedir");
  next_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv(LF_VARIABLE);
  if (!path || !*path) return;
  lf_control *block = map(path, sizeof(lf_control));
  if (!block || block->magic != LF_MAGIC) refuse("the fault library: " LF_VARIABLE " names no control block\n");
  root_length = strlen(block->root);
  if (block->trace_path[0]) {
    trace = map(block->trace_path, block->trace_capacity);
    if (!trace) refuse("the fault library: the trace cannot be mapped\n");
  }
  control = block;
  trace_end = lf_load(&block->trace_length);
  lf_store(&block->attached, (uint64_t)getpid());
  if (trace) signal(LF_DEATH, told_to_die);
  if (trace) record(LF_TRACE_ATTACH, number_of(block->root), "", "", 0, NULL, 0);
}

// MARK: Names

// Returns the path relative to the root; NULL for paths outside of it.
static const char *below(const char *path) {
  if (!control || !path || strncmp(path, control->root, root_length) != 0) return NULL;
  if (path[root_length] == 0) return path + root_length;
  return path[root_length] == '/' ? path + root_length + 1 : NULL;
}

static descriptor *known(int file) {
  return control && file >= 0 && file < DESCRIPTORS && table[file].used ? &table[file] : NULL;
}

static int status_of(int file, struct stat *status) { return (int)syscall(SYS_fstat, file, status); }

static uint64_t number_of(const char *path) {
  struct stat status;
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return status.st_ino;
}

static void note_descriptor(int file, const char *name, int flags) {
  struct stat status;
  if (file < 0 || file >= DESCRIPTORS || status_of(file, &status) != 0) return;
  descriptor *d = &table[file];
  d->flags = flags;
  d->directory = S_ISDIR(status.st_mode);
  d->file = status.st_ino;
  lf_copy(d->path, sizeof d->path, name);
  d->used = 1;
}

static void note_copy(int file, int copy) {
  if (!known(file) || copy < 0 || copy >= DESCRIPTORS) return;
  table[copy].used = 0;
  table[copy] = table[file];
}

static void forget(int file) {
  descriptor *d = known(file);
  if (d) d->used = 0;
}

// MARK: Clocks

static int64_t real_time(clockid_t clock) {
  struct timespec t;
  if (next_clock_gettime) next_clock_gettime(clock, &t);
  else syscall(SYS_clock_gettime, clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t offset_of(clockid_t clock) {
  if (!control) return 0;
  switch (clock) {
  case CLOCK_REALTIME:
  case CLOCK_REALTIME_COARSE: return lf_load_signed(&control->wall_offset);
  case CLOCK_MONOTONIC:
  case CLOCK_MONOTONIC_COARSE:
  case CLOCK_MONOTONIC_RAW:
  case CLOCK_BOOTTIME: return lf_load_signed(&control->monotonic_offset);
  default: return 0;
  }
}

static void moved(struct timespec *t, int64_t offset) {
  if (offset == 0) return;
  int64_t nanoseconds = t->tv_nsec + offset % 1000000000;
  t->tv_sec += offset / 1000000000 + nanoseconds / 1000000000;
  t->tv_nsec = nanoseconds % 1000000000;
  if (t->tv_nsec < 0) {
    t->tv_nsec += 1000000000;
    t->tv_sec -= 1;
  }
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  int status = next_clock_gettime ? next_clock_gettime(clock, t) : (int)syscall(SYS_clock_gettime, clock, t);
  if (status == 0) moved(t, offset_of(clock));
  return status;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int status = clock_gettime(CLOCK_REALTIME, &now);
  if (status == 0) {
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
  }
  return status;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}

// MARK: The trace

// Appends a record to the trace. Called with the mutex `recording` locked.
static void record(
    uint32_t kind, uint64_t file, const char *name, const char *other, uint64_t offset, const void *data,
    uint64_t bytes) {
  lf_record head = {.kind = kind, .file = file, .offset = offset, .data_bytes = bytes};
  head.name_bytes = (uint32_t)strlen(name);
  head.other_bytes = (uint32_t)strlen(other);
  head.wall = real_time(CLOCK_REALTIME) + offset_of(CLOCK_REALTIME);
  uint64_t length = lf_record_bytes(&head);
  if (trace_end + length > control->trace_capacity) {
    lf_store(&control->trace_failed, 1);
    return;
  }
  unsigned char *to = trace + trace_end;
  memcpy(to, &head, sizeof head);
  to += sizeof head;
  memcpy(to, name, head.name_bytes);
  memcpy(to + head.name_bytes, other, head.other_bytes);
  if (bytes) memcpy(to + head.name_bytes + head.other_bytes, data, bytes);
  trace_end += length;
  lf_store(&control->trace_length, trace_end);
}

// While a trace is recorded, only one change is made at a time, so that the trace has the changes in their order.
static void enter(void) {
  if (trace) pthread_mutex_lock(&recording);
}

static volatile sig_atomic_t is_dying;

static void leave(void) {
  if (!trace) return;
  if (is_dying) syscall(SYS_kill, getpid(), SIGKILL);
  pthread_mutex_unlock(&recording);
}

// Kills the process with SIGKILL between two changes, so that every change that was made is also recorded.
static void die(void) {
  enter();
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) {
  }
}

// Handles the signal LF_DEATH. If the mutex is locked, a change is being recorded: its thread kills the process when it
// unlocks the mutex.
static void told_to_die(int signal) {
  (void)signal;
  is_dying = 1;
  if (pthread_mutex_trylock(&recording) == 0) syscall(SYS_kill, getpid(), SIGKILL);
}

// MARK: Rules

typedef struct {
  int error;   // the error with which the call fails; 0: none
  int shorten;
  int empty;
  int kill;    // SIGKILL after the call
} verdict;

static const char *const names[LF_CALLS] = {
    "open",  "create", "read",  "write",   "fsync", "fsync of a directory", "truncate", "allocate",
    "rename", "link",  "unlink", "mkdir",  "rmdir", "opendir", "readdir", "stat", "access", "close", "mmap",
    "lock", "statvfs"};

static uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

static void note_hit(int call, const char *path) {
  char text[LF_PATH_BYTES];
  size_t length = strlen(names[call]);
  memcpy(text, names[call], length);
  text[length] = ' ';
  lf_copy(text + length + 1, sizeof text - length - 1, path);
  memcpy(control->last_hit, text, sizeof text);
  lf_add(&control->hits, 1);
}

static void wait_nanoseconds(uint64_t nanoseconds) {
  struct timespec t = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
  syscall(SYS_nanosleep, &t, NULL);
}

static void apply(lf_rule *rule, uint64_t hit, verdict *v) {
  switch (rule->action) {
  case LF_FAIL: v->error = rule->error; break;
  case LF_SHORTEN: v->shorten = 1; break;
  case LF_EMPTY: v->empty = 1; break;
  case LF_KILL_BEFORE: die(); break;
  case LF_KILL_AFTER: v->kill = 1; break;
  case LF_DELAY: wait_nanoseconds(rule->nanoseconds); break;
  case LF_PAUSE:
    while (__atomic_load_n(&rule->armed, __ATOMIC_ACQUIRE) && lf_load(&rule->released) < hit) wait_nanoseconds(100000);
    break;
  }
}

// Applies the rules to a call on a file, and returns what to do with the call. `other` is the second path, such as the
// target of a rename.
static verdict judge_two(int call, const char *path, const char *other) {
  verdict v = {0};
  lf_add(&control->calls[call], 1);
  for (int index = 0; index < LF_RULES; index++) {
    lf_rule *rule = &control->rules[index];
    if (!__atomic_load_n(&rule->armed, __ATOMIC_ACQUIRE) || !(rule->calls >> call & 1)) continue;
    if (rule->path[0] && !strstr(path, rule->path) && !strstr(other, rule->path)) continue;
    if (rule->except[0] && (strstr(path, rule->except) || strstr(other, rule->except))) continue;
    uint64_t number = __atomic_add_fetch(&rule->matched, 1, __ATOMIC_ACQ_REL);
    if (number < rule->first || number - rule->first >= rule->count) continue;
    if (rule->chances > 1 && mixed(rule->seed ^ number) % rule->chances != 0) continue;
    uint64_t hit = __atomic_add_fetch(&rule->hits, 1, __ATOMIC_ACQ_REL);
    note_hit(call, path);
    apply(rule, hit, &v);
    if (v.error || v.shorten || v.empty || v.kill) break;
  }
  return v;
}

static verdict judge(int call, const char *path) { return judge_two(call, path, ""); }

// Every call that was made ends here: returns its result, or kills the process if a rule says so.
static long done(verdict v, long result) {
  if (v.kill) {
    int error = errno;
    die();
    errno = error;
  }
  return result;
}

static long failed(verdict v) {
  errno = v.error;
  return -1;
}

static size_t less(verdict v, size_t bytes) { return v.shorten && bytes > 1 ? bytes / 2 : bytes; }

// MARK: Opening and closing

static int open_file(int directory, const char *path, int flags, mode_t mode) {
  const char *name = below(path);
  if (!name) {
    int file = (int)syscall(SYS_openat, directory, path, flags, mode);
    forget(file);
    return file;
  }
  verdict v = judge(flags & O_CREAT ? LF_CREATE : LF_OPEN, name);
  if (v.error) return (int)failed(v);
  int changes = (flags & (O_CREAT | O_TRUNC)) != 0;
  if (changes) enter();
  uint64_t before = trace && changes ? number_of(path) : 0;
  int file = (int)syscall(SYS_openat, directory, path, flags, mode);
  if (file >= 0) {
    note_descriptor(file, name, flags);
    if (trace && changes && file < DESCRIPTORS) {
      if (!before) record(LF_TRACE_CREATE, table[file].file, name, "", 0, NULL, 0);
      else if (flags & O_TRUNC) record(LF_TRACE_TRUNCATE, table[file].file, "", "", 0, NULL, 0);
    }
  }
  if (changes) leave();
  return (int)done(v, file);
}

#define WITH_MODE(flags)                            \
  mode_t mode = 0;                                  \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {          \
    va_list list;                                   \
    va_start(list, flags);                          \
    mode = (mode_t)va_arg(list, int);               \
    va_end(list);                                   \
  }

int open(const char *path, int flags, ...) {
  WITH_MODE(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  WITH_MODE(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
  WITH_MODE(flags)
  return open_file(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
  WITH_MODE(flags)
  return open_file(directory, path, flags, mode);
}
int __open_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int file) {
  descriptor *d = known(file);
  if (!d) return (int)syscall(SYS_close, file);
  verdict v = judge(LF_CLOSE, d->path);
  d->used = 0;
  int status = (int)syscall(SYS_close, file);
  if (v.error) return (int)failed(v);
  return (int)done(v, status);
}

// Writes through a stream, such as those to LevelDB's LOG, are neither affected by rules nor recorded.
int fclose(FILE *stream) {
  static int (*next)(FILE *);
  if (!next) next = (int (*)(FILE *))dlsym(RTLD_NEXT, "fclose");
  forget(fileno(stream));
  return next(stream);
}

// MARK: Reading

static ssize_t read_file(int file, void *to, size_t bytes, off_t offset) {
  descriptor *d = known(file);
  verdict v = {0};
  if (d) v = judge(LF_READ, d->path);
  if (v.error) return failed(v);
  bytes = less(v, bytes);
  long count = offset < 0 ? syscall(SYS_read, file, to, bytes) : syscall(SYS_pread64, file, to, bytes, offset);
  return done(v, count);
}

ssize_t read(int file, void *to, size_t bytes) { return read_file(file, to, bytes, -1); }
ssize_t pread(int file, void *to, size_t bytes, off_t offset) { return read_file(file, to, bytes, offset); }
ssize_t pread64(int file, void *to, size_t bytes, off64_t offset) { return read_file(file, to, bytes, offset); }
ssize_t __read_chk(int file, void *to, size_t bytes, size_t room) {
  if (bytes > room) abort();
  return read_file(file, to, bytes, -1);
}
ssize_t __pread_chk(int file, void *to, size_t bytes, off_t offset, size_t room) {
  if (bytes > room) abort();
  return read_file(file, to, bytes, offset);
}
ssize_t __pread64_chk(int file, void *to, size_t bytes, off64_t offset, size_t room) {
  if (bytes > room) abort();
  return read_file(file, to, bytes, offset);
}

ssize_t readv(int file, const struct iovec *parts, int count) {
  if (!known(file)) return syscall(SYS_readv, file, parts, count);
  // Reads only the first buffer, which is a valid short read.
  return count > 0 ? read_file(file, parts[0].iov_base, parts[0].iov_len, -1) : 0;
}

// MARK: Writing

// Returns the offset of a write that specifies none. Called with `recording` locked.
static int64_t position_of(int file, descriptor *d) {
  struct stat status;
  if (d->flags & O_APPEND) return status_of(file, &status) == 0 ? status.st_size : 0;
  return syscall(SYS_lseek, file, 0L, SEEK_CUR);
}

static ssize_t write_file(int file, const void *from, size_t bytes, off_t offset) {
  descriptor *d = known(file);
  if (!d) {
    return offset < 0 ? syscall(SYS_write, file, from, bytes) : syscall(SYS_pwrite64, file, from, bytes, offset);
  }
  verdict v = judge(LF_WRITE, d->path);
  if (v.error) return failed(v);
  if (v.empty) return 0;
  bytes = less(v, bytes);
  enter();
  int64_t place = offset >= 0 || !trace ? offset : position_of(file, d);
  long count = offset < 0 ? syscall(SYS_write, file, from, bytes) : syscall(SYS_pwrite64, file, from, bytes, offset);
  if (trace && count > 0) record(LF_TRACE_WRITE, d->file, "", "", (uint64_t)place, from, (uint64_t)count);
  leave();
  return done(v, count);
}

ssize_t write(int file, const void *from, size_t bytes) { return write_file(file, from, bytes, -1); }
ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset) {
  return write_file(file, from, bytes, offset);
}
ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t offset) {
  return write_file(file, from, bytes, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  if (!known(file)) return syscall(SYS_writev, file, parts, count);
  return count > 0 ? write_file(file, parts[0].iov_base, parts[0].iov_len, -1) : 0;
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
  if (!known(file)) return syscall(SYS_pwritev, file, parts, count, offset, 0L);
  return count > 0 ? write_file(file, parts[0].iov_base, parts[0].iov_len, offset) : 0;
}
ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
  return pwritev(file, parts, count, offset);
}
ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags) {
  if (!known(file)) return syscall(SYS_pwritev2, file, parts, count, offset, 0L, flags);
  if (offset == -1) return writev(file, parts, count);
  return pwritev(file, parts, count, offset);
}
ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off64_t offset, int flags) {
  return pwritev2(file, parts, count, offset, flags);
}

// Marks the trace as incomplete. Called by functions whose effect cannot be recorded; Larder does not use them.
static void not_recorded(int concerns) {
  if (trace && concerns) lf_store(&control->trace_failed, 2);
}

ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *place, size_t bytes, unsigned flags) {
  not_recorded(known(to) != NULL);
  return syscall(SYS_copy_file_range, from, start, to, place, bytes, flags);
}
ssize_t sendfile(int to, int from, off_t *start, size_t bytes) {
  not_recorded(known(to) != NULL);
  return syscall(SYS_sendfile, to, from, start, bytes);
}
ssize_t sendfile64(int to, int from, off64_t *start, size_t bytes) { return sendfile(to, from, start, bytes); }
ssize_t splice(int from, off64_t *start, int to, off64_t *place, size_t bytes, unsigned flags) {
  not_recorded(known(to) != NULL);
  return syscall(SYS_splice, from, start, to, place, bytes, flags);
}
int symlink(const char *target, const char *path) {
  not_recorded(below(path) != NULL);
  return (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
}

static int truncate_file(int file, off_t bytes) {
  descriptor *d = known(file);
  if (!d) return (int)syscall(SYS_ftruncate, file, bytes);
  verdict v = judge(LF_TRUNCATE, d->path);
  if (v.error) return (int)failed(v);
  enter();
  long status = syscall(SYS_ftruncate, file, bytes);
  if (trace && status == 0) record(LF_TRACE_TRUNCATE, d->file, "", "", (uint64_t)bytes, NULL, 0);
  leave();
  return (int)done(v, status);
}

int ftruncate(int file, off_t bytes) { return truncate_file(file, bytes); }
int ftruncate64(int file, off64_t bytes) { return truncate_file(file, bytes); }

int truncate(const char *path, off_t bytes) {
  const char *name = below(path);
  if (!name) return (int)syscall(SYS_truncate, path, bytes);
  verdict v = judge(LF_TRUNCATE, name);
  if (v.error) return (int)failed(v);
  enter();
  long status = syscall(SYS_truncate, path, bytes);
  if (trace && status == 0) record(LF_TRACE_TRUNCATE, number_of(path), "", "", (uint64_t)bytes, NULL, 0);
  leave();
  return (int)done(v, status);
}
int truncate64(const char *path, off64_t bytes) { return truncate(path, bytes); }

static int allocate_file(int file, int mode, off_t offset, off_t bytes) {
  descriptor *d = known(file);
  if (!d) return (int)syscall(SYS_fallocate, file, mode, offset, bytes);
  verdict v = judge(LF_ALLOCATE, d->path);
  if (v.error) return (int)failed(v);
  // Other modes change the contents too, which cannot be recorded.
  not_recorded((mode & ~FALLOC_FL_KEEP_SIZE) != 0);
  enter();
  struct stat before, after;
  status_of(file, &before);
  long status = syscall(SYS_fallocate, file, mode, offset, bytes);
  if (trace && status == 0) {
    status_of(file, &after);
    if (after.st_size != before.st_size) {
      record(LF_TRACE_TRUNCATE, d->file, "", "", (uint64_t)after.st_size, NULL, 0);
    }
  }
  leave();
  return (int)done(v, status);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) { return allocate_file(file, mode, offset, bytes); }
int fallocate64(int file, int mode, off64_t offset, off64_t bytes) { return allocate_file(file, mode, offset, bytes); }
int posix_fallocate(int file, off_t offset, off_t bytes) {
  int before = errno;
  int status = allocate_file(file, 0, offset, bytes) == 0 ? 0 : errno;
  errno = before;
  return status;
}
int posix_fallocate64(int file, off64_t offset, off64_t bytes) { return posix_fallocate(file, offset, bytes); }

// MARK: Syncing

static int sync_file(int file, long number) {
  descriptor *d = known(file);
  if (!d) return (int)syscall(number, file);
  // The start is recorded separately: writes between the start and the end of the fsync need not be synced.
  enter();
  uint64_t place = trace_end;
  if (trace) record(LF_TRACE_SYNC, d->file, "", "", 0, NULL, 0);
  leave();
  verdict v = judge(d->directory ? LF_SYNCDIR : LF_SYNC, d->path);
  long status = v.error ? failed(v) : syscall(number, file);
  int error = errno;
  enter();
  if (trace) record(status == 0 ? LF_TRACE_SYNCED : LF_TRACE_UNSYNCED, d->file, "", "", place, NULL, 0);
  leave();
  errno = error;
  return (int)done(v, status);
}

int fsync(int file) { return sync_file(file, SYS_fsync); }
int fdatasync(int file) { return sync_file(file, SYS_fdatasync); }

// MARK: Names

static int rename_file(int from_directory, const char *from, int to_directory, const char *to) {
  const char *name = below(from);
  const char *other = below(to);
  if (!name || !other) return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, 0);
  verdict v = judge_two(LF_RENAME, name, other);
  if (v.error) return (int)failed(v);
  enter();
  long status = syscall(SYS_renameat2, from_directory, from, to_directory, to, 0);
  if (trace && status == 0) record(LF_TRACE_RENAME, 0, name, other, 0, NULL, 0);
  leave();
  return (int)done(v, status);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
  if (flags == 0) return rename_file(from_directory, from, to_directory, to);
  not_recorded(below(from) || below(to));
  return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
}
int rename(const char *from, const char *to) { return rename_file(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_directory, const char *from, int to_directory, const char *to) {
  return rename_file(from_directory, from, to_directory, to);
}

static int link_file(int from_directory, const char *from, int to_directory, const char *to, int flags) {
  const char *name = below(from);
  const char *other = below(to);
  if (!name || !other) return (int)syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
  verdict v = judge_two(LF_LINK, name, other);
  if (v.error) return (int)failed(v);
  enter();
  long status = syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
  if (trace && status == 0) record(LF_TRACE_LINK, 0, name, other, 0, NULL, 0);
  leave();
  return (int)done(v, status);
}

int link(const char *from, const char *to) { return link_file(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
  return link_file(from_directory, from, to_directory, to, flags);
}

static int remove_name(int directory, const char *path, int flags) {
  const char *name = below(path);
  if (!name) return (int)syscall(SYS_unlinkat, directory, path, flags);
  verdict v = judge(flags & AT_REMOVEDIR ? LF_RMDIR : LF_UNLINK, name);
  if (v.error) return (int)failed(v);
  enter();
  long status = syscall(SYS_unlinkat, directory, path, flags);
  if (trace && status == 0) {
    record(flags & AT_REMOVEDIR ? LF_TRACE_RMDIR : LF_TRACE_UNLINK, 0, name, "", 0, NULL, 0);
  }
  leave();
  return (int)done(v, status);
}

int unlink(const char *path) { return remove_name(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) { return remove_name(directory, path, flags); }
int remove(const char *path) {
  int status = remove_name(AT_FDCWD, path, 0);
  return status != 0 && errno == EISDIR ? remove_name(AT_FDCWD, path, AT_REMOVEDIR) : status;
}
int rmdir(const char *path) { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int directory, const char *path, mode_t mode) {
  const char *name = below(path);
  if (!name) return (int)syscall(SYS_mkdirat, directory, path, mode);
  verdict v = judge(LF_MKDIR, name);
  if (v.error) return (int)failed(v);
  enter();
  long status = syscall(SYS_mkdirat, directory, path, mode);
  if (trace && status == 0) record(LF_TRACE_MKDIR, number_of(path), name, "", 0, NULL, 0);
  leave();
  return (int)done(v, status);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

// MARK: Directories

DIR *opendir(const char *path) {
  const char *name = below(path);
  verdict v = {0};
  if (name) v = judge(LF_LIST, name);
  if (v.error) {
    errno = v.error;
    return NULL;
  }
  DIR *directory = next_opendir(path);
  if (directory && name) note_descriptor(dirfd(directory), name, 0);
  if (v.kill) die();
  return directory;
}

struct dirent *readdir(DIR *directory) {
  descriptor *d = known(dirfd(directory));
  verdict v = {0};
  if (d) v = judge(LF_LISTNEXT, d->path);
  if (v.error) {
    errno = v.error;
    return NULL;
  }
  return next_readdir(directory);
}
// If off_t has 64 bits, this is the same function under another name.
struct dirent64 *readdir64(DIR *directory) { return (struct dirent64 *)readdir(directory); }

int closedir(DIR *directory) {
  forget(dirfd(directory));
  return next_closedir(directory);
}

// MARK: Reading file attributes

static int look(const char *path, struct stat *status, int flags) {
  const char *name = below(path);
  verdict v = {0};
  if (name) v = judge(LF_STAT, name);
  if (v.error) return (int)failed(v);
  return (int)done(v, syscall(SYS_newfstatat, AT_FDCWD, path, status, flags));
}

int stat(const char *restrict path, struct stat *restrict status) { return look(path, status, 0); }
int stat64(const char *restrict path, struct stat64 *restrict status) { return look(path, (struct stat *)status, 0); }
int lstat(const char *restrict path, struct stat *restrict status) { return look(path, status, AT_SYMLINK_NOFOLLOW); }
int lstat64(const char *restrict path, struct stat64 *restrict status) {
  return look(path, (struct stat *)status, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *status) {
  descriptor *d = known(file);
  verdict v = {0};
  if (d) v = judge(LF_STAT, d->path);
  if (v.error) return (int)failed(v);
  return (int)done(v, status_of(file, status));
}
int fstat64(int file, struct stat64 *status) { return fstat(file, (struct stat *)status); }

int access(const char *path, int mode) {
  const char *name = below(path);
  verdict v = {0};
  if (name) v = judge(LF_ACCESS, name);
  if (v.error) return (int)failed(v);
  return (int)done(v, syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

int statvfs(const char *restrict path, struct statvfs *restrict status) {
  static int (*next)(const char *, struct statvfs *);
  if (!next) next = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
  const char *name = below(path);
  verdict v = {0};
  if (name) v = judge(LF_STATFS, name);
  if (v.error) return (int)failed(v);
  return (int)done(v, next(path, status));
}

// MARK: Locks and maps

int flock(int file, int operation) {
  descriptor *d = known(file);
  verdict v = {0};
  if (d) v = judge(LF_LOCK, d->path);
  if (v.error) return (int)failed(v);
  return (int)done(v, syscall(SYS_flock, file, operation));
}

static int control_file(int file, int command, void *argument) {
  descriptor *d = known(file);
  verdict v = {0};
  if (d && (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW)) {
    v = judge(LF_LOCK, d->path);
  }
  if (v.error) return (int)failed(v);
  int status = (int)syscall(SYS_fcntl, file, command, argument);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) note_copy(file, status);
  return (int)done(v, status);
}

int dup(int file) {
  int copy = (int)syscall(SYS_dup, file);
  note_copy(file, copy);
  return copy;
}

int fcntl(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  return control_file(file, command, argument);
}
int fcntl64(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  return control_file(file, command, argument);
}

static void *map_file(void *start, size_t bytes, int protection, int flags, int file, off_t offset) {
  descriptor *d = flags & MAP_ANONYMOUS ? NULL : known(file);
  verdict v = {0};
  if (d) {
    v = judge(LF_MMAP, d->path);
    // Writes to a shared mapping cannot be recorded.
    if (trace && (protection & PROT_WRITE) && !(flags & MAP_PRIVATE)) lf_store(&control->trace_failed, 2);
  }
  if (v.error) {
    errno = v.error;
    return MAP_FAILED;
  }
  return (void *)done(v, syscall(SYS_mmap, start, bytes, protection, flags, file, offset));
}

void *mmap(void *start, size_t bytes, int protection, int flags, int file, off_t offset) {
  return map_file(start, bytes, protection, flags, file, offset);
}
void *mmap64(void *start, size_t bytes, int protection, int flags, int file, off64_t offset) {
  return map_file(start, bytes, protection, flags, file, offset);
}
