/// Every op of the tests' rows that uses a library kernel, in object files: the library's bits, of its values and of
/// its gradients, or an error that names it. Formulas, whose code is generated for each program, stand in the steps of
/// training_test.cpp. Many ops stand in one object, for an object takes a while to link.
#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <set>
#include "gradus/function/traced_function.h"
#include "gradus/graph/op.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/reduce.h"
#include "tests/export/loaded_object.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows_test {
namespace {

using rows::Row;

/// One application: a row, and the operands.
struct Application {
  const Row* row;
  Tensors inputs;
};

rows::Array drawn(const rows::Operand& operand, const Shape& shape, DType t, std::mt19937& random) {
  rows::Array array{shape, {}};
  for (std::int64_t i = 0; i < shape.size(); ++i) array.values.push_back(rows::draw_element(operand, t, random));
  return array;
}

/// The last case of each row that uses a library kernel, in its first dtype.
std::vector<Application> applications(const std::function<bool(const Row&)>& wanted) {
  std::mt19937 random(5);
  std::vector<Application> all;
  for (const Row& row : rows::all_rows()) {
    if (!wanted(row) || row.shapes.empty() || row.dtypes.empty()) continue;
    Application made{&row, {}};
    for (std::size_t k = 0; k < row.operands.size(); ++k) {
      const DType t = row.operands[k].dtype.value_or(row.dtypes.front());
      made.inputs.push_back(rows::to_tensor(drawn(row.operands[k], row.shapes.back()[k], t, random), t));
    }
    all.push_back(std::move(made));
  }
  return all;
}

bool has_kernel(const Row& row) {
  return std::ranges::any_of(row.covers, [](const std::string& name) {
    const auto found = registered_ops().find(name);
    return found != registered_ops().end() && found->second->library_kernel != nullptr;
  });
}

/// What is exported: all values and gradients of some applications, whose operands follow each other in `in`.
Called values_and_gradients(std::span<const Application> of, In in) {
  Called called;
  std::size_t next = 0;
  for (const Application& application : of) {
    const Tensors inputs(in.begin() + static_cast<std::ptrdiff_t>(next),
                         in.begin() + static_cast<std::ptrdiff_t>(next + application.inputs.size()));
    next += inputs.size();
    GradientTape tape({.persistent = true});
    for (const Tensor& x : inputs)
      if (is_floating(x.dtype())) tape.watch(x);
    const Tensor y = application.row->apply(inputs);
    called.tensors.push_back(y);
    if (!application.row->differentiable || !is_floating(y.dtype())) continue;
    const Tensor target = reduce_sum(y * y);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (is_floating(inputs[k].dtype()) && application.row->operands[k].has_gradient)
        if (const Tensor dx = tape.gradient(target, inputs[k]); dx.defined()) called.tensors.push_back(dx);
  }
  return called;
}

void expect_same_bits(std::span<const Application> of) {
  const Threads one(1);
  TracedFunction traced({.name = "rows"}, nullptr, 0);
  const Body body = [&](In in) { return values_and_gradients(of, in); };
  Tensors inputs;
  std::vector<Spec> specs;
  for (const Application& application : of)
    for (const Tensor& x : application.inputs) inputs.push_back(x), specs.push_back(x.spec());
  set_seed(11);
  const std::string names = [&] {
    std::string all;
    for (const Application& application : of) all += application.row->name + ' ';
    return all;
  }();
  const LoadedObject object(traced.export_object(export_folder() / "rows", specs, {}, {}, body));
  const Called expected = traced.call(inputs, {}, body);
  std::vector<std::vector<std::byte>> results;
  std::vector<void*> pointers{object.state()};
  for (const Tensor& x : inputs) pointers.push_back(const_cast<void*>(x.observed().host()));
  const bool returns = expected.tensors[0].shape().rank() == 0 &&
                       (expected.tensors[0].dtype() == f32 || expected.tensors[0].dtype() == f64);
  for (const Tensor& y : expected.tensors) results.emplace_back(y.bytes() + 8);
  for (std::size_t k = returns ? 1 : 0; k < results.size(); ++k) pointers.push_back(results[k].data());
  object.call(pointers);
  ASSERT_EQ(object.failure(), 0) << names;
  for (std::size_t k = returns ? 1 : 0; k < results.size(); ++k)
    EXPECT_EQ(std::memcmp(results[k].data(), expected.tensors[k].observed().host(), expected.tensors[k].bytes()), 0)
        << "result " << k << " of " << names;
}

/// In parts; a part that cannot be exported is tried op by op, and those that cannot are named. Gives their names.
std::set<std::string> expect_same_bits_or_refused(const std::vector<Application>& all, std::size_t at_once) {
  std::set<std::string> refused;
  const auto attempt = [&](std::span<const Application> part) {
    try {
      expect_same_bits(part);
      return std::string();
    } catch (const InvalidArgument& error) { return std::string(error.what()); }
  };
  for (std::size_t k = 0; k < all.size(); k += at_once) {
    const auto part = std::span(all).subspan(k, std::min(at_once, all.size() - k));
    if (attempt(part).empty()) continue;
    for (const Application& one : part)
      if (const std::string problem = attempt(std::span(&one, 1)); !problem.empty()) {
        refused.insert(one.row->name);
        EXPECT_TRUE(std::ranges::any_of(one.row->covers,
                                        [&](const std::string& op) { return problem.find(op) != std::string::npos; }))
            << one.row->name << ": " << problem;
      }
  }
  return refused;
}

TEST(ExportRows, EveryLibraryKernelComesAlongOrIsRefusedByName) {
  const auto refused = expect_same_bits_or_refused(applications(has_kernel), 12);
  for (const std::string& name : refused)
    EXPECT_TRUE(name.find("gamma") != std::string::npos || name.find("beta") != std::string::npos ||
                name.find("zeta") != std::string::npos)
        << name;
}

}  // namespace
}  // namespace gradus::rows_test
