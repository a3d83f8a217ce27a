/// The file of a cache on disk: elements in the order in which they were made, each with a checksum. Elements that a
/// killed process had written can still be read; the one that it was writing is dropped.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>
#include "gradus/data/element.h"

namespace gradus {

/// A file of elements. Any thread may read while one appends.
class CacheFile {
 public:
  /// Opens or creates the file; the process has one object per path and fingerprint. `count` elements make it complete;
  /// without it, finish() does. DataError if the file belongs to something else: it is never overwritten. Unavailable
  /// if another process is filling it, or it may not be written.
  static std::shared_ptr<CacheFile> open(const std::filesystem::path& file, std::uint64_t fingerprint,
                                         const std::vector<Spec>& specs, std::optional<std::int64_t> count);
  /// Throws open()'s DataError, without creating a file or holding one.
  static void check(const std::filesystem::path& file, std::uint64_t fingerprint);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;

  /// True if element `index` was written.
  bool holds(std::int64_t index) const;
  /// The number of elements, once it is known.
  std::optional<std::int64_t> count() const;
  /// Element `index`. DataError, with the byte, if the file was damaged.
  Tensors read(std::int64_t index) const;
  /// Appends element `index`. ResourceExhausted on a full disk; the file is then as before. If it could not be
  /// restored, nothing is written any more: Unavailable.
  void append(std::int64_t index, std::span<const Tensor> element);
  /// Declares that there are no more than `count` elements.
  void finish(std::int64_t count);

 private:
  struct Place {
    std::int64_t begin, bytes;
    std::uint64_t checksum;
  };
  CacheFile(std::filesystem::path file, std::uint64_t fingerprint, std::vector<Spec> specs,
            std::optional<std::int64_t> count);
  bool try_lock(bool alone) const;
  void lock_to_fill();
  void scan();
  void unlock_if_complete();
  bool is_complete() const;
  void write_record(std::int64_t index, std::span<const std::byte> payload);
  void write_at(std::int64_t place, std::span<const std::byte> bytes);
  std::size_t read_at(std::int64_t place, std::span<std::byte> out) const;
  Tensors parse(std::span<const std::byte> payload, const Place& place) const;
  [[noreturn]] void fail_write() const;

  const std::filesystem::path file_;
  const std::uint64_t fingerprint_;
  const std::vector<Spec> specs_;
  int descriptor_ = -1;
  mutable std::mutex guard_;  // of the fields below
  std::unordered_map<std::int64_t, Place> places_;
  std::optional<std::int64_t> count_;
  std::int64_t end_ = 0;  // end of the last whole record; 0: there is no header, or a broken record stands there
};

}  // namespace gradus
