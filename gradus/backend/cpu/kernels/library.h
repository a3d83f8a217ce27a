/// The library kernels of the backend, by the names that ops give them: computations whose access to memory follows
/// from data or that are products. Plain loops around one another; only products have code of their own.
#pragma once
#include <span>
#include "gradus/backend/compile_options.h"
#include "gradus/backend/cpu/run/program.h"

namespace gradus {

struct LibraryOptions {
  std::span<const std::string> disable = {};  // names of passes
  int shared_slot = -1;                       // of the memory that workers share, if they do
  TargetModel target = {};
};

/// Binds a kernel for given symbols, the text of an ErrorWord included. Kernels that can work in ways which can be
/// disabled, in two parts or together take options. The workers of these share memory in a slot, without which the
/// kernel must not run.
class LibraryBind {
 public:
  using Plain = BoundThunk (*)(const Graph&, int value, std::span<const std::int64_t> symbols);
  using WithOptions = BoundThunk (*)(const Graph&, int value, std::span<const std::int64_t> symbols,
                                     const LibraryOptions&);
  constexpr LibraryBind(Plain plain) : plain_(plain) {}
  constexpr LibraryBind(WithOptions with_options) : with_options_(with_options) {}
  BoundThunk operator()(const Graph& graph, int value, std::span<const std::int64_t> symbols,
                        const LibraryOptions& options = {}) const {
    return plain_ ? plain_(graph, value, symbols) : with_options_(graph, value, symbols, options);
  }

 private:
  Plain plain_ = nullptr;
  WithOptions with_options_ = nullptr;
};

/// One kernel: its name, binding and code.
struct LibraryKernel {
  std::string_view name;
  LibraryBind bind;
  KernelFunction run;
  KernelFunction second = nullptr;  // for some sizes: the work after all of the first part
  bool shares_memory = false;       // without a second part, too: of a team that works together
};
/// InternalError if there is none of this name.
const LibraryKernel& library_kernel(std::string_view name);

/// The thunks that compute the one member of a step of kind library.
std::vector<Thunk> lower_library(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options,
                                 Lowered& out);
/// The thunk of a step of kind product, with that of its loops.
Thunk lower_product(std::shared_ptr<const Graph> graph, const Step& step, Thunk loops);

}  // namespace gradus
