/// A run directory's record of its data, so that a training does not go on with others: the number of examples, their
/// contents, and their order.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace gradus::command {

struct Data;
struct DataConfig;

/// Checksums of some rows; equal rows in another order agree in `any_order` alone.
struct RowsChecksum {
  std::uint64_t in_order = 0, any_order = 0;
  bool operator==(const RowsChecksum&) const = default;
};

struct SplitChecksum {
  std::int64_t examples = 0;
  std::string example;                  // "f32[8], i32[]"
  RowsChecksum features, labels, both;  // labels with the weights of examples
  bool operator==(const SplitChecksum&) const = default;
};

struct DataChecksum {
  SplitChecksum training, testing;
  bool operator==(const DataChecksum&) const = default;
};

/// Reads all examples once. Of folders of images it reads the files and decodes none.
DataChecksum checksum_of(const Data& data, const DataConfig& config);

/// "31 training examples, not 4000"; "the training examples stand in another order"; empty if nothing differs.
std::string difference(const DataChecksum& now, const DataChecksum& then);

nlohmann::json to_json_value(const DataChecksum& checksum);
/// nlohmann's exceptions for other JSON than that of to_json_value.
DataChecksum checksum_from(const nlohmann::json& json);

}  // namespace gradus::command
