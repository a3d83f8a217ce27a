/// The registry of library kernels.
#include "gradus/backend/cpu/kernels/library.h"
#include <algorithm>
#include "gradus/backend/cpu/kernels/kernels.h"

namespace gradus {

const LibraryKernel& library_kernel(std::string_view name) {
  static constexpr LibraryKernel kernels[] = {
      {"matmul", library::bind_matmul, library::run_matmul},
      {"gather", library::bind_gather, library::run_gather},
      {"scatter_add", library::bind_scatter_add, library::run_scatter_add},
      {"check_range", library::bind_check_range, library::run_check_range},
      {"check_indices", library::bind_check_indices, library::run_check_range},
      {"concat", library::bind_concat, library::run_concat},
      {"cumsum", library::bind_cumsum, library::run_cumsum},
      {"convolution", library::bind_convolution, library::run_convolution, library::run_convolution_second},
      {"transposed_convolution", library::bind_transposed_convolution, library::run_convolution,
       library::run_convolution_second},
      {"kernel_convolution", library::bind_kernel_convolution, library::run_kernel_convolution,
       library::run_kernel_convolution_second},
      {"window_argmax", library::bind_window_argmax, library::run_window_argmax},
      {"window_select", library::bind_window_select, library::run_window_select},
      {"window_deposit", library::bind_window_deposit, library::run_window_deposit},
      {"fold", library::bind_fold, library::run_fold},
      {"scatter", library::bind_scatter, library::run_scatter},
      {"update_rows", library::bind_update_rows, library::run_update_rows},
      {"argsort", library::bind_argsort, library::run_argsort},
      {"det", library::bind_det, library::run_det, nullptr, true},
      {"scaled_det", library::bind_scaled_det, library::run_det, nullptr, true},
      {"adjugate", library::bind_adjugate, library::run_adjugate},
      {"inverse", library::bind_inverse, library::run_inverse, nullptr, true},
      {"solve", library::bind_solve, library::run_solve, nullptr, true},
      {"triangular_solve", library::bind_triangular_solve, library::run_triangular_solve, nullptr, true},
      {"cholesky", library::bind_cholesky, library::run_cholesky, nullptr, true},
      {"qr", library::bind_qr, library::run_qr, nullptr, true},
      {"eigh", library::bind_eigh, library::run_eigh, nullptr, true},
      {"svd", library::bind_svd, library::run_svd, nullptr, true},
      {"pinv", library::bind_pinv, library::run_pinv, nullptr, true},
      {"lu", library::bind_lu, library::run_lu, nullptr, true},
      {"matrix_exp", library::bind_matrix_exp, library::run_matrix_exp},
      {"attention", library::bind_attention, library::run_attention},
      {"attention_gradient", library::bind_attention_gradient, library::run_attention_gradient},
      {"fourier", library::bind_fourier, library::run_fourier},
      {"linear_recurrence", library::bind_linear_recurrence, library::run_linear_recurrence},
      {"linear_sample", library::bind_linear_sample, library::run_linear_sample},
      {"igamma", library::bind_incomplete, library::run_igamma},
      {"betainc", library::bind_incomplete, library::run_betainc},
      {"zeta", library::bind_incomplete, library::run_zeta},
  };
  const auto found = std::ranges::find(kernels, name, &LibraryKernel::name);
  internal_check(found != std::end(kernels), "the backend has no kernel `", name, "`");
  return *found;
}

std::vector<Thunk> lower_library(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options,
                                 Lowered& out) {
  const int value = step.members.at(0);
  const LibraryKernel& kernel = library_kernel((*graph)[value].op->library_kernel);
  std::vector<Thunk> thunks;
  Thunk& thunk = thunks.emplace_back(Thunk{.run = kernel.run, .label = std::string((*graph)[value].op->name)});
  if (kernel.second || kernel.shares_memory) thunk.shared_slot = out.slots++;
  thunk.bind = [graph = std::move(graph), value, bind = kernel.bind, shared_slot = thunk.shared_slot,
                names = options.disable, target = options.target](std::span<const std::int64_t> symbols) {
    return bind(*graph, value, symbols, {names, shared_slot, target});
  };
  if (kernel.second) thunks.push_back({.run = kernel.second, .label = thunk.label, .is_second = true});
  return thunks;
}

Thunk lower_product(std::shared_ptr<const Graph> graph, const Step& step, Thunk loops) {
  const int value = step.product;
  Thunk thunk{.run = library::run_followed_matmul,
              .shared_slot = value,
              .label = text((*graph)[value].op->name, "+", loops.label)};
  thunk.bind = [graph = std::move(graph), value, loops = std::move(loops)](std::span<const std::int64_t> symbols) {
    return library::bind_followed_matmul(*graph, value, loops, symbols);
  };
  return thunk;
}

}  // namespace gradus
