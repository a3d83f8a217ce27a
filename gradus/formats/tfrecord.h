/// TFRecord, TensorFlow's file format of byte strings with checksums, and tf.train.Example, their usual content.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The records of a file by number. Opening reads the whole file once and compares every checksum. Records are then
/// read from the file on demand. A file compressed by gzip is recognised by its bytes, and unpacked once into a
/// nameless file in the folder for temporary files. Any thread may read.
class TfrecordFile {
 public:
  /// Opens a file. Unavailable if it cannot be read. DataError, with record and byte, where it is damaged or cut off.
  explicit TfrecordFile(const std::filesystem::path& file);
  ~TfrecordFile();
  TfrecordFile(const TfrecordFile&) = delete;

  /// The name of the file.
  const std::string& name() const { return name_; }
  /// The number of records.
  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  /// A checksum over the checksums of all records.
  std::uint64_t checksum() const;
  /// The bytes of record i. DataError if the file was changed since it was opened, Unavailable if it cannot be read.
  std::vector<std::byte> record(std::int64_t i) const;
  /// The place of record i as text: "data.tfrecord: record 3 (byte 412)".
  std::string place_of(std::int64_t i) const;

 private:
  struct Place {
    std::int64_t begin, bytes;
    std::uint32_t checksum;
  };
  void read_places();
  const std::string name_;
  int descriptor_ = -1;
  std::vector<Place> places_;
};

/// The records of bytes in memory, with all checksums compared. DataError, with record and byte, where they are damaged
/// or cut off. `name` stands for the file in messages.
std::vector<std::vector<std::byte>> parse_tfrecord(std::span<const std::byte> bytes, const std::string& name);
/// Writes records. The file appears whole or not at all. Unavailable where it may not be written, ResourceExhausted on
/// a full disk.
void write_tfrecord(const std::filesystem::path& file, std::span<const std::string> records);

/// The features of a tf.train.Example, each [n]: lists of bytes as u8, of floats as f32, of integers as i64. A list of
/// byte strings must have exactly one, since several have no common size; else DataError. DataError also for bytes that
/// are no such record, and for a feature that holds no list. `place` opens errors.
std::map<std::string, Tensor> parse_example(std::span<const std::byte> record, const std::string& place);
/// The bytes of a tf.train.Example. A u8 tensor becomes one byte string, f32 a list of floats, i32 or i64 a list of
/// integers. InvalidArgument for any other dtype.
std::string example_of(const std::map<std::string, Tensor>& features);

}  // namespace gradus
