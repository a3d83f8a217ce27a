/// Traces one row, then walks its nodes and gives them their leading dimension.
#include "gradus/autodiff/vmap.h"
#include <unordered_map>
#include "gradus/autodiff/trace_nodes.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/nesting.h"
#include "gradus/graph/shard_context.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

Spec with_rows(Spec spec, std::int64_t n) {
  spec.shape.insert(0, n);
  return spec;
}

class ShardsOfRows final : public ShardContext {
 public:
  ShardsOfRows(ShardContext& around, std::uint32_t rows) : ShardContext(around), around_(around), rows_(rows) {
    count = 0;
  }
  Tensor sum(const Tensor& part) override {
    throw InvalidArgument(text("shards of a batch cannot be added up inside of a vectorized_map; return ", part.spec(),
                               " from it, and read, clip or apply it after the call"));
  }
  /// A value of rows is computed for all of them at once, by the batching rule.
  Tensor over(const AnyOp& op, const Tensor& part) override {
    return part.node()->trace == rows_ ? make_node(op, {&part, 1}) : around_.over(op, part);
  }

 private:
  ShardContext& around_;
  const std::uint32_t rows_;  // the trace of a row
};

class RowTrace final : public Context {
 public:
  explicit RowTrace(RowKeys keys) : keys_(keys) {
    if (ShardContext* const around = Context::shards()) shards_.emplace(*around, id());
  }
  Tensor row_of(const Tensor& xs) const {
    Spec spec = xs.spec();
    spec.shape.erase(0);
    Tensor row = Tensor::parameter(spec, id());
    row.node()->varies = xs.node()->varies;
    return row;
  }
  /// The number of the row, a scalar i64; empty if it was not asked for.
  const Tensor& index() const { return index_; }

  std::string_view why_no_assignment() const override {
    return "each row of a vectorized_map would assign another value; return what is to be assigned, and assign outside "
           "what you make of all rows";
  }
  ShardContext* shards() override { return shards_ ? &*shards_ : nullptr; }
  bool decide(const Tensor& predicate) override {
    throw InvalidArgument(
        text("if (tensor): the condition, ", predicate.spec(),
             ", may differ from row to row of a vectorized_map, so a C++ branch cannot be taken; use cond(condition, "
             "if_true, if_false), or where(condition, a, b)"));
  }
  /// Every row has a key of its own.
  Tensor random_key(const Tensor& key) override {
    if (keys_ == RowKeys::of_f) return Context::random_key(key);
    if (!index_.defined()) index_ = Tensor::parameter({i64, {}}, id());
    return philox(index_, Context::random_key(key), 0);
  }

 private:
  const RowKeys keys_;
  Tensor index_;
  std::optional<ShardsOfRows> shards_;
};

/// Masks of single rows, each with the mask of all rows that it was taken from.
class RowMasks {
 public:
  void add(const RowTrace& trace, const Tensor& all, const Tensor& row) {
    const Tensor mask = SequenceMask::of(all);
    if (mask.defined() && mask.shape().rank() > 1) {
      rows_.emplace_back(trace.row_of(mask), mask);
      SequenceMask::set(row, rows_.back().first);
    } else if (SequenceMask::is_lost(all) && row.shape().rank() >= 2) {
      SequenceMask::lose(row);
    }
  }
  const std::vector<std::pair<Tensor, Tensor>>& rows() const { return rows_; }

 private:
  std::vector<std::pair<Tensor, Tensor>> rows_;  // the row's mask, the mask of all rows
};

/// The stand-in for a node outside of the trace.
struct Image {
  Tensor tensor;
  bool varies = false;
};

class Rebuilding {
 public:
  Rebuilding(std::uint32_t trace, std::int64_t n) : trace_(trace), n_(n) {}

  void bind(const Tensor& symbol, Image image) { images_[symbol.node().get()] = std::move(image); }

  Vectorized results(Tensors within) {
    const std::size_t count = within.size();
    SequenceMask::append_all(within);
    for (const Ref<Node>& node : nodes_of_trace(within, trace_)) rebuild(*node);
    Vectorized out;
    for (std::size_t k = 0; k < count; ++k) {
      const Image image = within[k].defined() ? image_of(within[k].node()) : Image{};
      out.results.push_back(image.tensor);
      out.varies.push_back(image.varies);
      if (within.size() > count && image.varies && !SequenceMask::of(image.tensor).defined())
        SequenceMask::give(image.tensor, of_all_rows(within[count + k]));
    }
    return out;
  }

 private:
  /// The mask of all rows; a marker of a lost mask stays as it is.
  Tensor of_all_rows(const Tensor& mask) const {
    if (!mask.defined()) return {};
    const Image image = image_of(mask.node());
    return image.varies || mask.shape().rank() == 0 ? image.tensor : repeat_rows(image.tensor, n_);
  }
  Image image_of(const Ref<Node>& node) const {
    const auto it = images_.find(node.get());
    return it == images_.end() ? Image{Tensor(node), false} : it->second;
  }

  void rebuild(const Node& node) {
    const NameScope scope(node.scope);
    Tensors in;
    std::uint32_t mask = 0;
    bool varies = false;
    for (int i = 0; i < node.inputs.size(); ++i) {
      Image image = image_of(node.inputs[i]);
      if (image.varies && i < 32) mask |= 1u << i;
      varies = varies || image.varies;
      in.push_back(std::move(image.tensor));
    }
    // Ops that join shards inform the strategy, also if they are the same for all rows.
    const bool by_rule = varies || node.op.joins_shards();
    const Tensor image = by_rule ? apply_to_rows(node, in, mask) : make_node(node.op, in);
    images_[&node] = {image, image.shape().rank() > node.spec.shape.rank()};
  }

  /// Formulas, reductions and index formulas are the same op on rows; others have a rule. A rule may leave the leading
  /// dimension away where the result is the same for all rows.
  Tensor apply_to_rows(const Node& node, Tensors& in, std::uint32_t mask) const {
    const bool too_many_for_mask = in.size() > 32, implied = !node.op->batch;
    if (too_many_for_mask || implied)
      for (std::size_t i = 0; i < in.size(); ++i)
        if (!image_of(node.inputs[static_cast<int>(i)]).varies) in[i] = repeat_rows(in[i], n_);
    const Tensor y =
        implied ? make_node(node.op, in) : node.op->batch(node.op.attributes(), in, too_many_for_mask ? ~0u : mask, n_);
    internal_check(y.spec() == with_rows(node.spec, n_) || y.spec() == node.spec, "the batching rule of ", node.op,
                   " gives ", y.spec(), " for ", n_, " rows of ", node.spec);
    return y;
  }

  const std::uint32_t trace_;
  const std::int64_t n_;
  std::unordered_map<const Node*, Image> images_;
};

}  // namespace

Vectorized vmap(const TensorsFunction& f, In xs, const std::vector<bool>& varies, std::int64_t n, RowKeys keys) {
  const HostFloats floats;
  const Nesting nesting;
  nesting.check("vectorized_map");
  internal_check(varies.size() == xs.size(), "vmap: ", varies.size(), " flags for ", xs.size(), " operands");
  std::optional<Rebuilding> rebuilding;
  Tensors within, rows;
  RowMasks masks;
  Tensor index;
  {
    RowTrace trace(keys);
    rebuilding.emplace(trace.id(), n);
    for (std::size_t i = 0; i < xs.size(); ++i) rows.push_back(varies[i] ? trace.row_of(xs[i]) : xs[i]);
    if (SequenceMask::is_used())
      for (std::size_t i = 0; i < xs.size(); ++i)
        if (varies[i]) masks.add(trace, xs[i], rows[i]);
    within = f(rows);
    index = trace.index();
  }
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (varies[i]) rebuilding->bind(rows[i], {xs[i], true});
  for (const auto& [row, all] : masks.rows()) rebuilding->bind(row, {all, true});
  if (index.defined()) rebuilding->bind(index, {iota({n}, i64), true});
  return rebuilding->results(std::move(within));
}

Tensors vmap(const TensorsFunction& f, In xs, std::int64_t n, RowKeys keys) {
  auto [results, varies] = vmap(f, xs, std::vector<bool>(xs.size(), true), n, keys);
  for (std::size_t k = 0; k < results.size(); ++k)
    if (results[k].defined() && !varies[k]) results[k] = repeat_rows(results[k], n);
  return results;
}

Tensors (*Transforms::vmap)(const TensorsFunction&, In, const std::vector<bool>&, std::int64_t, std::vector<bool>&) =
    [](const TensorsFunction& f, In xs, const std::vector<bool>& varies, std::int64_t n, std::vector<bool>& varied) {
      Vectorized made = gradus::vmap(f, xs, varies, n);
      varied = std::move(made.varies);
      return std::move(made.results);
    };

}  // namespace gradus
