/// Sparsity: the weights of a model that are 0, masks that keep them so, and the bytes of storing them without zeros.
/// prune_low_magnitude (train/pruning.h) prunes while a model trains; the functions here prune once.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>
#include "gradus/nn/module.h"

namespace gradus {

/// The variables that pruning applies to, as in TensorFlow's model optimization toolkit: kernels, recurrent kernels and
/// embeddings of the layers, and Variables that have a mask. Biases, normalization parameters and depthwise kernels are
/// left out. A shared variable is listed once.
Variables prunable_variables(const Module& model);
/// The share of zeros among all elements of prunable_variables; 0 without any. Waits.
double sparsity(const Module& model);

/// Rows and columns, the last two dimensions of a kernel, that are pruned together.
struct BlockSize {
  std::int64_t rows = 1, columns = 1;  // size of a block
};
/// Prunes by magnitude: masks the elements of least magnitude, so that the share `sparsity` of them is 0. Of n elements
/// of a variable n - round(n (1 - sparsity)) are masked, ties by index. With blocks, whole ones of least mean magnitude
/// are masked; those at the edges are smaller. Masked elements stay masked; NaN is never masked. InvalidArgument unless
/// 0 <= sparsity < 1, and for blocks of a variable of rank below 2.
void prune_to(Variable& variable, double sparsity, BlockSize block = {});
/// Prunes each of prunable_variables by itself.
void prune_to(Module& model, double sparsity, BlockSize block = {});
/// Masks the elements of prunable_variables that are 0 now. A pruned model whose weights were read from a file, which
/// holds no masks, then stays as sparse as it is when it trains further.
void mask_zeros(Module& model);
/// Removes all masks. The zeros stay until other values are assigned.
void strip_pruning(Module& model);

/// One prunable variable.
struct SparsityRow {
  std::string name;                     // name of the variable
  std::int64_t weights = 0, zeros = 0;  // numbers of elements and of zeros
  /// Bytes of all weights, and of one bit per weight plus the weights that are not 0.
  std::int64_t dense_bytes = 0, sparse_bytes = 0;
  /// Multiplications and additions of one call with one example: all of them, and those with weights that are not 0.
  /// Open dimensions of the input count as 1.
  std::int64_t operations = 0, sparse_operations = 0;
};
/// Sparsity of a model.
struct SparsityReport {
  std::vector<SparsityRow> rows;  // one per prunable variable
  SparsityRow total;              // sum of the rows
  std::int64_t other_bytes = 0;   // bytes of all other variables of the model
  /// Prints a table.
  friend std::ostream& operator<<(std::ostream& out, const SparsityReport& report);
};
/// The sparsity of a built model. Kernels compute zeros, too. Zeros save bytes where a model is stored or compressed;
/// remove_pruned_channels and low_rank save time. Waits.
SparsityReport sparsity_report(const Module& model);

}  // namespace gradus
