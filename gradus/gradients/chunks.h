/// Work in chunks of rows, as many at once as a byte budget allows.
#pragma once
#include <functional>
#include <string_view>
#include "gradus/graph/tensor.h"

namespace gradus {

/// What was made, and with how many rows at once.
struct InChunks {
  Tensors results;
  std::int64_t rows;
};

/// What build(rows) makes with `rows` of its `total` rows at once: all of them if max_bytes is 0, else the most with
/// which the memory plan of what was made since node number `began` stays within max_bytes, above what it reads and
/// yields. `build` is called a few times. ResourceExhausted, opened by `op`, names the smallest budget that works;
/// InvalidArgument if sizes are not known when tracing.
InChunks chunks_within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                              const std::function<Tensors(std::int64_t rows)>& build);
/// Its results.
Tensors within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                      const std::function<Tensors(std::int64_t rows)>& build);
Tensor within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                     const std::function<Tensor(std::int64_t rows)>& build);

}  // namespace gradus
