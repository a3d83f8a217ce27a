/// Sparsity: which weights of a model are 0, what keeps them so, and what they would take when stored without zeros.
/// prune_low_magnitude (train/pruning.h) prunes while a model trains; here is what it does at one moment.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>
#include "gradus/nn/module.h"

namespace gradus {

/// What pruning is for, as in TensorFlow's model optimization toolkit: kernels, recurrent kernels and embeddings of the
/// layers, but no biases, normalising parameters or depthwise kernels; and Variables that have a mask. What is used
/// several times is listed once.
Variables prunable_variables(const Module& model);
/// The share of zeros among all elements of prunable_variables; 0 of none. Waits.
double sparsity(const Module& model);

/// Rows and columns, the last two dimensions of a kernel, that are pruned together.
struct BlockSize {
  std::int64_t rows = 1, columns = 1;
};
/// Masks the elements of least magnitude so that the share `sparsity` of them is 0 (of a variable with n elements
/// n - round(n (1 - sparsity)), ties by place); with blocks whole ones of least mean magnitude, those at the edges
/// being smaller. What is masked stays masked, NaN is never masked. InvalidArgument unless 0 <= sparsity < 1, and for
/// blocks of a variable of rank below 2.
void prune_to(Variable& variable, double sparsity, BlockSize block = {});
/// Each of prunable_variables by itself.
void prune_to(Module& model, double sparsity, BlockSize block = {});
/// Masks what is 0 now in prunable_variables: so that a pruned model whose weights were read from a file, which holds
/// no masks, stays as sparse as it is when it trains further.
void mask_zeros(Module& model);
/// Takes all masks away. The zeros stay until something else is assigned.
void strip_pruning(Module& model);

/// One prunable variable.
struct SparsityRow {
  std::string name;
  std::int64_t weights = 0, zeros = 0;
  /// As it is, and as one bit a weight and the weights that are not 0.
  std::int64_t dense_bytes = 0, sparse_bytes = 0;
  /// Two for each multiplication and addition of one call with one example, all of them and those with weights that are
  /// not 0. Dimensions of the input that are open count as 1.
  std::int64_t operations = 0, sparse_operations = 0;
};
struct SparsityReport {
  std::vector<SparsityRow> rows;
  SparsityRow total;             // of the rows
  std::int64_t other_bytes = 0;  // of all other variables of the model
  /// A table.
  friend std::ostream& operator<<(std::ostream& out, const SparsityReport& report);
};
/// Of a built model. Kernels run dense either way: zeros gain bytes where a model is stored or compressed; time is
/// gained by remove_pruned_channels and low_rank. Waits.
SparsityReport sparsity_report(const Module& model);

}  // namespace gradus
