/// Renumbers a step's values in order of appearance and writes down all that its kernels depend on.
#include "gradus/backend/cpu/codegen/kernel_key.h"
#include <algorithm>

namespace gradus::cpu_backend {
namespace {

class KeyWriter {
 public:
  explicit KeyWriter(StepContext& context) : context_(context), graph_(context.graph), step_(context.step) {}

  KernelKey write() {
    write_space();
    for (std::size_t k = 0; k < step_.members.size(); ++k) write_member(step_.members[k]);
    put("out");
    for (int output : step_.outputs) {
      put(position(step_.members, output));
      (void)slot(output);
    }
    if (context_.shared_slot >= 0) (void)slot(context_.shared_slot);
    return {std::move(key_), std::move(ops_)};
  }

  KernelKey write_combination() {
    put("combination");
    put(context_.loops.columns());
    for (int member : step_.members) {
      if (!is_column_reduction(graph_[member])) continue;
      put(static_cast<std::int64_t>(graph_[member].spec.dtype));
      put(graph_[member].op);
      write_extent(member);
      const bool is_stored = context_.loops.is_output(member);  // of others the partial results lie there, too
      put(is_stored ? "stored" : "unread");
      if (is_stored) (void)slot(member);
    }
    (void)slot(context_.shared_slot);
    return {std::move(key_), std::move(ops_)};
  }

 private:
  static std::int64_t position(const std::vector<int>& values, int value) {
    return std::ranges::find(values, value) - values.begin();
  }
  std::int64_t slot(int index) {
    if (std::ranges::find(context_.slots, index) == context_.slots.end()) context_.slots.push_back(index);
    return position(context_.slots, index);
  }
  void put(std::int64_t number) { key_ += std::to_string(number) + ' '; }
  void put(std::string_view word) { key_.append(word) += ' '; }
  void put(const AnyOp& op) {
    put(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(op.record())));
    ops_.push_back(op);
  }

  /// The index formula itself: the op's attributes may say more, such as the shape that it fills.
  void put(const scalar::Code& code) {
    put("index");
    for (const scalar::Instruction& in : code.instructions) {
      put(static_cast<std::int64_t>(in.op));
      put(static_cast<std::int64_t>(in.type));
      for (int operand : {in.a, in.b, in.c}) put(operand);
      put(static_cast<std::int64_t>(in.bits));
    }
    put(code.result);
  }

  /// Without rows the number of elements is the caller's affair, but for a rest that fills no vector. An unknown one is
  /// a dimension that the kernel may read; a program without symbols has none.
  void write_space() {
    const std::int64_t columns = context_.loops.columns();
    if (!context_.loops.flat()) {
      put(step_.in_pieces ? "pieces of rows" : "rows");
      put(context_.loops.rows());
      put(columns);
    } else if (step_.in_pieces) {
      put("pieces");
    } else if (columns <= lanes) {
      put(columns);
    } else {
      put(columns % lanes == 0 ? "flat" : "flat with a rest");
    }
  }

  void write_member(int member) {
    const Value& v = graph_[member];
    put(static_cast<std::int64_t>(v.spec.dtype));
    if (!context_.loops.flat()) write_extent(member);
    if (!v.op.is_elementwise() && !v.op.is_reduction()) return write_operand(member);
    put(v.op);
    for (int operand : v.in) write_operand(operand);
  }

  /// Kernels depend on the number of elements of its shape and, for a reduction along columns, on how many are added
  /// up.
  void write_extent(int member) {
    put(graph_[member].spec.shape.size());
    if (!is_column_reduction(graph_[member])) return;
    const Reduced view = reduced_view(graph_, member);
    for (const std::int64_t extent : {view.outer, view.n, view.inner}) put(extent);
  }

  void write_operand(int operand) {
    const Walk walk = walk_of(graph_, operand);
    const Value& source = graph_[walk.source];
    put(static_cast<std::int64_t>(graph_[operand].spec.dtype));
    if (source.is_constant) {
      put("constant");
      return put(static_cast<std::int64_t>(source.constant));
    }
    if (source.op.is_index()) put(source.op.index_formula());
    else if (context_.loops.is_inside(walk.source)) {
      put("member");
      put(position(step_.members, walk.source));
    } else {
      put("slot");
      put(slot(walk.source));
    }
    if (walk.table >= 0) {
      put("table");
      put(static_cast<std::int64_t>(graph_[walk.table].spec.dtype));
      put(slot(walk.table));
    }
    put(walk.offset);
    for (const Stride& s : walk.strides) {
      if (!context_.loops.flat() || s.extent < 0) put(s.extent);
      put(s.backwards ? "-" : "+");
      put(s.step);
    }
    put("/");
  }

  StepContext& context_;
  const Graph& graph_;
  const Step& step_;
  std::string key_;
  std::vector<AnyOp> ops_;
};

}  // namespace

KernelKey kernel_key(StepContext& context) { return KeyWriter(context).write(); }
KernelKey combination_key(StepContext& context) { return KeyWriter(context).write_combination(); }

}  // namespace gradus::cpu_backend
