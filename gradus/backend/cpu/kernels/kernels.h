/// The library kernels, for their registry. The ops' own files document them.
#pragma once
#include <span>
#include "gradus/backend/cpu/kernels/library.h"

namespace gradus::library {

using Symbols = std::span<const std::int64_t>;
using Names = std::span<const std::string>;

BoundThunk bind_matmul(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_matmul(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
/// The product of a step of kind product with the thunk of its loops, which run over elements.
BoundThunk bind_followed_matmul(const Graph& graph, int value, const Thunk& loops, Symbols symbols);
void run_followed_matmul(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_gather(const Graph& graph, int value, Symbols symbols);
void run_gather(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_scatter_add(const Graph& graph, int value, Symbols symbols);
void run_scatter_add(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_check_range(const Graph& graph, int value, Symbols symbols);
BoundThunk bind_check_indices(const Graph& graph, int value, Symbols symbols);
void run_check_range(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_concat(const Graph& graph, int value, Symbols symbols);
void run_concat(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_cumsum(const Graph& graph, int value, Symbols symbols);
void run_cumsum(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_convolution(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
// The ways that these choose from.
void run_packed_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_strip_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_winograd_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_f32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_f64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_i32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_i64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_convolution_second(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_transposed_convolution(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
BoundThunk bind_kernel_convolution(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_kernel_convolution(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_packed_weights(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_strip_weights(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_winograd_weights(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_weights_f32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_weights_f64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_weights_i32(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_depthwise_weights_i64(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_kernel_convolution_second(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_window_argmax(const Graph& graph, int value, Symbols symbols);
void run_window_argmax(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_window_select(const Graph& graph, int value, Symbols symbols);
void run_window_select(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_window_deposit(const Graph& graph, int value, Symbols symbols);
void run_window_deposit(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_fold(const Graph& graph, int value, Symbols symbols);
void run_fold(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_scatter(const Graph& graph, int value, Symbols symbols);
void run_scatter(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_update_rows(const Graph& graph, int value, Symbols symbols);
void run_update_rows(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_argsort(const Graph& graph, int value, Symbols symbols);
void run_argsort(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_det(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
BoundThunk bind_scaled_det(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_det(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_adjugate(const Graph& graph, int value, Symbols symbols);
void run_adjugate(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_inverse(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_inverse(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_solve(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_solve(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_triangular_solve(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_triangular_solve(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_cholesky(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_cholesky(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_qr(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_qr(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_eigh(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_eigh(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_svd(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_svd(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_pinv(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_pinv(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_lu(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_lu(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_matrix_exp(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options);
void run_matrix_exp(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_fourier(const Graph& graph, int value, Symbols symbols);
void run_fourier(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_linear_sample(const Graph& graph, int value, Symbols symbols);
void run_linear_sample(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_linear_recurrence(const Graph& graph, int value, Symbols symbols);
void run_linear_recurrence(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_incomplete(const Graph& graph, int value, Symbols symbols);
void run_igamma(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_betainc(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
void run_zeta(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_attention(const Graph& graph, int value, Symbols symbols);
void run_attention(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_attention_gradient(const Graph& graph, int value, Symbols symbols);
void run_attention_gradient(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);

/// A shape as [outer, n, inner] around an axis that counts from the end.
struct AroundAxis {
  AroundAxis(const Shape& shape, int axis) : n(shape[axis]) {
    const int at = shape.normalized(axis);
    for (int i = 0; i < at; ++i) outer *= shape[i];
    for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  std::int64_t outer = 1, n, inner = 1;
};

}  // namespace gradus::library
