/// Counting zeros, and choosing the elements to mask.
#include "gradus/nn/sparsity.h"
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <numeric>
#include <ostream>
#include "gradus/graph/context.h"
#include "gradus/nn/layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus {
namespace {

/// Visits the prunable variables with how often each weight is multiplied; one that is met again is passed over.
void visit_prunable(const Layer& layer, Variables& seen, const std::function<void(Variable&, std::int64_t)>& visit) {
  const auto meet = [&](Variable& variable, std::int64_t multiplications) {
    if (seen.find(*variable.cell()) >= 0) return;
    seen.add(variable);
    visit(variable, multiplications);
  };
  if (const Variables kernels = layer.kernels(); kernels.size() > 0) {
    const std::int64_t multiplications = layer.multiplications();
    for (Variable& kernel : kernels) meet(kernel, multiplications);
  }
  for (const auto& child : layer.children()) visit_prunable(*child, seen, visit);
}

/// Kernels of the layers, then what has a mask besides.
void visit_prunable(const Module& model, const std::function<void(Variable&, std::int64_t)>& visit) {
  const Layer& layer = model.layer_behind();
  require(model.is_built(), "module ", layer.called(),
          " has no variables yet: call it on an input first, or build({f32, {any_size, ...}})");
  Variables seen;
  visit_prunable(layer, seen, visit);
  for (Variable& variable : model.variables())
    if (seen.find(*variable.cell()) < 0 && variable.mask().defined()) visit(variable, 0);
}

std::int64_t zeros_in(const Variable& variable) {
  const Tensor value = variable.value();
  return static_cast<std::int64_t>(
      reduce_sum(cast(equal(value, fill(value.shape(), 0, value.dtype())), i64)).to_vector<std::int64_t>()[0]);
}

/// |x| as f64, an element that is no number above all others.
std::vector<double> magnitudes_of(const Variable& variable) {
  std::vector<double> magnitudes = cast(variable.value(), f64).to_vector<double>();
  for (double& m : magnitudes) m = std::isnan(m) ? std::numeric_limits<double>::infinity() : std::abs(m);
  return magnitudes;
}

/// A kernel as matrices of blocks: which block an element is in.
class Blocks {
 public:
  Blocks(const Variable& variable, BlockSize block) : block_(block) {
    const Shape& shape = variable.shape();
    require(block.rows > 0 && block.columns > 0, "prune_to: sizes of blocks must be positive, got ", block.rows, " x ",
            block.columns);
    if (block.rows == 1 && block.columns == 1) return;
    require(shape.rank() >= 2, "prune_to: variable ", variable.name(), " is ", shape,
            ": blocks are of rows and columns, the last two dimensions");
    rows_ = shape[-2];
    columns_ = shape[-1];
    down_ = (rows_ + block.rows - 1) / block.rows;
    across_ = (columns_ + block.columns - 1) / block.columns;
  }
  std::size_t of(std::size_t element) const {
    if (across_ == 0) return element;
    const auto e = static_cast<std::int64_t>(element), matrix = e / (rows_ * columns_), row = e / columns_ % rows_;
    return static_cast<std::size_t>((matrix * down_ + row / block_.rows) * across_ + e % columns_ / block_.columns);
  }

 private:
  BlockSize block_;
  std::int64_t rows_ = 0, columns_ = 0, down_ = 0, across_ = 0;  // 0: each element is a block
};

struct Block {
  double magnitude = 0;  // the mean over its elements
  std::int64_t elements = 0;
  bool is_masked = true;  // all of it
};

std::vector<Block> blocks_of(const Variable& variable, const Blocks& blocks) {
  const std::vector<double> magnitudes = magnitudes_of(variable);
  const Tensor mask = variable.mask();
  std::vector<Block> all;
  const Tensor kept = mask.defined() ? mask : ones(variable.shape(), boolean);
  const std::span<const bool> is_kept = kept.span<bool>();
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    const std::size_t at = blocks.of(i);
    if (all.size() <= at) all.resize(at + 1);
    all[at].magnitude += magnitudes[i];
    ++all[at].elements;
    all[at].is_masked = all[at].is_masked && !is_kept[i];
  }
  for (Block& block : all) block.magnitude /= static_cast<double>(std::max<std::int64_t>(block.elements, 1));
  return all;
}

/// Those of least magnitude until `pruned` elements are in them; what is masked goes first.
std::vector<bool> chosen(const std::vector<Block>& blocks, std::int64_t pruned) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (blocks[a].is_masked != blocks[b].is_masked) return blocks[a].is_masked;
    return std::pair(blocks[a].magnitude, a) < std::pair(blocks[b].magnitude, b);
  });
  std::vector<bool> is_pruned(blocks.size());
  for (std::size_t i : order) {
    const Block& block = blocks[i];
    if (!block.is_masked && (pruned < block.elements || std::isinf(block.magnitude))) break;
    is_pruned[i] = true;
    pruned -= block.elements;
  }
  return is_pruned;
}

SparsityRow row_of(const Variable& variable, std::int64_t multiplications) {
  SparsityRow row{.name = variable.name(), .weights = variable.shape().size(), .zeros = zeros_in(variable)};
  const std::int64_t kept = row.weights - row.zeros;
  row.dense_bytes = bytes_of({variable.dtype(), variable.shape()});
  row.sparse_bytes = (row.weights + 7) / 8 + (row.weights ? row.dense_bytes / row.weights * kept : 0);
  row.operations = 2 * multiplications * row.weights;
  row.sparse_operations = 2 * multiplications * kept;
  return row;
}

void add(SparsityRow& total, const SparsityRow& row) {
  total.weights += row.weights;
  total.zeros += row.zeros;
  total.dense_bytes += row.dense_bytes;
  total.sparse_bytes += row.sparse_bytes;
  total.operations += row.operations;
  total.sparse_operations += row.sparse_operations;
}

void print(std::ostream& out, const std::vector<std::string>& cells) {
  out << std::left << std::setw(32) << printable(cells[0], true) << std::right;
  for (std::size_t i = 1; i < cells.size(); ++i) out << std::setw(14) << cells[i];
  out << '\n';
}

void print(std::ostream& out, const SparsityRow& row) {
  std::vector<std::string> cells{row.name};
  for (std::int64_t n :
       {row.weights, row.zeros, row.dense_bytes, row.sparse_bytes, row.operations, row.sparse_operations})
    cells.push_back(std::to_string(n));
  print(out, cells);
}

}  // namespace

Variables prunable_variables(const Module& model) {
  Variables all;
  visit_prunable(model, [&](Variable& variable, std::int64_t) { all.add(variable); });
  return all;
}

double sparsity(const Module& model) {
  const SparsityRow total = sparsity_report(model).total;
  return total.weights == 0 ? 0 : static_cast<double>(total.zeros) / static_cast<double>(total.weights);
}

void prune_to(Variable& variable, double sparsity, BlockSize block) {
  require(sparsity >= 0 && sparsity < 1, "prune_to: the sparsity must be at least 0 and below 1, got ", sparsity);
  const Untraced outside;
  const Blocks place(variable, block);
  const std::vector<Block> blocks = blocks_of(variable, place);
  const auto elements = static_cast<double>(variable.shape().size());
  const auto pruned = static_cast<std::int64_t>(elements - std::nearbyint(elements * (1 - sparsity)));
  const std::vector<bool> is_pruned = chosen(blocks, pruned);
  const Tensor before = variable.mask();
  std::vector<bool> kept = before.defined()
                               ? before.to_vector<bool>()
                               : std::vector<bool>(static_cast<std::size_t>(variable.shape().size()), true);
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = kept[i] && !is_pruned[place.of(i)];
  variable.set_mask(from_values(kept, variable.shape()));
}

void prune_to(Module& model, double sparsity, BlockSize block) {
  for (Variable& variable : prunable_variables(model)) prune_to(variable, sparsity, block);
}

void mask_zeros(Module& model) {
  const Untraced outside;
  for (Variable& variable : prunable_variables(model)) {
    const Tensor value = variable.value();
    variable.set_mask(not_equal(value, fill(value.shape(), 0, value.dtype())));
  }
}

void strip_pruning(Module& model) {
  for (Variable& variable : model.variables()) variable.set_mask(Tensor());
}

SparsityReport sparsity_report(const Module& model) {
  const Untraced outside;
  SparsityReport report;
  report.total.name = "total";
  visit_prunable(model, [&](Variable& variable, std::int64_t multiplications) {
    report.rows.push_back(row_of(variable, multiplications));
    add(report.total, report.rows.back());
  });
  for (const Variable& variable : model.variables())
    report.other_bytes += bytes_of({variable.dtype(), variable.shape()});
  report.other_bytes -= report.total.dense_bytes;
  return report;
}

std::ostream& operator<<(std::ostream& out, const SparsityReport& report) {
  print(out, {"variable", "weights", "zeros", "bytes", "sparse bytes", "operations", "of non-zeros"});
  for (const SparsityRow& row : report.rows) print(out, row);
  print(out, report.total);
  return out << text("other variables: ", report.other_bytes, " bytes\n");
}

}  // namespace gradus
