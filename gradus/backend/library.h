/// The library kernels of the backend, by the names that ops give them: computations whose access to memory follows
/// from data or that are products. Plain loops around one another; only products have code of their own.
#pragma once
#include <span>
#include "gradus/backend/program.h"

namespace gradus {

/// One kernel: what it does for given symbols (an ErrorWord's text included), and how.
struct LibraryKernel {
  std::string_view name;
  BoundThunk (*bind)(const Graph& graph, int value, std::span<const std::int64_t> symbols);
  KernelFunction run;
  /// Of a kernel that works in ways which can be disabled: without those.
  BoundThunk (*bind_without)(const Graph& graph, int value, std::span<const std::int64_t> symbols,
                             std::span<const std::string> disable) = nullptr;
};
/// InternalError if there is none of this name.
const LibraryKernel& library_kernel(std::string_view name);

/// The thunk that computes the one member of a step of kind library. `disable`: names of passes.
Thunk lower_library(std::shared_ptr<const Graph> graph, const Step& step, std::span<const std::string> disable);
/// Of a step of kind product, with the thunk of its loops.
Thunk lower_product(std::shared_ptr<const Graph> graph, const Step& step, Thunk loops);

}  // namespace gradus
