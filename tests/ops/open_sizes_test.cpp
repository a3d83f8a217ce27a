/// Every op row with sizes that are known at each call alone: one program of open sizes gives, value and gradients, what
/// the op gives at each of them.
#include <set>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/traced_function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows {
namespace {

using Shapes = std::vector<Shape>;

class OpenSizes : public RowTest {
 protected:
  DType dtype() const { return row().dtypes.front(); }

  /// The op, and its gradients by the operands that have one; the cotangent is made of the index.
  Tensors results(In in) const {
    const RecordingScope keep;
    const Tensor y = row().apply(in);
    Tensors all{y};
    if (!row().differentiable || !is_floating(y.dtype())) return all;
    const Tensor seed = cos(iota(y.shape(), y.dtype()));
    const Tensors operands(in.begin(), in.end());
    for (const Tensor& gradient : vjp(y, sources(operands, dtype()), seed))
      if (gradient.defined()) all.push_back(gradient);
    return all;
  }

  /// `shapes` with `n` wherever an extent is `open`.
  static Shapes resized(Shapes shapes, std::int64_t open, std::int64_t n) {
    for (Shape& shape : shapes)
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (shape[axis] == open) shape.set(axis, n);
    return shapes;
  }
  std::vector<Spec> signature(const Shapes& shapes, std::int64_t open) const {
    std::vector<Spec> specs;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      specs.push_back({dtype_of(i, dtype()), resized(shapes, open, any_size)[i]});
    return specs;
  }
  static std::set<std::int64_t> extents(const Shapes& shapes) {
    std::set<std::int64_t> all;
    for (const Shape& shape : shapes)
      for (const std::int64_t d : shape)
        if (d > 1) all.insert(d);
    return all;
  }

  void check(const Shapes& shapes, std::int64_t open, const std::vector<std::int64_t>& sizes) {
    TracedFunction traced({.name = row().name, .input_signature = signature(shapes, open)}, nullptr, 0);
    std::set<std::string> complaints;
    int taken = 0, right = 0;
    for (const std::int64_t n : sizes) {
      const Case c = make_case(resized(shapes, open, n), dtype());
      Tensors want;
      try {
        want = results(c.inputs);
        for (const Tensor& x : want) x.observed();
      } catch (const Error&) { continue; }
      ++taken;
      try {
        const Called called = traced.call(c.inputs, {}, [&](In in) { return Called{results(in), {}}; });
        bool same = called.tensors.size() == want.size();
        for (std::size_t i = 0; same && i < want.size(); ++i) same = bitwise_equal(called.tensors[i], want[i]);
        if (same) ++right;
        else {
          std::string how;
          for (std::size_t i = 0; i < want.size(); ++i) how += text("\n   ", called.tensors[i], " want ", want[i]);
          complaints.insert(text("WRONG at ", n, how));
        }
      } catch (const std::exception& error) { complaints.insert(text("THROWS ", std::string(error.what()).substr(0, 400))); }
    }
    if (taken < 2) return;  // the row is about this size
    const int variants = traced.explain().variants;
    int shown = 0;
    for (const std::string& complaint : complaints)
      if (++shown <= 2) ADD_FAILURE() << row().name << " " << listed(shapes) << "open " << open << ": " << complaint;
    std::string why;
    if (variants > 1) why = traced.explain().retraces.back().reason;
    if (!complaints.empty() || variants > 1)
      ADD_FAILURE() << "SUMMARY " << row().name << " " << listed(shapes) << "open " << open << " taken " << taken << " right "
                    << right << " variants " << variants << " " << why;
  }
};

TEST_P(OpenSizes, OneProgramServesAll) {
  const char* given = std::getenv("GRADUS_SIZES");
  std::vector<std::int64_t> sizes;
  for (int n = given ? std::atoi(given) : 9; n > 0; --n) sizes.push_back(n);
  std::swap(sizes.front(), sizes[sizes.size() / 2]);
  std::set<std::vector<int>> ranks;
  for (const Shapes& shapes : row().shapes) {
    std::int64_t most = 0;
    std::vector<int> rank;
    for (const Shape& shape : shapes) most = std::max(most, shape.size()), rank.push_back(shape.rank());
    if (most > 600 || most < 2 || !ranks.insert(rank).second) continue;
    for (const std::int64_t open : extents(shapes)) check(shapes, open, sizes);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpenSizes, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows
