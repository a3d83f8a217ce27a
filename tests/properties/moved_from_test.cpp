/// What was moved from can be assigned to and destroyed. Whatever else is asked of it works or is an Error: nothing
/// crashes, and nothing silently does something else. One row for each thing that is asked of each public object.
#include <gtest/gtest.h>
#include <sstream>
#include "gradus/base/rooms.h"
#include "gradus/data/dataset.h"
#include "gradus/data/files.h"
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/custom_gradient.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/per_example.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/activation.h"
#include "gradus/nn/cells.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/metrics.h"
#include "gradus/nn/model.h"
#include "gradus/nn/recurrent.h"
#include "gradus/nn/regularizers.h"
#include "gradus/onnx/export.h"
#include "gradus/onnx/model.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/callbacks.h"
#include "gradus/train/fit.h"
#include "gradus/train/search.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::moved_from_test {
namespace {

struct Asked {
  std::string name;
  std::function<void()> ask;
  bool must_fail = false;
};
void PrintTo(const Asked& asked, std::ostream* out) { *out << asked.name; }

struct Net {
  Dense dense{3};
  Tensor operator()(Tensor x) const { return dense(x); }
};

Tensor x() { return fill({2, 3}, 1.5, f32); }
Tensor labels() { return fill({2, 3}, 0.5, f32); }

/// Questions to one object, each after it was made and moved from anew.
template <class Make> struct Object {
  std::string name;
  Make make;
  std::vector<Asked>& all;
  using T = decltype(std::declval<Make>()());

  Object& ask(const std::string& what, std::function<void(T&)> question, bool must_fail = false) {
    all.push_back({name + "_" + what,
                   [make = make, question] {
                     T object = make();
                     [[maybe_unused]] const T taken(std::move(object));
                     question(object);
                   },
                   must_fail});
    return *this;
  }
  Object& must_fail(const std::string& what, std::function<void(T&)> question) { return ask(what, question, true); }
};
template <class Make> Object<Make> object(std::string name, Make make, std::vector<Asked>& all) {
  return {std::move(name), std::move(make), all};
}
/// For what is a Module, whichever.
template <class Make> void ask_module(const std::string& name, Make make, std::vector<Asked>& all) {
  using M = decltype(make());
  object(name, make, all)
      .must_fail("call", [](M& m) { m(x()); })
      .must_fail("call_in_function", [](M& m) { function([&](Tensor a) { return m(a); })(x()); })
      .must_fail("build", [](M& m) { m.build({f32, {any_size, 3}}); })
      .must_fail("variables", [](M& m) { (void)m.variables().size(); })
      .must_fail("trainable_variables", [](M& m) { (void)m.trainable_variables().size(); })
      .must_fail("set_trainable", [](M& m) { m.set_trainable(false); })
      .must_fail("set_name", [](M& m) { m.set_name("a"); })
      .must_fail("set_policy", [](M& m) { m.set_policy(mixed_bfloat16); })
      .must_fail("losses", [](M& m) { (void)m.losses(); })
      .must_fail("compute_mask", [](M& m) { (void)m.compute_mask(x()); })
      .must_fail("summary", [](M& m) { (void)m.summary(); })
      .must_fail("name", [](M& m) { (void)m.name(); })
      .must_fail("loss_scale", [](M& m) { (void)m.loss_scale(); })
      .ask("copy", [](M& m) { const M copy(m); })
      .ask("move", [](M& m) { const M moved(std::move(m)); })
      .ask("copied_from",
           [make](M& m) {
             M other = make();
             other = m;
           })
      .ask("assigned",
           [make](M& m) {
             m = make();
             m(x());
           })
      .ask("shared", [](M& m) { (void)shared(m); })
      .ask("in_a_sequential", [](M& m) {
        Sequential s{std::move(m)};
        s(x());
      });
}

std::vector<Asked> everything() {
  std::vector<Asked> all;
  const auto doubled = [] { return function([](Tensor a) { return a * 2; }, {.name = "doubled"}); };
  using F = decltype(doubled());
  object("function", doubled, all)
      .must_fail("call", [](F& f) { f(x()); })
      .must_fail("call_of_copy",
                 [](F& f) {
                   const F copy(f);
                   copy(x());
                 })
      .must_fail("call_within", [](F& f) { function([&](Tensor a) { return f(a); })(x()); })
      .must_fail("call_under_a_tape",
                 [](F& f) {
                   GradientTape tape;
                   f(x());
                 })
      .must_fail("map", [](F& f) { (void)data::from_tensor_slices(x()).map(f).first(); })
      .must_fail("explain", [](F& f) { (void)f.explain(); })
      .ask("assigned", [doubled](F& f) {
        f = doubled();
        EXPECT_EQ(f(x()).dtype(), f32);
      });
  object("void_function", [] { return function([](Tensor) {}); }, all).must_fail("call", [](auto& f) { f(x()); });

  object("tensor", x, all)
      .must_fail("shape", [](Tensor& t) { (void)t.shape(); })
      .must_fail("dtype", [](Tensor& t) { (void)t.dtype(); })
      .must_fail("device", [](Tensor& t) { (void)t.device(); })
      .must_fail("bytes", [](Tensor& t) { (void)t.bytes(); })
      .must_fail("item", [](Tensor& t) { (void)t.item(); })
      .must_fail("to_vector", [](Tensor& t) { (void)t.to_vector<float>(); })
      .must_fail("span", [](Tensor& t) { (void)t.span<float>(); })
      .must_fail("index", [](Tensor& t) { (void)t[0]; })
      .must_fail("rows", [](Tensor& t) { (void)t.rows(0, 1); })
      .must_fail("bool", [](Tensor& t) { (void)static_cast<bool>(t); })
      .must_fail("plus", [](Tensor& t) { (void)(t + 1); })
      .must_fail("plus_equals", [](Tensor& t) { t += x(); })
      .must_fail("plus_equals_number", [](Tensor& t) { t += 1; })
      .must_fail("operand", [](Tensor& t) { (void)(x() + t); })
      .must_fail("reduce", [](Tensor& t) { (void)reduce_sum(t); })
      .must_fail("function", [](Tensor& t) { function([](Tensor a) { return a; })(t); })
      .must_fail("watched", [](Tensor& t) { GradientTape().watch(t); })
      .must_fail("gradient", [](Tensor& t) { (void)GradientTape().gradient(reduce_sum(x()), t); })
      .must_fail("target", [](Tensor& t) { (void)GradientTape().gradient(t, x()); })
      .must_fail("slices", [](Tensor& t) { (void)data::from_tensor_slices(t); })
      .must_fail("variable", [](Tensor& t) { const Variable v(t); })
      .must_fail("model", [](Tensor& t) { Dense(3)(t); })
      .must_fail("jacobian", [](Tensor& t) { (void)jacobian([](Tensor a) { return a; }, t); })
      .must_fail("vectorized_map", [](Tensor& t) { (void)vectorized_map([](Tensor a) { return a; }, t); })
      .ask("print", [](Tensor& t) { std::ostringstream() << t; })
      .ask("copy", [](Tensor& t) { const Tensor copy(t); });

  object(
      "variable", [] { return Variable(x(), "v"); }, all)
      .must_fail("value", [](Variable& v) { (void)v.value(); })
      .must_fail("tensor", [](Variable& v) { (void)(v + 1); })
      .must_fail("shape", [](Variable& v) { (void)v.shape(); })
      .must_fail("dtype", [](Variable& v) { (void)v.dtype(); })
      .must_fail("name", [](Variable& v) { (void)v.name(); })
      .must_fail("set_name", [](Variable& v) { v.set_name("w"); })
      .must_fail("assign", [](Variable& v) { v.assign(x()); })
      .must_fail("assign_add", [](Variable& v) { v.assign_add(x()); })
      .must_fail("assign_sub", [](Variable& v) { v.assign_sub(x()); })
      .must_fail("assign_in_function", [](Variable& v) { function([&](Tensor a) { v.assign(a); })(x()); })
      .must_fail("trainable", [](Variable& v) { (void)v.trainable(); })
      .must_fail("set_trainable", [](Variable& v) { v.set_trainable(false); })
      .must_fail("mask", [](Variable& v) { (void)v.mask(); })
      .must_fail("set_mask", [](Variable& v) { v.set_mask(x()); })
      .must_fail("set_no_mask", [](Variable& v) { v.set_mask({}); })
      .must_fail("aggregation", [](Variable& v) { (void)v.aggregation(); })
      .must_fail("copy", [](Variable& v) { const Variable copy(v); })
      .must_fail("list", [](Variable& v) { const Variables list(v); })
      .must_fail("gradient", [](Variable& v) { (void)GradientTape().gradient(reduce_sum(x()), v); })
      .ask("move", [](Variable& v) { const Variable moved(std::move(v)); });

  object(
      "variables",
      [] {
        static Variable v(x(), "v");
        return Variables(v);
      },
      all)
      .ask("size", [](Variables& v) { EXPECT_EQ(v.size(), 0u); })
      .must_fail("index", [](Variables& v) { (void)v[0]; })
      .must_fail("name", [](Variables& v) { (void)v["v"]; })
      .ask("sum", [](Variables& v) { (void)(v + v).size(); })
      .ask("loop",
           [](Variables& v) {
             for (Variable& each : v) (void)each.name();
           })
      .ask("parameters", [](Variables& v) { (void)v.parameters(); });
  object(
      "variables_of_a_model", [] { return Dense(3).trainable_variables(); }, all)
      .ask("size", [](Variables& v) { (void)v.size(); });

  ask_module("dense", [] { return Dense(3); }, all);
  ask_module("sequential", [] { return Sequential{Dense(4), Dense(3)}; }, all);
  ask_module("model", [] { return Model<Net>(); }, all);
  ask_module(
      "built",
      [] {
        Sequential made{Dense(4), Dense(3)};
        made.build({f32, {any_size, 3}});
        return made;
      },
      all);
  ask_module("lambda", [] { return Lambda([](Tensor a) { return a; }); }, all);

  const auto rows = [] { return data::from_tensor_slices(x(), labels()).batch(2); };
  using D = decltype(rows());
  object("dataset", rows, all)
      .ask("begin", [](D& d) { (void)*d.begin(); })
      .ask("first", [](D& d) { (void)d.first(); })
      .ask("map", [](D& d) { (void)d.map([](Tensor a, Tensor b) { return std::pair(a, b); }).first(); })
      .ask("filter", [](D& d) { (void)d.filter([](Tensor a, Tensor) { return reduce_sum(a) > 0; }).first(); })
      .ask("shuffle", [](D& d) { (void)d.shuffle().first(); })
      .ask("batch", [](D& d) { (void)d.batch(1).first(); })
      .ask("unbatch", [](D& d) { (void)d.unbatch().first(); })
      .ask("cache", [](D& d) { (void)d.cache().first(); })
      .ask("repeat", [](D& d) { (void)d.repeat(2).first(); })
      .ask("take", [](D& d) { (void)d.take(1).first(); })
      .ask("skip", [](D& d) { (void)d.skip(0).first(); })
      .ask("shard", [](D& d) { (void)d.shard(1, 0).first(); })
      .ask("prefetch", [](D& d) { (void)d.prefetch().first(); })
      .ask("epoch", [](D& d) { (void)d.epoch(1).first(); })
      .ask("explain", [](D& d) { (void)d.explain(); })
      .ask("cardinality", [](D& d) { (void)d.cardinality(); })
      .ask("element_spec", [](D& d) { (void)d.element_spec(); })
      .ask("fit", [](D& d) {
        Sequential model{Dense(3)};
        Adam optimizer;
        fit(model, optimizer, MeanSquaredError(), d, {.verbose = false});
      });
  object(
      "any_dataset", [rows] { return AnyDataset(rows()); }, all)
      .ask("fields", [](AnyDataset& d) { (void)d.fields(); });
  using I = D::iterator;
  object(
      "iterator", [rows] { return rows().begin(); }, all)
      .must_fail("element", [](I& i) { (void)*i; })
      .must_fail("next", [](I& i) { ++i; })
      .must_fail("next_behind", [](I& i) { i++; })
      .must_fail("end", [](I& i) { (void)(i == std::default_sentinel); })
      .must_fail("position", [](I& i) { (void)i.position(); });
  all.push_back({"iterator_of_nothing", [] { (void)*I(); }, true});

  const auto stepped = [] {
    static Sequential model{Dense(3)};
    model.build({f32, {any_size, 3}});
    Adam optimizer;
    optimizer.build(model.trainable_variables());
    return optimizer;
  };
  const auto gradients = [] {
    static Sequential model{Dense(3)};
    GradientTape tape;
    const Tensor loss = reduce_mean(model(x()));
    return tape.gradient(loss, model.trainable_variables());
  };
  object("optimizer", stepped, all)
      .must_fail("apply_gradients", [gradients](Adam& o) { o.apply_gradients(gradients()); })
      .must_fail("build", [](Adam& o) { o.build(Dense(3).variables()); })
      .must_fail("rebind", [](Adam& o) { o.rebind({}); })
      .must_fail("iterations", [](Adam& o) { (void)o.iterations(); })
      .must_fail("skipped_steps", [](Adam& o) { (void)o.skipped_steps(); })
      .must_fail("learning_rate", [](Adam& o) { (void)o.learning_rate(); })
      .must_fail("set_learning_rate", [](Adam& o) { o.set_learning_rate(0.1); })
      .must_fail("exclude", [](Adam& o) { o.exclude_from_weight_decay({"bias"}); })
      .must_fail("group", [](Adam& o) { (void)o.add_parameter_group({}, {}); })
      .must_fail("finalize", [](Adam& o) { o.finalize_variable_values({}); })
      .must_fail("variables", [](Adam& o) { (void)o.variables().size(); })
      .must_fail("copy", [](Adam& o) { const Adam copy(o); })
      .ask("move", [](Adam& o) { const Adam moved(std::move(o)); })
      .must_fail("fit",
                 [rows](Adam& o) {
                   Sequential model{Dense(3)};
                   fit(model, o, MeanSquaredError(), rows(), {.verbose = false});
                 })
      .ask("assigned", [stepped](Adam& o) {
        o = stepped();
        (void)o.iterations();
      });
  object(
      "schedule", [] { return Schedule(CosineDecay({.initial_learning_rate = 0.5, .decay_steps = 10})); }, all)
      .ask("rate", [](Schedule& s) { EXPECT_EQ(s(0), 0.5); })
      .ask("optimizer", [](Schedule& s) {
        const SGD optimizer({.learning_rate = s});
        EXPECT_EQ(optimizer.learning_rate(), 0.5);
      });
  object(
      "initializer", [] { return initializers::constant(2); }, all)
      .ask("call", [](Initializer& i) { EXPECT_EQ(i({1}).item(), 2); });
  object(
      "activation", [] { return Activation([](const Tensor& a) { return a * 3; }); }, all)
      .ask("call", [](Activation& a) { EXPECT_EQ(a(constant(1.0)).item(), 3); });
  object(
      "regularizer", [] { return regularizers::L2(0.5); }, all)
      .ask("call", [](Regularizer& r) { EXPECT_EQ(r(constant(2.0)).item(), 2); })
      .ask("bool", [](Regularizer& r) { EXPECT_TRUE(static_cast<bool>(r)); });
  object(
      "loss_function", [] { return MeanSquaredError(); }, all)
      .must_fail("call", [](MeanSquaredError& f) { (void)f(x(), labels()); });
  all.push_back({"initializer_of_nothing", [] { Initializer(std::function<Tensor(const Shape&)>())({1}); }, true});
  all.push_back({"activation_of_nothing", [] { Activation(std::function<Tensor(const Tensor&)>())(x()); }, true});
  all.push_back({"regularizer_of_nothing", [] { Regularizer()(x()); }, true});

  object(
      "metric", [] { return MeanAbsoluteError(); }, all)
      .must_fail("update", [](MeanAbsoluteError& m) { m.update(x(), labels()); })
      .must_fail("update_weighted", [](MeanAbsoluteError& m) { m.update(x(), labels(), fill({2}, 1, f32)); })
      .must_fail("result", [](MeanAbsoluteError& m) { (void)m.result(); })
      .must_fail("reset", [](MeanAbsoluteError& m) { m.reset(); })
      .must_fail("name", [](MeanAbsoluteError& m) { (void)m.name(); })
      .must_fail("variables", [](MeanAbsoluteError& m) { (void)m.variables(); })
      .must_fail("copy", [](MeanAbsoluteError& m) { const MeanAbsoluteError copy(m); })
      .must_fail("fit", [rows](MeanAbsoluteError& m) {
        Sequential model{Dense(3)};
        Adam optimizer;
        fit(model, optimizer, MeanSquaredError(), rows(), {.metrics = {m}, .verbose = false});
      });
  object(
      "loss", [] { return Loss::mean(x()); }, all)
      .ask("value", [](Loss& l) { (void)l.value(); })
      .ask("item", [](Loss& l) { (void)l.item(); })
      .ask("sum", [](Loss& l) { (void)l.sum(); })
      .ask("weight", [](Loss& l) { (void)l.weight(); })
      .ask("print", [](Loss& l) { std::ostringstream() << l; })
      .must_fail("times", [](Loss& l) { (void)(l * 2); })
      .must_fail("plus_penalty", [](Loss& l) { (void)(l + constant(1.0F)); })
      .ask("add", [](Loss& l) { l += Loss::mean(x()); })
      .must_fail("gradient", [](Loss& l) { (void)GradientTape().gradient(l, x()); });
  object("gradients", gradients, all)
      .must_fail("index", [](Gradients& g) { (void)g[0]; })
      .ask("print", [](Gradients& g) { std::ostringstream() << g; })
      .ask("weight", [](Gradients& g) { (void)g.weight(); })
      .ask("add", [gradients](Gradients& g) { g += gradients(); })
      .ask("clip", [](Gradients& g) { (void)clip_by_global_norm(g, 1.0); })
      .ask("apply", [](Gradients& g) { Adam().apply_gradients(g); });
  object(
      "clipped_gradients", [gradients] { return clip_by_global_norm(gradients(), 1.0); }, all)
      .must_fail("index", [](ClippedGradients& g) { (void)g[0]; })
      .ask("apply", [](ClippedGradients& g) { Adam().apply_gradients(g); });
  object(
      "per_example_gradients",
      [] {
        static Sequential model{Dense(3)};
        model.build({f32, {any_size, 3}});
        return per_example_gradients([](Tensor a) { return reduce_sum(model(a), {.axis = {1}}); },
                                     model.trainable_variables(), {x()});
      },
      all)
      .ask("norms", [](PerExampleGradients& g) { (void)g.norms(); })
      .ask("clip", [](PerExampleGradients& g) { (void)g.clip_by_norm(1); })
      .ask("sum", [](PerExampleGradients& g) { (void)g.sum(); });

  const auto onnx = [] {
    static const EmptyTestDirectory directory;
    Sequential model{Dense(3)};
    model.build({f32, {2, 3}});
    export_onnx(directory.path() / "model.onnx", model, {f32, {2, 3}});
    return onnx::load(directory.path() / "model.onnx");
  };
  object("onnx_model", onnx, all)
      .must_fail("inputs", [](onnx::Model& m) { (void)m.inputs(); })
      .must_fail("outputs", [](onnx::Model& m) { (void)m.outputs(); })
      .must_fail("variables", [](onnx::Model& m) { (void)m.variables(); })
      .must_fail("trainable_variables", [](onnx::Model& m) { (void)m.trainable_variables(); })
      .must_fail("call", [](onnx::Model& m) { (void)m(x()); })
      .must_fail("call_by_name", [](onnx::Model& m) { (void)m(std::map<std::string, Tensor>()); })
      .must_fail("as_module", [](onnx::Model& m) { (void)m.as_module(); })
      .ask("copy", [](onnx::Model& m) { const onnx::Model copy(m); });

  object(
      "search_space", [] { return SearchSpace().uniform("a", 0, 1); }, all)
      .must_fail("search", [](SearchSpace& s) { (void)grid_search(s, [](const SearchTrial&) { return 0.0; }); })
      .ask("add", [](SearchSpace& s) { s.uniform("b", 0, 1); });
  object(
      "callback", [] { return early_stopping({}); }, all)
      .ask("fit", [rows](Callback& c) {
        Sequential model{Dense(3)};
        Adam optimizer;
        fit(model, optimizer, MeanSquaredError(), rows(), {.callbacks = {c}, .verbose = false});
      });
  object(
      "recompute_grad", [] { return recompute_grad([](Tensor a) { return a * 2; }); }, all)
      .ask("call", [](auto& f) { (void)f(x()); });
  return all;
}

class MovedFrom : public testing::TestWithParam<Asked> {};

TEST_P(MovedFrom, AnswersOrSaysSo) {
  try {
    GetParam().ask();
    EXPECT_FALSE(GetParam().must_fail) << "it went on as if nothing were";
  } catch (const Error& error) { EXPECT_GT(std::string(error.what()).size(), 10u); }
}

INSTANTIATE_TEST_SUITE_P(Objects, MovedFrom, testing::ValuesIn(everything()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gradus::moved_from_test
