/// The names of the functions that run library kernels, as linkers see them.
#include "gradus/backend/cpu/kernels/kernel_names.h"
#include <algorithm>
#include <utility>
#include "gradus/backend/cpu/kernels/kernels.h"

namespace gradus {
namespace {

#define GRADUS_NAMED(name) {library::name, #name}
constexpr std::pair<KernelFunction, std::string_view> names[] = {
    GRADUS_NAMED(run_matmul),
    GRADUS_NAMED(run_followed_matmul),
    GRADUS_NAMED(run_gather),
    GRADUS_NAMED(run_scatter_add),
    GRADUS_NAMED(run_check_range),
    GRADUS_NAMED(run_concat),
    GRADUS_NAMED(run_cumsum),
    GRADUS_NAMED(run_packed_convolution),
    GRADUS_NAMED(run_strip_convolution),
    GRADUS_NAMED(run_winograd_convolution),
    GRADUS_NAMED(run_depthwise_f32),
    GRADUS_NAMED(run_depthwise_f64),
    GRADUS_NAMED(run_depthwise_i32),
    GRADUS_NAMED(run_depthwise_i64),
    GRADUS_NAMED(run_convolution_second),
    GRADUS_NAMED(run_packed_weights),
    GRADUS_NAMED(run_strip_weights),
    GRADUS_NAMED(run_winograd_weights),
    GRADUS_NAMED(run_depthwise_weights_f32),
    GRADUS_NAMED(run_depthwise_weights_f64),
    GRADUS_NAMED(run_depthwise_weights_i32),
    GRADUS_NAMED(run_depthwise_weights_i64),
    GRADUS_NAMED(run_kernel_convolution_second),
    GRADUS_NAMED(run_window_argmax),
    GRADUS_NAMED(run_window_select),
    GRADUS_NAMED(run_window_deposit),
    GRADUS_NAMED(run_fold),
    GRADUS_NAMED(run_scatter),
    GRADUS_NAMED(run_update_rows),
    GRADUS_NAMED(run_argsort),
    GRADUS_NAMED(run_det),
    GRADUS_NAMED(run_adjugate),
    GRADUS_NAMED(run_inverse),
    GRADUS_NAMED(run_solve),
    GRADUS_NAMED(run_triangular_solve),
    GRADUS_NAMED(run_cholesky),
    GRADUS_NAMED(run_qr),
    GRADUS_NAMED(run_eigh),
    GRADUS_NAMED(run_svd),
    GRADUS_NAMED(run_pinv),
    GRADUS_NAMED(run_lu),
    GRADUS_NAMED(run_matrix_exp),
    GRADUS_NAMED(run_fourier),
    GRADUS_NAMED(run_linear_recurrence),
    GRADUS_NAMED(run_linear_sample),
    GRADUS_NAMED(run_attention),
    GRADUS_NAMED(run_attention_gradient),
};
#undef GRADUS_NAMED

}  // namespace

std::string symbol_of(KernelFunction run) {
  const auto found = std::ranges::find(names, run, [](const auto& entry) { return entry.first; });
  if (found == std::end(names)) return {};
  // void gradus::library::run_x(const gradus::KernelArguments*, long, long), in the C++ ABI of Itanium
  return text("_ZN6gradus7library", found->second.size(), found->second, "EPKNS_15KernelArgumentsEll");
}

}  // namespace gradus
