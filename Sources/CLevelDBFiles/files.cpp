#include "cleveldbfiles.h"

#include <cstring>
#include <string>

#include <leveldb/c.h>
#include <leveldb/env.h>
#include <leveldb/slice.h>
#include <leveldb/status.h>

namespace {

using leveldb::Slice;
using leveldb::Status;

/// Reads `count` bytes with a function that may return fewer, until they are there or the file ends. A memory map answers
/// with its own bytes at once: then nothing is copied.
template <typename Read>
Status ReadAll(size_t count, Slice *result, char *scratch, Read read) {
  Status status = read(0, count, result, scratch);
  if (!status.ok() || result->size() == count || result->empty()) return status;
  if (result->data() != scratch) std::memmove(scratch, result->data(), result->size());
  size_t got = result->size();
  while (got < count) {
    Slice part;
    status = read(got, count - got, &part, scratch + got);
    if (!status.ok() || part.empty()) break;
    if (part.data() != scratch + got) std::memmove(scratch + got, part.data(), part.size());
    got += part.size();
  }
  *result = Slice(scratch, status.ok() ? got : 0);
  return status;
}

class WholeSequentialFile final : public leveldb::SequentialFile {
public:
  explicit WholeSequentialFile(leveldb::SequentialFile *file) : file_(file) {}
  ~WholeSequentialFile() override { delete file_; }

  Status Read(size_t count, Slice *result, char *scratch) override {
    return ReadAll(count, result, scratch, [this](size_t, size_t rest, Slice *part, char *space) {
      return file_->Read(rest, part, space);
    });
  }
  Status Skip(uint64_t count) override { return file_->Skip(count); }

private:
  leveldb::SequentialFile *const file_;
};

class WholeRandomAccessFile final : public leveldb::RandomAccessFile {
public:
  explicit WholeRandomAccessFile(leveldb::RandomAccessFile *file) : file_(file) {}
  ~WholeRandomAccessFile() override { delete file_; }

  Status Read(uint64_t offset, size_t count, Slice *result, char *scratch) const override {
    return ReadAll(count, result, scratch, [this, offset](size_t got, size_t rest, Slice *part, char *space) {
      return file_->Read(offset + got, rest, part, space);
    });
  }

private:
  leveldb::RandomAccessFile *const file_;
};

class WholeReads final : public leveldb::EnvWrapper {
public:
  explicit WholeReads(leveldb::Env *environment) : leveldb::EnvWrapper(environment) {}

  Status NewSequentialFile(const std::string &name, leveldb::SequentialFile **result) override {
    Status status = target()->NewSequentialFile(name, result);
    if (status.ok()) *result = new WholeSequentialFile(*result);
    return status;
  }
  Status NewRandomAccessFile(const std::string &name, leveldb::RandomAccessFile **result) override {
    Status status = target()->NewRandomAccessFile(name, result);
    if (status.ok()) *result = new WholeRandomAccessFile(*result);
    return status;
  }
};

/// LevelDB's C interface takes no environment but its own, a structure that begins with the C++ one: so this makes one of
/// its own and replaces that.
leveldb_env_t *MakeEnvironment() {
  leveldb::Env *const standard = leveldb::Env::Default();
  leveldb_env_t *const environment = leveldb_create_default_env();
  leveldb::Env *first;
  std::memcpy(&first, environment, sizeof first);
  if (first != standard) {
    leveldb_env_destroy(environment);
    return nullptr;
  }
  leveldb::Env *const whole = new WholeReads(standard);
  std::memcpy(static_cast<void *>(environment), &whole, sizeof whole);
  return environment;
}

} // namespace

leveldb_env_t *larder_leveldb_environment(void) {
  static leveldb_env_t *const environment = MakeEnvironment();
  return environment;
}
