/// Work in chunks of rows, as many rows at once as a byte budget allows.
#pragma once
#include <functional>
#include <string_view>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The results, and the number of rows at once.
struct InChunks {
  Tensors results;
  std::int64_t rows;
};

/// Results of build(rows), which handles `rows` of its `total` rows at once. With max_bytes 0 it handles all of them,
/// else the most that fit: the memory plan of the nodes made since node number `began` stays within max_bytes, above
/// its inputs and results. `build` is called a few times. ResourceExhausted, opened by `op`, names the smallest budget
/// that works. InvalidArgument if sizes are not known when tracing.
InChunks chunks_within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                              const std::function<Tensors(std::int64_t rows)>& build);
/// The results of chunks_within_budget alone.
Tensors within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                      const std::function<Tensors(std::int64_t rows)>& build);
Tensor within_budget(std::string_view op, std::size_t max_bytes, std::uint64_t began, std::int64_t total,
                     const std::function<Tensor(std::int64_t rows)>& build);

}  // namespace gradus
